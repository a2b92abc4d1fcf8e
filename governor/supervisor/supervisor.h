/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process per connection, started by the daemon before there is one. It alone touches what the
 * peer sent. It has no descriptor of the daemon's but its end of a pair, the ground of views and,
 * as long as it waits, the listener.
 */
#pragma once

#include "governor/supervisor/guest.h"

/* The numbers of its descriptors: while it waits, there is no client's; what it begins with
 * (means.h) it does not keep. */
enum {
	SUPERVISOR_CLIENT_FD = 3,
	SUPERVISOR_DAEMON_FD,
	SUPERVISOR_GROUND_FD,
	SUPERVISOR_LISTENER_FD,
	SUPERVISOR_MEANS_FD,
};

/* Exit status of the program when it does not fit the daemon that started it (means_build()). */
#define SUPERVISOR_MISFIT 2

/* Waits for one connection at @listener, which is non-blocking, and serves it to its end; ends as
 * soon as @daemon says anything before that, or is closed. The connection, @daemon and the ground
 * of @means are then the only descriptors that stay open besides 0, 1 and 2. Never returns. */
void supervisor_main(int listener, int daemon, const struct guest_means *means)
	__attribute__((noreturn));
