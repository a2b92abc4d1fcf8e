/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that keeps a scope: systemd takes a scope away, and the counters with it, the moment
 * its last process is gone. A holder sleeps until it is killed; it shares the memory of the daemon
 * and has no descriptors, so it costs its two stacks.
 *
 * Why not the supervisor itself: it would be slowed, frozen and charged with the guest, and could
 * not report after the scope is gone, which is when a run is over. Why a child of the daemon: its
 * pid must not be used again while systemd may still be about to move it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct holder {
	pid_t pid; /* 0 = none */
	void *stack;
};

/* Starts one; it dies with the calling process. 0 or a negative errno. */
int holder_start(struct holder *ret);

/* Kills it, but leaves its pid taken. Fine when there is none. */
void holder_kill(const struct holder *h);

/* Is it dead already? */
bool holder_is_dead(const struct holder *h);

/* Kills and reaps it. Fine when there is none. */
void holder_stop(struct holder *h);
