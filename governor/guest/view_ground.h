/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ground that views are built on: a mount namespace that has nothing but an empty, read-only
 * directory. A guest's own is a copy of this one. A copy of the host's would have to lose the
 * host's mounts again, which waits for all processors (namespace_unlock() of the kernel's
 * fs/namespace.c) and looks at every process (pivot_root(2)).
 */
#pragma once

#include "common/error.h"

#define VIEW_GROUND_ROOT "/root" /* in it: the mount point of the new root */

/* Returns a descriptor of it. In a process with one thread, which gets root and working directory
 * "/". */
int view_ground_make(struct error *e);
