/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What limits a cgroup has and those above it allow, read back from the kernel. */
#pragma once

#include "governor/guest/cgroup.h"

/* Reads every limit back, here and in all ancestors. -ESTALE when one is not as asked; else the
 * smallest values on the way up, which are what is in force: *origins becomes the path of the
 * ancestor for those. An io.weight that there is not is LIMIT_UNSET. Call after cgroup_throttle().
 */
int cgroup_verify(const struct cgroup *cg, const struct limits *asked, struct limits *ret_in_force,
		  struct limit_origins *origins, struct error *e);

/* Lowers *limits to what the cgroup @path and those above it allow; *origins becomes the path of
 * those that do. */
int cgroup_lower(const char *path, struct limits *limits, struct limit_origins *origins,
		 struct error *e);

/* Does the scope @scope_path still allow no more than @own, which it was made with, and, with all
 * above it, no more than @in_force, as cgroup_verify() found it when the guest started? -ESTALE
 * names the file that allows more; other errors: could not look. What is less now harms nobody. */
int cgroup_recheck(const char *scope_path, const struct limits *own, const struct limits *in_force,
		   struct error *e);
