/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The signals that `harpe-gov run` passes on to its guest. They are blocked but for the time of
 * ppoll(2), so a handler has nothing to do but to note them; eleven system calls per run, of which
 * nine are needed in any case to see what the caller ignores: that stays ignored.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

/* From now on they are noted. @ret_waiting is the mask for ppoll(2). */
void signals_catch(sigset_t *ret_waiting);

/* One that was noted, which is thereby forgotten; 0 when there is none. */
int signals_next(void);

/* Is @number one that ends a program which does not care? 0 is none. */
int signal_is_deadly(int number);

/* Does the caller let the client be stopped by SIGTSTP? */
int signals_can_stop(void);

/* Stops @whom, a process or 0 for the client's whole group, the client among it, by SIGTSTP;
 * returns when the client goes on, which is at once when no shell is there to let it go on. */
void signals_stop(pid_t whom);

/* They have their usual effect again: the guest is gone, and what is left to do may block. */
void signals_release(void);
