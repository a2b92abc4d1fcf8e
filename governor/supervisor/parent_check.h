/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pidfd of the caller's parent (--with-parent). It is polled as long as the guest runs, and
 * poll(2) on a descriptor of a hostile file system can block for ever, so what came must be known
 * to be a pidfd before. It need not be the parent's: with whom its guest ends is the caller's
 * decision.
 */
#pragma once

#include "common/error.h"

/* 0; 1 when that process has ended already; -EINVAL when it is no pidfd. May block on a hostile
 * descriptor: only the supervisor calls it, under its deadline. */
int parent_check(int fd, struct error *e);

/* The pure part: the text of /proc/PID/fdinfo/FD, see proc_pid_fdinfo(5). */
int parent_check_text(const char *fdinfo, struct error *e);
