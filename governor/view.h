/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest sees of the file systems: the host's, with /tmp, /var/tmp, /dev/shm, /run and
 * /dev/mqueue of its own, and the caller's working directory at its own path.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"

#define VIEW_PATH_MAX 4096

/* The caller's working directory, as the supervisor prepares it. */
struct view_cwd {
	int fd;			  /* O_PATH, as received; borrowed */
	int tree;		  /* detached copy of its mount, or -1 when none is needed */
	char path[VIEW_PATH_MAX]; /* as the kernel names it */
};

#define VIEW_CWD_NULL ((struct view_cwd){ .fd = -1, .tree = -1 })

/* In the supervisor: finds the path of @cwd_fd and, when a private directory would hide it, clones
 * its mount. @mntns_fd is the caller's mount namespace: open_tree(2) works only in the one that the
 * descriptor came from, so the supervisor enters it for that one call; it must belong to the
 * initial user namespace. */
int view_cwd_open(int cwd_fd, int mntns_fd, struct view_cwd *ret, struct error *e);
void view_cwd_close(struct view_cwd *cwd);

/* In the child, in mount and IPC namespaces of its own, still root. @tmp_bytes is the size of each
 * private directory. On failure the sentence says which mount. */
int view_build(const struct view_cwd *cwd, uint64_t tmp_bytes, struct error *e);

/* In the child, as the guest: enters the working directory and makes sure that it is the caller's.
 */
int view_enter_cwd(const struct view_cwd *cwd, struct error *e);
