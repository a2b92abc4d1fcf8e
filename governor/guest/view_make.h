/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Directories, mount points and the host's places in a guest's root, as long as all that can be
 * written to in there is in memory of its own: the child that makes them is root. */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "governor/guest/view_base.h"

/* mkdir -p of what is above @path. */
int view_make_parents(const char *path, struct error *e);

/* A directory or an empty file at @path, to attach a mount to; it may be there. */
int view_make_mount_point(const char *path, bool is_directory, struct error *e);

/* Attaches a detached tree of mounts to @path below @to, or to @to itself when that is "". */
int view_attach(int tree, int to, const char *path);

/* Minus errno, with "PATH of the guest's view cannot be WHAT". */
int view_cannot(const char *what, const char *path, struct error *e);

/* A detached copy of what is at @path below @fd, closed: read-only, without set-user-ID programs
 * and devices. @flags: of open_tree(2). @name is for the sentence. In the host's namespace. */
int view_pick_up(int fd, const char *path, unsigned int flags, const char *name, int *ret,
		 struct error *e);

/* Of the places @from up to @to of the base, those that are no links. */
int view_pick_up_places(const struct view_base *b, size_t from, size_t to, int *trees,
			struct error *e);

/* Attaches such a tree to @path, which is absolute, below the working directory: the new root. */
int view_show_tree(int tree, const char *path, struct error *e);

/* With the mount points and the links. */
int view_show_places(const struct view_base *b, size_t from, size_t to, const int *trees,
		     struct error *e);
