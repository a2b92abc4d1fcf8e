/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/fd.h"

#define CPU_PERIOD_USEC	   100000u /* the kernel's default period of cpu.max */
#define CPU_QUOTA_MIN_USEC 1000u   /* the kernel's smallest quota */
#define TEXT_MAX	   4096

void cgroup_close(struct cgroup *cg)
{
	close_fd(&cg->scope_fd);
	close_fd(&cg->guest_fd);
	*cg = CGROUP_NULL;
}

static int write_in(const struct cgroup *cg, int dirfd, const char *file, const char *text,
		    struct error *e)
{
	int r = write_file_at(dirfd, file, text);

	if (r < 0)
		return error_errno(e, r, "%s/%s: cannot write \"%s\"", cg->path, file, text);
	return 0;
}

static int make_directory(const struct cgroup *cg, const char *name, struct error *e)
{
	if (mkdirat(cg->scope_fd, name, 0755) < 0)
		return error_errno(e, -errno, "%s/%s: cannot be made", cg->path, name);
	return 0;
}

static int enable_controllers(const struct cgroup *cg, struct error *e)
{
	static const char *const controllers[] = { "cpu", "memory", "pids" };
	char available[256], padded[260];

	if (read_file_at(cg->scope_fd, "cgroup.controllers", available, sizeof(available)) < 0)
		available[0] = '\0';
	snprintf(padded, sizeof(padded), " %s ", available);
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		char word[32];

		snprintf(word, sizeof(word), " %s ", controllers[i]);
		if (!strstr(padded, word))
			return error_set(e, -ENOENT,
					 "the %s controller is not available in %s; look for "
					 "DisableControllers= in the slices above",
					 controllers[i], cg->path);
	}
	return write_in(cg, cg->scope_fd, "cgroup.subtree_control", "+cpu +memory +pids", e);
}

static int set_pids_max(const struct cgroup *cg, uint64_t pids, struct error *e)
{
	char text[32] = "max";

	if (pids != LIMIT_INFINITY)
		snprintf(text, sizeof(text), "%" PRIu64, pids);
	return write_in(cg, cg->guest_fd, "pids.max", text, e);
}

static int make_guest(struct cgroup *cg, const struct limits *limits, struct error *e)
{
	int r = make_directory(cg, "guest", e);

	if (r < 0)
		return r;
	cg->guest_fd = openat(cg->scope_fd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cg->guest_fd < 0)
		return error_errno(e, -errno, "%s/guest: cannot be opened", cg->path);
	r = write_in(cg, cg->guest_fd, "memory.oom.group", "1", e);
	if (r < 0)
		return r;
	return set_pids_max(cg, limits->value[LIMIT_PIDS], e);
}

/* The scope itself may hold no process once it has controllers enabled below. */
static int move_holder(const struct cgroup *cg, pid_t holder, struct error *e)
{
	char pid[16];
	int r = make_directory(cg, "sup", e);

	if (r < 0)
		return r;
	snprintf(pid, sizeof(pid), "%d", holder);
	return write_in(cg, cg->scope_fd, "sup/cgroup.procs", pid, e);
}

static int lift_cpu(const struct cgroup *cg, struct error *e)
{
	return write_in(cg, cg->scope_fd, "cpu.max", "max", e);
}

int cgroup_prepare(struct cgroup *cg, const char *scope_path, pid_t holder,
		   const struct limits *limits, struct error *e)
{
	int r;

	cg->path = scope_path;
	cg->scope_fd = open(scope_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cg->scope_fd < 0)
		return error_errno(e, -errno, "%s: cannot be opened", scope_path);
	r = move_holder(cg, holder, e);
	if (r < 0)
		return r;
	r = enable_controllers(cg, e);
	if (r < 0)
		return r;
	r = make_guest(cg, limits, e);
	if (r < 0)
		return r;
	r = (int)read_file_at(cg->scope_fd, "cpu.max", cg->cpu_max, sizeof(cg->cpu_max));
	if (r < 0)
		return error_errno(e, r, "%s/cpu.max: cannot be read", scope_path);
	return lift_cpu(cg, e);
}

int cgroup_throttle(struct cgroup *cg, struct error *e)
{
	return write_in(cg, cg->scope_fd, "cpu.max", cg->cpu_max, e);
}

/* ---- reading back ---- */

/* cpu.max ("QUOTA PERIOD") as microseconds per second. */
static int parse_cpu_max(const char *text, uint64_t *ret_quota, uint64_t *ret_period)
{
	const char *blank = strchr(text, ' ');

	if (!blank)
		return -EINVAL;
	if (parse_u64_prefix(text, ret_quota) < 0 || parse_u64_prefix(blank + 1, ret_period) < 0)
		return -EINVAL;
	return *ret_period > 0 ? 0 : -EINVAL;
}

static int read_cpu_max(int dirfd, uint64_t *ret)
{
	char text[64];
	uint64_t quota, period;
	ssize_t n = read_file_at(dirfd, "cpu.max", text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (parse_cpu_max(text, &quota, &period) < 0)
		return -EINVAL;
	*ret = quota == LIMIT_INFINITY ? LIMIT_INFINITY : quota * USEC_PER_SEC / period;
	return 0;
}

static int read_number(int dirfd, const char *file, uint64_t *ret)
{
	char text[64];
	ssize_t n = read_file_at(dirfd, file, text, sizeof(text));

	if (n < 0)
		return (int)n;
	return parse_u64_prefix(text, ret);
}

/* What the kernel holds when systemd was asked for @asked: whole microseconds per period, at least
 * CPU_QUOTA_MIN_USEC (the period grows for small quotas). */
static uint64_t cpu_as_written(uint64_t asked, const char *cpu_max)
{
	uint64_t quota, period = CPU_PERIOD_USEC;

	if (asked == LIMIT_INFINITY || parse_cpu_max(cpu_max, &quota, &period) < 0)
		return asked;
	quota = asked * period / USEC_PER_SEC;
	if (quota < CPU_QUOTA_MIN_USEC)
		quota = CPU_QUOTA_MIN_USEC;
	return quota * USEC_PER_SEC / period;
}

static const struct in_force {
	enum limit limit;
	const char *file;
} files[] = {
	{ LIMIT_MEMORY, "memory.max" },
	{ LIMIT_SWAP, "memory.swap.max" },
	{ LIMIT_CPU, "cpu.max" },
	{ LIMIT_PIDS, "pids.max" },
};

static int read_limit(int dirfd, const struct in_force *f, uint64_t *ret)
{
	return f->limit == LIMIT_CPU ? read_cpu_max(dirfd, ret) : read_number(dirfd, f->file, ret);
}

static int verify_own(const struct cgroup *cg, const struct limits *asked, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t want = asked->value[f->limit], have;
		int dirfd = f->limit == LIMIT_PIDS ? cg->guest_fd : cg->scope_fd;
		int r = read_limit(dirfd, f, &have);

		if (r < 0)
			return error_errno(e, r, "%s/%s: cannot be read back", cg->path, f->file);
		if (f->limit == LIMIT_CPU)
			want = cpu_as_written(want, cg->cpu_max);
		if (have != want)
			return error_set(e, -ESTALE,
					 "%s%s/%s: is %" PRIu64 " where %" PRIu64 " was set",
					 cg->path, f->limit == LIMIT_PIDS ? "/guest" : "", f->file,
					 have, want);
	}
	return 0;
}

/* Lowers @limits to what the directory @dirfd allows; only a file that is not there limits nothing.
 */
static int lower_to(int dirfd, struct limits *limits)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		uint64_t have, *limit = &limits->value[files[i].limit];
		int r = read_limit(dirfd, &files[i], &have);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && have < *limit)
			*limit = have;
	}
	return 0;
}

/* From the scope up to, and without, the root, which has no limits. */
static int lower_to_path(const struct cgroup *cg, struct limits *limits, struct error *e)
{
	char path[512];

	for (snprintf(path, sizeof(path), "%s", cg->path); strlen(path) > strlen(CGROUP_ROOT);
	     *strrchr(path, '/') = '\0') {
		_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		int r = fd < 0 ? -errno : lower_to(fd, limits);

		if (r < 0)
			return error_errno(e, r, "%s: its limits cannot be read", path);
	}
	return 0;
}

int cgroup_verify(const struct cgroup *cg, const struct limits *asked, struct limits *ret_in_force,
		  struct error *e)
{
	char group[8];
	int r = verify_own(cg, asked, e);

	if (r < 0)
		return r;
	if (read_file_at(cg->guest_fd, "memory.oom.group", group, sizeof(group)) < 0 ||
	    strcmp(group, "1") != 0)
		return error_set(e, -ESTALE, "%s/guest/memory.oom.group: is not 1", cg->path);
	*ret_in_force = *asked;
	return lower_to_path(cg, ret_in_force, e);
}

int cgroup_verify_member(const struct cgroup *cg, pid_t pid, struct error *e)
{
	char file[64], text[TEXT_MAX], want[600];

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	snprintf(want, sizeof(want), "0::%s/guest", cg->path + strlen(CGROUP_ROOT));
	if (read_file_at(AT_FDCWD, file, text, sizeof(text)) < 0 || strcmp(text, want) != 0)
		return error_set(e, -ESTALE, "process %d is not in %s/guest", pid, cg->path);
	return 0;
}

/* ---- the end ---- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* cgroup.events wakes POLLPRI when it changes (cgroup-v2.rst, "[Un]populated Notification"). */
static int wait_empty(const struct cgroup *cg, int timeout_ms)
{
	_cleanup_close_ int fd = openat(cg->guest_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	int64_t deadline = now_ms() + timeout_ms;

	if (fd < 0)
		return -errno;
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		uint64_t populated;
		int64_t left;

		if (n < 0)
			return -errno;
		text[n] = '\0';
		if (keyed_u64(text, "populated", &populated) == 0 && populated == 0)
			return 0;
		left = deadline - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		poll(&p, 1, (int)left);
	}
}

int cgroup_kill(struct cgroup *cg, int timeout_ms, struct error *e)
{
	int r;

	if (cg->guest_fd < 0)
		return 0;
	lift_cpu(cg, NULL); /* it dies all the same, only later */
	r = write_file_at(cg->guest_fd, "cgroup.kill", "1");
	if (r == 0)
		r = wait_empty(cg, timeout_ms);
	if (r == -ENODEV || r == -ENOENT)
		return 0; /* systemd was faster */
	if (r < 0)
		return error_errno(e, r, "%s/guest: is not empty after SIGKILL", cg->path);
	return 0;
}

void cgroup_kill_scope(int dirfd)
{
	write_file_at(dirfd, "cpu.max", "max");
	write_file_at(dirfd, "cgroup.kill", "1");
}

void cgroup_remove_scope(const char *path)
{
	static const char *const below[] = { "/guest", "/sup", "" };
	char name[512];

	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		snprintf(name, sizeof(name), "%s%s", path, below[i]);
		rmdir(name);
	}
}

int cgroup_freeze(const struct cgroup *cg, int freeze, struct error *e)
{
	return write_in(cg, cg->guest_fd, "cgroup.freeze", freeze ? "1" : "0", e);
}

static uint64_t number_or_unknown(int dirfd, const char *file)
{
	uint64_t n;

	return read_number(dirfd, file, &n) == 0 ? n : REPORT_UNKNOWN;
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

int cgroup_cpu_usage(const struct cgroup *cg, uint64_t *ret_usec)
{
	char text[TEXT_MAX];
	ssize_t n = read_file_at(cg->guest_fd, "cpu.stat", text, sizeof(text));

	return n < 0 ? (int)n : keyed_u64(text, "usage_usec", ret_usec);
}

/* cpu.stat of the scope for throttling (the quota is there), of guest/ for the time used. */
static void cpu_counters(const struct cgroup *cg, struct report *report)
{
	char text[TEXT_MAX];

	if (read_file_at(cg->guest_fd, "cpu.stat", text, sizeof(text)) >= 0) {
		report->cpu_usec = keyed_or_unknown(text, "usage_usec");
		report->cpu_user_usec = keyed_or_unknown(text, "user_usec");
		report->cpu_system_usec = keyed_or_unknown(text, "system_usec");
	}
	if (read_file_at(cg->scope_fd, "cpu.stat", text, sizeof(text)) >= 0)
		report->throttled_usec = keyed_or_unknown(text, "throttled_usec");
}

void cgroup_counters(const struct cgroup *cg, struct report *report)
{
	char text[TEXT_MAX];

	if (cg->guest_fd < 0)
		return;
	cpu_counters(cg, report);
	report->memory_peak = number_or_unknown(cg->guest_fd, "memory.peak");
	report->pids_peak = number_or_unknown(cg->guest_fd, "pids.peak");
	if (read_file_at(cg->guest_fd, "memory.events", text, sizeof(text)) >= 0)
		report->memory_oom_kills = keyed_or_unknown(text, "oom_kill");
	if (read_file_at(cg->scope_fd, "memory.events.local", text, sizeof(text)) >= 0)
		report->memory_limit_hits = keyed_or_unknown(text, "oom");
	if (read_file_at(cg->guest_fd, "pids.events", text, sizeof(text)) >= 0)
		report->pids_refused = keyed_or_unknown(text, "max");
}
