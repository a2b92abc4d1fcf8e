/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest sees of the file systems: a root of its own, in memory and read-only, with the
 * view's base, what the caller handed over, and /dev, /proc, /tmp, /var/tmp, /dev/shm and
 * /dev/mqueue of its own. Nothing else of the host's is there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "governor/guest/handed.h"
#include "governor/guest/view_start.h"

struct view_plan {
	struct view_start start;
	int prepared; /* the mount namespace that was made before, of spaces_make(); -1 = none */
	uint64_t prepared_tmp_bytes;
	const struct view_item *items; /* VIEW_ITEMS_MAX of the request */
	struct handed *handed;
	uint32_t uid;
	bool resolver; /* the guest may ask name servers */
	bool own_pts;  /* no: its devpts comes with its terminal */
};

/* In the child, in an IPC namespace of its own and still in the daemon's mount namespace, still
 * root. On failure the sentence says which place. */
int view_build(const struct view_plan *plan, struct error *e);

/* In the child, as the guest: enters the working directory and makes sure that it is the caller's.
 */
int view_enter_cwd(const struct handed *handed, struct error *e);

/* In the supervisor: does process @pid have a root of its own that is read-only, and a mount
 * namespace that is not @ground? Returns a descriptor of that, which keeps it: what
 * dies with it would hold up the end of the last process in it. */
int view_verify(pid_t pid, int ground, int *ret_mounts, struct error *e);
