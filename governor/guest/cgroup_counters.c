/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/cgroup_counters.h"

#include <fcntl.h>
#include <stdbool.h>

#include <stdio.h>

#include "common/fd.h"
#include "governor/guest/cgroup_io.h"

#define TEXT_MAX 4096

static uint64_t number_or_unknown(int dirfd, const char *file)
{
	uint64_t n;

	return read_number_at(dirfd, file, &n) == 0 ? n : REPORT_UNKNOWN;
}

static uint64_t keyed_or_unknown(const char *text, const char *key)
{
	uint64_t n;

	return keyed_u64(text, key, &n) == 0 ? n : REPORT_UNKNOWN;
}

uint64_t cgroup_tasks(const struct cgroup *cg)
{
	return number_or_unknown(cg->guest_fd, "pids.current");
}

uint64_t cgroup_memory(const struct cgroup *cg)
{
	return number_or_unknown(cg->guest_fd, "memory.current");
}

int cgroup_cpu_usage(const struct cgroup *cg, uint64_t *ret_usec)
{
	char text[TEXT_MAX];
	ssize_t n = read_file_at(cg->guest_fd, "cpu.stat", text, sizeof(text));

	return n < 0 ? (int)n : keyed_u64(text, "usage_usec", ret_usec);
}

/* Before guest/ is there, and when it is gone, nothing is known. */
void cgroup_count_row(struct guest_row *row, bool brief)
{
	char path[PATH_TEXT_MAX + 8];
	_cleanup_(cgroup_close) struct cgroup cg = CGROUP_NULL;

	row->memory_bytes = row->memory_peak = row->pids = row->cpu_usec = UINT64_MAX;
	snprintf(path, sizeof(path), "%s/guest", row->cgroup);
	cg.guest_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!row->cgroup[0] || cg.guest_fd < 0)
		return;
	read_number_at(cg.guest_fd, "memory.current", &row->memory_bytes);
	if (brief)
		return;
	read_number_at(cg.guest_fd, "memory.peak", &row->memory_peak);
	read_number_at(cg.guest_fd, "pids.current", &row->pids);
	cgroup_cpu_usage(&cg, &row->cpu_usec);
}

/* cpu.stat of guest/ for the time used; for throttling that of whoever has the quota. */
static void cpu_counters(const struct cgroup *cg, bool own_limits, struct report *report)
{
	char text[TEXT_MAX];
	bool is_read = read_file_at(cg->guest_fd, "cpu.stat", text, sizeof(text)) >= 0;

	if (is_read) {
		report->cpu_usec = keyed_or_unknown(text, "usage_usec");
		report->cpu_user_usec = keyed_or_unknown(text, "user_usec");
		report->cpu_system_usec = keyed_or_unknown(text, "system_usec");
	}
	if (!own_limits)
		is_read = read_file_at(cg->scope_fd, "cpu.stat", text, sizeof(text)) >= 0;
	if (is_read)
		report->throttled_usec = keyed_or_unknown(text, "throttled_usec");
}

/* How often the limit of this very cgroup was hit. */
static uint64_t local_ooms(int dirfd)
{
	char text[TEXT_MAX];

	if (read_file_at(dirfd, "memory.events.local", text, sizeof(text)) < 0)
		return REPORT_UNKNOWN;
	return keyed_or_unknown(text, "oom");
}

static void all_counters(const struct cgroup *cg, bool own_limits, struct report *report)
{
	char text[TEXT_MAX];

	if (cg->guest_fd < 0)
		return;
	cpu_counters(cg, own_limits, report);
	report->memory_limit_hits = local_ooms(own_limits ? cg->guest_fd : cg->scope_fd);
	report->memory_peak = number_or_unknown(cg->guest_fd, "memory.peak");
	report->swap_peak = number_or_unknown(cg->guest_fd, "memory.swap.peak");
	report->pids_peak = number_or_unknown(cg->guest_fd, "pids.peak");
	if (read_file_at(cg->guest_fd, "memory.events", text, sizeof(text)) >= 0)
		report->memory_oom_kills = keyed_or_unknown(text, "oom_kill");
	if (read_file_at(cg->guest_fd, "pids.events", text, sizeof(text)) >= 0)
		report->pids_refused = keyed_or_unknown(text, "max");
	cgroup_io_bytes(cg->guest_fd, &report->io_read, &report->io_written);
}

uint64_t cgroup_scope_ooms(const struct cgroup *cg)
{
	return local_ooms(cg->scope_fd);
}

/* What an earlier guest left is charged to the scope: then that is full before guest/ is. */
static void add_ooms_of_scope(const struct cgroup *cg, struct report *report)
{
	uint64_t now = cgroup_scope_ooms(cg);

	if (report->memory_limit_hits != REPORT_UNKNOWN && now != REPORT_UNKNOWN &&
	    now > cg->ooms_before)
		report->memory_limit_hits += now - cg->ooms_before;
}

void cgroup_counters(const struct cgroup *cg, struct report *report)
{
	all_counters(cg, cg->made != NULL, report);
	if (cg->made)
		add_ooms_of_scope(cg, report);
}

void cgroup_counters_at(const char *scope_path, struct report *report)
{
	_cleanup_(cgroup_close) struct cgroup cg = CGROUP_NULL;
	uint64_t max = LIMIT_INFINITY;

	cg.scope_fd = open(scope_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cg.scope_fd >= 0)
		cg.guest_fd = openat(cg.scope_fd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);
	read_number_at(cg.guest_fd, "memory.max", &max);
	all_counters(&cg, max != LIMIT_INFINITY, report);
}

static void keep_largest(uint64_t *largest, uint64_t value)
{
	if (*largest == REPORT_UNKNOWN || value > *largest)
		*largest = value;
}

void cgroup_sample_memory(const struct cgroup *cg, struct report *report)
{
	char text[TEXT_MAX];
	uint64_t anon, file, shmem;

	if (cg->guest_fd < 0 || read_file_at(cg->guest_fd, "memory.stat", text, sizeof(text)) < 0 ||
	    keyed_u64(text, "anon", &anon) < 0 || keyed_u64(text, "file", &file) < 0 ||
	    keyed_u64(text, "shmem", &shmem) < 0)
		return;
	keep_largest(&report->memory_cache, file > shmem ? file - shmem : 0);
	if (anon == 0) /* nobody is alive: what there was is gone */
		return;
	keep_largest(&report->memory_anon, anon);
	keep_largest(&report->memory_shmem, shmem);
}
