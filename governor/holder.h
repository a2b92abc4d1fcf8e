/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that keeps a scope: systemd takes a scope away, and the counters with it, the moment
 * its last process is gone. A holder sleeps until it is killed; it shares the memory of its maker
 * and has no descriptors, so it costs a kernel stack.
 *
 * Why not the supervisor itself: it would be slowed, frozen and charged with the guest, and could
 * not report after the scope is gone, which is when a run is over.
 */
#pragma once

#include <sys/types.h>

/* Starts one; it dies with the calling process. Returns its pid or a negative errno. */
pid_t holder_start(void);

/* Kills and reaps it. Sets *@holder to 0. Fine when it is 0 already. */
void holder_stop(pid_t *holder);
