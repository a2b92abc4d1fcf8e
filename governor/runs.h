/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's side of every connection: which supervisor asks what, who holds which uid, which
 * scope is still there. A uid goes back to the pool only when systemd has taken its scope away.
 */
#pragma once

#include "governor/daemon.h"

/* Somebody connected: forks a supervisor, which accepts. The listener is off until it has said
 * hello. A negative errno when there is none: the connection waits, try again later. */
int runs_accept(struct daemon *d);

/* Switches the listener on, unless the daemon stops or has as many connections as it holds. */
void runs_listen(struct daemon *d);

/* The firewall's counters are about to be set to 0: what they say of each guest is kept. */
void runs_keep_drops(struct daemon *d);

/* Systemd removed the cgroup directory @name from the profile's slice. */
void runs_scope_gone(struct daemon *d, const char *name);

/* Tells all supervisors to end their guests. */
void runs_stop_all(struct daemon *d, enum ended reason);
