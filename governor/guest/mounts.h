/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc/PID/mountinfo says (proc(5)) of the mount namespace that this process is in. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "governor/guest/view_base.h"

/* -EBUSY with a sentence when something is mounted below the directory @fd, whose path is @path.
 * @proc is a procfs that can be trusted: there may be another one in this namespace. */
int mounts_refuse_below(int proc, int fd, const char *path, struct error *e);

/* The pure part: the first mount point at or below @path on the mount @id, unescaped; NULL when
 * there is none. Returns @buf. */
const char *mounts_find_below(FILE *mountinfo, uint64_t id, const char *path, char *buf,
			      size_t size);

/* A number for what is mounted at and below the built-in places of the view: another one when that
 * was changed. */
uint64_t mounts_fingerprint(FILE *mountinfo, const struct view_base *base);
