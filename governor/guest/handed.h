/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of the file systems the caller hands over: its working directory, and what it names with
 * --ro and --rw. It comes as descriptors that the caller itself opened, so that nobody can hand
 * over what it cannot reach; here they become detached mounts, which the child attaches to its
 * view.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/request.h"
#include "governor/guest/caller.h"
#include "governor/guest/view_base.h"

struct handed_tree {
	enum view_kind kind; /* VIEW_NONE: the working directory */
	int fd;		     /* O_PATH, as received */
	int tree;	     /* a detached copy of its mount */
	bool is_directory;
	uint32_t gid;	   /* that it belongs to */
	char *path;	   /* as the kernel names it */
	const char *alias; /* the path that the caller wrote, "" when there is nothing to add */
	size_t item;	   /* its place in the request */
};

struct handed {
	struct handed_tree trees[VIEW_ITEMS_MAX + 1]; /* those above others first */
	size_t n_trees;
	int cwd;	/* O_PATH, as received; borrowed */
	char *cwd_path; /* as the kernel names it */
};

struct handed_call {
	const struct request *request;
	const struct caller *caller;
	const struct view_base *base; /* what is in every view is not needed twice */
	int cwd, mntns;
	const int *fds; /* one for each item that has one; borrowed */
};

/* In the supervisor: looks at all of it and clones the mounts. open_tree(2) works only in the mount
 * namespace that a descriptor came from, so the supervisor enters the caller's for those calls; it
 * must belong to the initial user namespace. A --rw directory must belong to the caller, who is not
 * root, and have nothing mounted below. On failure there is nothing to close. */
int handed_open(const struct handed_call *call, struct handed *ret, struct error *e);

/* Makes every --rw directory look as if it belonged to @uid. */
int handed_map(struct handed *h, const struct caller *caller, uint32_t uid, struct error *e);

/* For a guest that may make user namespaces: -EPERM when @h or @q asks for what does not hold then.
 * It can enter a mount namespace without these mounts and there rename, through a descriptor from
 * before, what is a mount point in the old one; the kernel then takes the mount away from everybody
 * (vfs_rename(), detach_mounts()). So there are no pins, nothing hidden, and nothing read-only in
 * what can be written to. @profile is for the sentence. */
int handed_check_lasting(const struct handed *h, const struct request *q, const char *profile,
			 struct error *e);

void handed_close(struct handed *h);
