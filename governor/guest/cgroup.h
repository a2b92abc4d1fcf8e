/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cgroups of one guest, below the scope that systemd made (cgroup-v2.rst):
 *
 *	harpe-<id>.scope/	memory.max memory.swap.max cpu.max io.weight, set by systemd, so it
 *				shows them
 *	    sup/		the holder: keeps the scope until all counters were read
 *	    guest/		the guest; memory.oom.group, pids.max, io.max; killed at once
 *
 * A scope that was made before the request came (slots.h) may have more than that asks for: there
 * guest/ has memory.max, memory.swap.max and cpu.max of its own as well.
 *
 * The scope is delegated, so everything below it is ours. cpu.max of the scope itself is systemd's,
 * with one exception: it is lifted while nothing of the guest runs (set-up), if it is less than one
 * CPU, and for the kill, since a throttled process takes seconds to die; in between stands exactly
 * what systemd wrote. The same goes for guest/'s own, and io.max is lifted for the kill as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/limits.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

struct cgroup {
	int scope_fd, guest_fd;	   /* O_PATH directories */
	const char *path;	   /* of the scope; borrowed */
	uint32_t untold;	   /* limits_untold(): what may be missing */
	const struct limits *made; /* with which systemd made the scope; borrowed. NULL: as asked,
				    * and guest/ has none of its own */
	uint64_t ooms_before;	   /* of the scope, when the guest came */
	bool lifted;		   /* cpu.max is: of the scope, and of guest/ if it has its own */
	char cpu_max[64];	   /* of the scope, as systemd set it */
	char guest_cpu_max[CPU_MAX_TEXT_MAX]; /* "" = none of its own */
};

#define CGROUP_NULL ((struct cgroup){ .scope_fd = -1, .guest_fd = -1 })

/* Opens the scope, moves @holder into sup/ and makes guest/. */
int cgroup_make(struct cgroup *cg, const char *scope_path, pid_t holder, struct error *e);

/* Opens what cgroup_make() made, in another process. -ESTALE when somebody froze it meanwhile. */
int cgroup_open(struct cgroup *cg, const char *scope_path, struct error *e);

/* Makes guest/ anew, with new counters, in a scope whose guest is gone. -EBUSY when something lives
 * there, or more memory or swap is still charged to the scope, which was made with @made, than a
 * sixteenth of its limit. */
int cgroup_renew(struct cgroup *cg, const char *scope_path, const struct limits *made,
		 struct error *e);
void cgroup_close(struct cgroup *cg);

/* Writes what of @limits is guest/'s, and lifts a cpu.max that would slow the set-up. @made, which
 * is borrowed, is what a scope was made with that waited for its guest: not less of anything. Else
 * NULL. */
int cgroup_bound(struct cgroup *cg, const struct limits *limits, const struct limits *made,
		 struct error *e);

/* Puts cpu.max back if it is lifted: the last step before the guest is released. */
int cgroup_throttle(struct cgroup *cg, struct error *e);

/* Is @pid, which has no threads and children yet, in guest/, and nobody else? 0 or -ESTALE. */
int cgroup_verify_member(const struct cgroup *cg, pid_t pid, struct error *e);

/* Kills everything in guest/ at once (cgroup.kill) and waits until it is empty; where nobody is
 * left that is all. -ETIMEDOUT when something is still there after @timeout_ms. */
int cgroup_kill(struct cgroup *cg, int timeout_ms, struct error *e);

/* Kills everything below the scope directory @dirfd, whoever it belongs to; waits for nothing. */
void cgroup_kill_scope(int dirfd);

/* Removes the directories of a scope that systemd has given up on: fails, harmlessly, as long as
 * something lives in there. */
void cgroup_remove_scope(const char *path);

/* Stops everything in guest/ at once, or lets it go on. Killing works either way. */
int cgroup_freeze(const struct cgroup *cg, int freeze, struct error *e);
