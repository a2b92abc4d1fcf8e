/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which descriptors a caller may hand to a guest as 0, 1 and 2. A firewall cannot see what is sent
 * through a socket that existed before, so this is an allow-list: regular files (but
 * none of the kernel's own file systems, such as /proc and /sys), pipes,
 * /dev/{null,zero,full,random,urandom}, connected stream Unix sockets. Terminals never: terminal.h.
 */
#pragma once

#include "common/error.h"

/* 0, or a negative errno with a sentence that names @name ("standard input") and what it is. May
 * block on a hostile descriptor: only the supervisor calls it, under its deadline. */
int stdio_check(int fd, const char *name, struct error *e);
