/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/text.h"
#include "governor/cgroup_io.h"

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

/* The limits that there is no guest without, and those that need io. */
#define NEEDED_IO (1u << LIMIT_IO_WEIGHT | 1u << LIMIT_IO_READ | 1u << LIMIT_IO_WRITE)

static const struct controller {
	const char *name, *enable;
	uint32_t limits; /* what it is needed for */
	const char *options;
} controllers[] = {
	{ "cpu", "+cpu", 1u << LIMIT_CPU, "" },
	{ "memory", " +memory", 1u << LIMIT_MEMORY, "" },
	{ "pids", " +pids", 1u << LIMIT_PIDS, "" },
	{ "io", " +io", NEEDED_IO, ", and io-weight, io-read and io-write need it" },
};

static int enable_controllers(const struct cgroup *cg, struct error *e)
{
	char available[256], enable[64] = "";

	if (read_file_at(cg->scope_fd, "cgroup.controllers", available, sizeof(available)) < 0)
		available[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		const struct controller *c = &controllers[i];

		if (text_has_word(available, c->name))
			strcat(enable, c->enable);
		else if (c->limits & ~cg->untold)
			return error_set(e, -ENOENT,
					 "the %s controller is not available in %s%s; look for "
					 "DisableControllers= in the slices above",
					 c->name, cg->path, c->options);
	}
	return write_in(cg, cg->scope_fd, "cgroup.subtree_control", enable, e);
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
	r = set_pids_max(cg, limits->value[LIMIT_PIDS], e);
	return r < 0 ? r : cgroup_io_bound(cg->guest_fd, cg->path, limits, e);
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

static int read_cpu_max(int dirfd, enum limit limit, uint64_t *ret)
{
	(void)limit;
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

enum place {
	ON_SCOPE,
	ON_GUEST,
	ON_GUEST_BY_DISK, /* see cgroup_io.h */
};

static const struct in_force {
	enum limit limit;
	const char *file;
	enum place place;
	bool bounds_below; /* cgroups below get no more than this */
	int (*read)(int dirfd, enum limit limit, uint64_t *ret); /* NULL: it is one number */
} files[] = {
	{ LIMIT_MEMORY, "memory.max", ON_SCOPE, true, NULL },
	{ LIMIT_SWAP, "memory.swap.max", ON_SCOPE, true, NULL },
	{ LIMIT_CPU, "cpu.max", ON_SCOPE, true, read_cpu_max },
	{ LIMIT_PIDS, "pids.max", ON_GUEST, true, NULL },
	{ LIMIT_IO_WEIGHT, "io.weight", ON_SCOPE, false, cgroup_io_weight },
	{ LIMIT_IO_READ, "io.max", ON_GUEST_BY_DISK, true, cgroup_io_smallest },
	{ LIMIT_IO_WRITE, "io.max", ON_GUEST_BY_DISK, true, cgroup_io_smallest },
};

static int read_limit(int dirfd, const struct in_force *f, uint64_t *ret)
{
	return f->read ? f->read(dirfd, f->limit, ret) : read_number(dirfd, f->file, ret);
}

/* The kernel's own value, none, stays where systemd may not use the controller. */
static int refuse_limit(const struct cgroup *cg, const struct in_force *f, uint64_t have,
			uint64_t want, struct error *e)
{
	const char *below = f->place == ON_GUEST ? "/guest" : "";

	if (have == LIMIT_INFINITY)
		return error_set(e, -ESTALE,
				 "%s%s/%s: is max where %" PRIu64 " was set, as when the %.*s "
				 "controller is not available in the slices above: look for "
				 "DisableControllers= there",
				 cg->path, below, f->file, want, (int)strcspn(f->file, "."),
				 f->file);
	return error_set(e, -ESTALE, "%s%s/%s: is %" PRIu64 " where %" PRIu64 " was set", cg->path,
			 below, f->file, have, want);
}

/* Compares one limit with what is to be in force, which becomes what is: LIMIT_UNSET when this
 * kernel has no such thing and nobody needs it. */
static int verify_limit(const struct cgroup *cg, const struct in_force *f, uint64_t *in_force,
			struct error *e)
{
	uint64_t want = *in_force, have;
	int r = read_limit(f->place == ON_SCOPE ? cg->scope_fd : cg->guest_fd, f, &have);

	if (r == -ENOENT && (cg->untold & 1u << f->limit)) {
		*in_force = LIMIT_UNSET;
		return 0;
	}
	if (r < 0)
		return error_errno(e, r, "%s/%s: cannot be read back", cg->path, f->file);
	if (f->limit == LIMIT_CPU)
		want = cpu_as_written(want, cg->cpu_max);
	if (have != want)
		return refuse_limit(cg, f, have, want, e);
	*in_force = have; /* rounded, if at all */
	return 0;
}

static int verify_own(const struct cgroup *cg, struct limits *in_force, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		int r = f->place == ON_GUEST_BY_DISK
				? 0
				: verify_limit(cg, f, &in_force->value[f->limit], e);

		if (r < 0)
			return r;
	}
	return cgroup_io_verify(cg->guest_fd, cg->path, in_force, e);
}

/* Lowers @limits to what the directory @dirfd, which is @path, allows; only a file that is not
 * there limits nothing. */
static int lower_to(int dirfd, const char *path, struct limits *limits,
		    struct limit_origins *origins)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t have, *limit = &limits->value[f->limit];
		int r = f->bounds_below ? read_limit(dirfd, f, &have) : -ENOENT;

		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 || have >= *limit)
			continue;
		*limit = have;
		snprintf(origins->text[f->limit], ORIGIN_TEXT_MAX, "%s", path);
	}
	return 0;
}

/* Up to, and without, the root, which has no limits. */
int cgroup_lower(const char *path, struct limits *limits, struct limit_origins *origins,
		 struct error *e)
{
	char at[512];

	for (snprintf(at, sizeof(at), "%s", path); strlen(at) > strlen(CGROUP_ROOT);
	     *strrchr(at, '/') = '\0') {
		_cleanup_close_ int fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		int r = fd < 0 ? -errno : lower_to(fd, at, limits, origins);

		if (r < 0)
			return error_errno(e, r, "%s: its limits cannot be read", at);
	}
	return 0;
}

int cgroup_verify(const struct cgroup *cg, const struct limits *asked, struct limits *ret_in_force,
		  struct limit_origins *origins, struct error *e)
{
	struct limits in_force = *asked;
	char group[8];
	int r = verify_own(cg, &in_force, e);

	if (r < 0)
		return r;
	if (read_file_at(cg->guest_fd, "memory.oom.group", group, sizeof(group)) < 0 ||
	    strcmp(group, "1") != 0)
		return error_set(e, -ESTALE, "%s/guest/memory.oom.group: is not 1", cg->path);
	r = cgroup_lower(cg->path, &in_force, origins, e);
	if (r == 0)
		*ret_in_force = in_force;
	return r;
}

static bool is_unlimited(uint64_t value)
{
	return value == LIMIT_UNSET || value == LIMIT_INFINITY;
}

/* systemd rounds a CPU quota up to what it can write. */
static uint64_t most_allowed(int scope_fd, enum limit limit, uint64_t in_force)
{
	char cpu_max[64];
	uint64_t written;

	if (limit != LIMIT_CPU || read_file_at(scope_fd, "cpu.max", cpu_max, sizeof(cpu_max)) < 0)
		return in_force;
	written = cpu_as_written(in_force, cpu_max);
	return written > in_force ? written : in_force;
}

static int recheck_limits(int scope_fd, const char *path, const struct limits *in_force,
			  const struct limits *now, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t want = in_force->value[f->limit], have = now->value[f->limit];

		if (f->bounds_below && !is_unlimited(want) &&
		    have > most_allowed(scope_fd, f->limit, want))
			return error_set(e, -ESTALE,
					 "%s: %s: it and the cgroups above allow %" PRIu64
					 " where %" PRIu64 " was in force",
					 path, f->file, have, want);
	}
	return 0;
}

static int recheck_own(int scope_fd, int guest_fd, const char *path, const struct limits *own,
		       struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t want = own->value[f->limit], have;
		int r = f->bounds_below && !is_unlimited(want)
				? read_limit(f->place == ON_SCOPE ? scope_fd : guest_fd, f, &have)
				: -ENOENT;

		if (r < 0 && r != -ENOENT)
			return error_errno(e, r, "%s/%s: cannot be read", path, f->file);
		if (r == 0 && have > most_allowed(scope_fd, f->limit, want))
			return error_set(
				e, -ESTALE, "%s%s/%s: allows %" PRIu64 " where %" PRIu64 " was set",
				path, f->place == ON_SCOPE ? "" : "/guest", f->file, have, want);
	}
	return 0;
}

int cgroup_recheck(const char *scope_path, const struct limits *own, const struct limits *in_force,
		   struct error *e)
{
	_cleanup_close_ int scope = open(scope_path, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct limit_origins origins;
	struct limits now;
	char guest[512];
	int r;

	for (int i = 0; i < LIMIT_COUNT; i++)
		now.value[i] = LIMIT_INFINITY;
	snprintf(guest, sizeof(guest), "%s/guest", scope_path);
	fd = open(guest, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (scope < 0 || fd < 0)
		return error_errno(e, -errno, "%s: cannot be opened", guest);
	r = recheck_own(scope, fd, scope_path, own, e);
	if (r == 0)
		r = cgroup_lower(guest, &now, &origins, e);
	return r < 0 ? r : recheck_limits(scope, scope_path, in_force, &now, e);
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

/* cgroup.events wakes POLLPRI when it changes (cgroup-v2.rst, "[Un]populated Notification"). */
static int wait_empty(const struct cgroup *cg, int timeout_ms)
{
	_cleanup_close_ int fd = openat(cg->guest_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	uint64_t end = clock_usec(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000;

	if (fd < 0)
		return -errno;
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		uint64_t populated, now;

		if (n < 0)
			return -errno;
		text[n] = '\0';
		if (keyed_u64(text, "populated", &populated) == 0 && populated == 0)
			return 0;
		now = clock_usec(CLOCK_MONOTONIC);
		if (now >= end)
			return -ETIMEDOUT;
		poll(&p, 1, (int)((end - now) / 1000) + 1);
	}
}

int cgroup_kill(struct cgroup *cg, int timeout_ms, struct error *e)
{
	int r;

	if (cg->guest_fd < 0)
		return 0;
	lift_cpu(cg, NULL); /* it dies all the same, only later */
	cgroup_io_lift(cg->guest_fd);
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
	_cleanup_close_ int guest = openat(dirfd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (guest >= 0)
		cgroup_io_lift(guest);
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
	report->swap_peak = number_or_unknown(cg->guest_fd, "memory.swap.peak");
	report->pids_peak = number_or_unknown(cg->guest_fd, "pids.peak");
	if (read_file_at(cg->guest_fd, "memory.events", text, sizeof(text)) >= 0)
		report->memory_oom_kills = keyed_or_unknown(text, "oom_kill");
	if (read_file_at(cg->scope_fd, "memory.events.local", text, sizeof(text)) >= 0)
		report->memory_limit_hits = keyed_or_unknown(text, "oom");
	if (read_file_at(cg->guest_fd, "pids.events", text, sizeof(text)) >= 0)
		report->pids_refused = keyed_or_unknown(text, "max");
	cgroup_io_bytes(cg->guest_fd, &report->io_read, &report->io_written);
}

void cgroup_counters_at(const char *scope_path, struct report *report)
{
	_cleanup_(cgroup_close) struct cgroup cg = CGROUP_NULL;

	cg.scope_fd = open(scope_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cg.scope_fd >= 0)
		cg.guest_fd = openat(cg.scope_fd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cgroup_counters(&cg, report);
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
