/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cgroups of one guest, below the scope that systemd made (cgroup-v2.rst):
 *
 *	harpe-<id>.scope/	memory.max memory.swap.max cpu.max io.weight, set by systemd, so it
 *				shows them
 *	    sup/		the holder: keeps the scope until all counters were read
 *	    guest/		the guest; memory.oom.group, pids.max, io.max; killed with one write
 *
 * The scope is delegated, so everything below it is ours. cpu.max of the scope itself is systemd's,
 * with one exception: it is lifted while nothing of the guest runs (set-up) and for the kill, since
 * a throttled process takes seconds to die; in between stands exactly what systemd wrote. io.max is
 * lifted for the kill as well.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/limits.h"
#include "common/report.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

struct cgroup {
	int scope_fd, guest_fd; /* O_PATH directories */
	const char *path;	/* of the scope; borrowed */
	uint32_t untold;	/* limits_untold(): what may be missing */
	char cpu_max[64];	/* as systemd set it */
};

#define CGROUP_NULL ((struct cgroup){ .scope_fd = -1, .guest_fd = -1 })

/* Opens the scope, moves @holder into sup/, makes guest/ with @limits' pids.max and io.max, lifts
 * cpu.max. */
int cgroup_prepare(struct cgroup *cg, const char *scope_path, pid_t holder,
		   const struct limits *limits, struct error *e);
void cgroup_close(struct cgroup *cg);

/* Puts cpu.max back: the last step before the guest is released. */
int cgroup_throttle(struct cgroup *cg, struct error *e);

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

/* Is @pid in guest/? 0 or -ESTALE. */
int cgroup_verify_member(const struct cgroup *cg, pid_t pid, struct error *e);

/* Kills everything in guest/ at once (cgroup.kill) and waits until it is empty. -ETIMEDOUT when
 * something is still there after @timeout_ms. */
int cgroup_kill(struct cgroup *cg, int timeout_ms, struct error *e);

/* Kills everything below the scope directory @dirfd, whoever it belongs to; waits for nothing. */
void cgroup_kill_scope(int dirfd);

/* Removes the directories of a scope that systemd has given up on: fails, harmlessly, as long as
 * something lives in there. */
void cgroup_remove_scope(const char *path);

/* Stops everything in guest/ at once, or lets it go on. Killing works either way. */
int cgroup_freeze(const struct cgroup *cg, int freeze, struct error *e);

/* Processes and threads in guest/, or REPORT_UNKNOWN. */
uint64_t cgroup_tasks(const struct cgroup *cg);

/* CPU time used by everything that ever ran in guest/, microseconds. */
int cgroup_cpu_usage(const struct cgroup *cg, uint64_t *ret_usec);

/* Fills in the counters; what this kernel lacks stays REPORT_UNKNOWN. */
void cgroup_counters(const struct cgroup *cg, struct report *report);

/* The same of a scope that somebody else made, before it is killed. */
void cgroup_counters_at(const char *scope_path, struct report *report);

/* Looks at what the memory is made of now, and keeps the largest of each (memory.stat): anonymous
 * memory, files in memory (tmpfs, shared memory), and the rest of the page cache, which the kernel
 * can drop. Of processes that are dead only the last can still be seen. */
void cgroup_sample_memory(const struct cgroup *cg, struct report *report);
