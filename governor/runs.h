/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's side of every connection: which supervisor asks what, who holds which uid, which
 * scope is still there. A uid goes back to the pool only when systemd has taken its scope away.
 */
#pragma once

#include "governor/daemon.h"

/* Forks the supervisor of a new connection. Takes @client over. */
void runs_accept(struct daemon *d, int client);

/* Systemd removed the cgroup directory @name from the profile's slice. */
void runs_scope_gone(struct daemon *d, const char *name);

/* Tells all supervisors to end their guests. */
void runs_stop_all(struct daemon *d, enum ended reason);

/* No more connections than this are held at once, whoever they belong to. */
uint32_t runs_max(const struct daemon *d);
