/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel has counted of a guest. */
#pragma once

#include <stdbool.h>

#include "common/report.h"
#include "common/request.h"
#include "governor/guest/cgroup.h"

/* Processes and threads in guest/, or REPORT_UNKNOWN. */
uint64_t cgroup_tasks(const struct cgroup *cg);

/* All memory that is charged to guest/, or REPORT_UNKNOWN. */
uint64_t cgroup_memory(const struct cgroup *cg);

/* CPU time used by everything that ever ran in guest/, microseconds. */
int cgroup_cpu_usage(const struct cgroup *cg, uint64_t *ret_usec);

/* How often the scope's own memory limit was hit, by all guests that it had, or REPORT_UNKNOWN. */
uint64_t cgroup_scope_ooms(const struct cgroup *cg);

/* Fills in the counters; what this kernel lacks stays REPORT_UNKNOWN. */
void cgroup_counters(const struct cgroup *cg, struct report *report);

/* The same of a scope that somebody else made, before it is killed. */
void cgroup_counters_at(const char *scope_path, struct report *report);

/* Fills in the counters of the guest in @row->cgroup, @brief: only memory_bytes; UINT64_MAX for the
 * others and where there is nothing to read. */
void cgroup_count_row(struct guest_row *row, bool brief);

/* Looks at what the memory is made of now, and keeps the largest of each (memory.stat): anonymous
 * memory, files in memory (tmpfs, shared memory), and the rest of the page cache, which the kernel
 * can drop. Of processes that are dead only the last can still be seen. */
void cgroup_sample_memory(const struct cgroup *cg, struct report *report);
