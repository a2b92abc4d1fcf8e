/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disk bandwidth of a cgroup, and how much it read and wrote (cgroup-v2.rst, "IO Interface Files").
 *
 * A bandwidth bounds each disk by itself: every block device that is there when the guest starts,
 * has a size and is not hidden, whatever lies on it. Not bounded: disks that come later, and what
 * is no block device's: tmpfs, network file systems.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"

/* Writes io.max below @dirfd for every disk; nothing when @limits bounds neither direction. @path
 * is for messages. */
int cgroup_io_bound(int dirfd, const char *path, const struct limits *limits, struct error *e);

/* Reads it back: -ESTALE names the disk that is not bounded as asked. */
int cgroup_io_verify(int dirfd, const char *path, const struct limits *limits, struct error *e);

/* Takes all bounds away: a process that waits for a throttled disk does not even die before its
 * turn comes, and that can be hours. */
void cgroup_io_lift(int dirfd);

/* The smallest bandwidths, of reading and of writing, that io.max below @dirfd gives any disk. */
int cgroup_io_smallest(int dirfd, uint64_t *ret_in, uint64_t *ret_out);

/* The default of io.weight below @dirfd; @limit is LIMIT_IO_WEIGHT. */
int cgroup_io_weight(int dirfd, enum limit limit, uint64_t *ret);

/* Bytes read and written, all disks together, by io.stat below @dirfd. */
int cgroup_io_bytes(int dirfd, uint64_t *ret_read, uint64_t *ret_written);

/* ---- text, nested keyed: "8:0 rbps=1048576 wbps=max riops=max wiops=max" ---- */

/* The value of @key on the line of @disk; -ENOENT when there is none. "max" is LIMIT_INFINITY. */
int io_value_of(const char *text, const char *disk, const char *key, uint64_t *ret);

/* The smallest and the sum of @key's values on all lines; LIMIT_INFINITY and 0 when there is none.
 * -EINVAL when one is no number, -ERANGE when they do not fit. */
int io_smallest(const char *text, const char *key, uint64_t *ret);
int io_sum(const char *text, const char *key, uint64_t *ret);
