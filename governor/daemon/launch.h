/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting supervisors. */
#pragma once

#include <sys/types.h>

struct launch {
	int program; /* a descriptor of it: the one that was there when the daemon began */
	int daemon, ground, listener, means; /* see supervisor.h */
};

/* Starts one, as posix_spawn(3) does: the daemon's memory, of which there may be much, is not
 * copied, and the daemon goes on when the program has begun. Returns its id or a
 * negative errno. */
pid_t launch_supervisor(const struct launch *s);
