/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest's view starts with, which is the same whoever comes: a root in memory with its
 * directories and devices, the built-in places of the host, and the private directories. It can
 * wait for its guest in a mount namespace of its own.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "governor/guest/view_base.h"

struct view_start {
	int ground; /* view_ground_make() */
	const struct view_base *base;
	uint64_t tmp_bytes; /* of each private directory; LIMIT_INFINITY: half of the memory */
};

/* From the daemon's mount namespace into a new one that has it, with root and working directory
 * "/" and umask 022. The root can still be written to. */
int view_start_make(const struct view_start *start, struct error *e);

/* The same, into one that was made before, for @tmp_bytes: a descriptor of that. */
int view_start_enter(int made, uint64_t tmp_bytes, const struct view_start *start, struct error *e);
