/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's side of every connection: which supervisor asks what, who holds which uid, which
 * scope is still there. A uid goes back to the pool only when systemd has taken its scope away.
 */
#pragma once

#include "governor/daemon/daemon.h"

/* Starts a supervisor, which accepts the next connection and says hello; *@ret is what the daemon
 * knows of it. A negative errno when there is none. */
int runs_start_supervisor(struct daemon *d, struct run **ret);

/* Not as many connections as the daemon holds? */
bool runs_have_room(const struct daemon *d);

/* Systemd removed the cgroup directory @name from a part of a profile's slice. */
void runs_scope_gone(struct daemon *d, const char *name);

/* Tells all supervisors to end their guests. */
void runs_stop_all(struct daemon *d, enum ended reason);
