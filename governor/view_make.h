/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Directories and mount points in a guest's root, as long as all that can be written to in there is
 * in memory of its own: the child that makes them is root. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* mkdir -p of what is above @path. */
int view_make_parents(const char *path, struct error *e);

/* A directory or an empty file at @path, to attach a mount to; it may be there. */
int view_make_mount_point(const char *path, bool is_directory, struct error *e);

/* Attaches a detached tree of mounts to @path below @to, or to @to itself when that is "". */
int view_attach(int tree, int to, const char *path);

/* Minus errno, with "PATH of the guest's view cannot be WHAT". */
int view_cannot(const char *what, const char *path, struct error *e);
