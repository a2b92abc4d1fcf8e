/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/cgroup_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "governor/guest/cgroup_io.h"

#define CPU_PERIOD_USEC	   100000u /* the kernel's default period of cpu.max */
#define CPU_QUOTA_MIN_USEC 1000u   /* the kernel's smallest quota */

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
	*ret = cpu_per_second(quota, period);
	return 0;
}

static int read_io_max(int dirfd, enum limit limit, uint64_t *ret)
{
	uint64_t in, out;
	int r = cgroup_io_smallest(dirfd, &in, &out);

	if (r == 0)
		*ret = limit == LIMIT_IO_READ ? in : out;
	return r;
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
	return cpu_per_second(quota, period);
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
	{ LIMIT_IO_READ, "io.max", ON_GUEST_BY_DISK, true, read_io_max },
	{ LIMIT_IO_WRITE, "io.max", ON_GUEST_BY_DISK, true, read_io_max },
};

static int read_limit(int dirfd, const struct in_force *f, uint64_t *ret)
{
	return f->read ? f->read(dirfd, f->limit, ret) : read_number_at(dirfd, f->file, ret);
}

/* The kernel's own value, none, stays where systemd may not use the controller. */
static int refuse_limit(const struct cgroup *cg, const struct in_force *f, const char *below,
			uint64_t have, uint64_t want, struct error *e)
{
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

/* A run that asks for what this kernel has not hears of it here where the scope was made before. */
static int refuse_unreadable(const struct cgroup *cg, const struct in_force *f, const char *below,
			     int r, struct error *e)
{
	if (r != -ENOENT)
		return error_errno(e, r, "%s%s/%s: cannot be read back", cg->path, below, f->file);
	return error_set(e, r,
			 "%s%s/%s: cannot be read back: %s, as when the %.*s controller is not "
			 "available in the slices above: look for DisableControllers= there",
			 cg->path, below, f->file, strerror(-r), (int)strcspn(f->file, "."),
			 f->file);
}

/* Compares one limit with what is to be in force, which becomes what is: LIMIT_UNSET when this
 * kernel has no such thing and nobody needs it. */
static int verify_limit(const struct cgroup *cg, const struct in_force *f, bool on_guest,
			uint64_t *in_force, struct error *e)
{
	const char *below = on_guest ? "/guest" : "";
	uint64_t want = *in_force, have;
	int r = read_limit(on_guest ? cg->guest_fd : cg->scope_fd, f, &have);

	if (r == -ENOENT && (cg->untold & 1u << f->limit)) {
		*in_force = LIMIT_UNSET;
		return 0;
	}
	if (r < 0)
		return refuse_unreadable(cg, f, below, r, e);
	if (f->limit == LIMIT_CPU)
		want = cpu_as_written(want, on_guest ? cg->guest_cpu_max : cg->cpu_max);
	if (have != want)
		return refuse_limit(cg, f, below, have, want, e);
	*in_force = have; /* rounded, if at all */
	return 0;
}

/* On the scope, and on guest/ as well where that has its own: of all but io.weight, which bounds
 * nothing. */
static int verify_scopes(const struct cgroup *cg, const struct in_force *f, uint64_t *in_force,
			 struct error *e)
{
	uint64_t made;
	int r;

	if (!cg->made || !f->bounds_below)
		return verify_limit(cg, f, false, in_force, e);
	made = cg->made->value[f->limit];
	r = verify_limit(cg, f, false, &made, e);
	return r < 0 ? r : verify_limit(cg, f, true, in_force, e);
}

static int verify_own(const struct cgroup *cg, struct limits *in_force, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t *value = &in_force->value[f->limit];
		int r = 0;

		if (f->place == ON_SCOPE)
			r = verify_scopes(cg, f, value, e);
		else if (f->place == ON_GUEST)
			r = verify_limit(cg, f, true, value, e);
		if (r < 0)
			return r;
	}
	return cgroup_io_verify(cg->guest_fd, cg->path, in_force, e);
}

/* What bounds those below the directory @dirfd; only a file that is not there limits nothing.
 * @verified: what is a scope's has just been read back. */
static int read_bounds(int dirfd, bool verified, struct limits *ret)
{
	int r = cgroup_io_smallest(dirfd, &ret->value[LIMIT_IO_READ], &ret->value[LIMIT_IO_WRITE]);

	for (size_t i = 0; i < ARRAY_SIZE(files) && (r == 0 || r == -ENOENT); i++) {
		const struct in_force *f = &files[i];

		if (f->bounds_below && f->place != ON_GUEST_BY_DISK &&
		    !(verified && f->place == ON_SCOPE))
			r = read_limit(dirfd, f, &ret->value[f->limit]);
	}
	return r == -ENOENT ? 0 : r;
}

/* Lowers @limits to what the directory @dirfd, which is @path, allows. */
static int lower_to(int dirfd, const char *path, bool verified, struct limits *limits,
		    struct limit_origins *origins)
{
	struct limits have;
	int r;

	for (int i = 0; i < LIMIT_COUNT; i++)
		have.value[i] = LIMIT_INFINITY;
	r = read_bounds(dirfd, verified, &have);
	for (int i = 0; i < LIMIT_COUNT && r == 0; i++) {
		if (have.value[i] >= limits->value[i])
			continue;
		limits->value[i] = have.value[i];
		snprintf(origins->text[i], ORIGIN_TEXT_MAX, "%s", path);
	}
	return r;
}

/* Up to, and without, the root, which has no limits. */
static int lower(const char *path, bool verified, struct limits *limits,
		 struct limit_origins *origins, struct error *e)
{
	char at[512];

	for (snprintf(at, sizeof(at), "%s", path); strlen(at) > strlen(CGROUP_ROOT);
	     *strrchr(at, '/') = '\0') {
		_cleanup_close_ int fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		int r = fd < 0 ? -errno : lower_to(fd, at, verified, limits, origins);

		if (r < 0)
			return error_errno(e, r, "%s: its limits cannot be read", at);
		verified = false;
	}
	return 0;
}

int cgroup_lower(const char *path, struct limits *limits, struct limit_origins *origins,
		 struct error *e)
{
	return lower(path, false, limits, origins, e);
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
	r = lower(cg->path, true, &in_force, origins, e);
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

/* What the scope and guest/ allow together. A limit of the scope stands there or on both. */
static int read_own(int scope_fd, int guest_fd, const struct in_force *f, uint64_t *ret)
{
	uint64_t have;
	int r = read_limit(guest_fd, f, ret);

	if (f->place != ON_SCOPE || (r < 0 && r != -ENOENT))
		return r;
	if (r < 0)
		*ret = LIMIT_INFINITY;
	r = read_limit(scope_fd, f, &have);
	if (r == 0 && have < *ret)
		*ret = have;
	return r;
}

static int recheck_own(int scope_fd, int guest_fd, const char *path, const struct limits *own,
		       struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct in_force *f = &files[i];
		uint64_t want = own->value[f->limit], have;
		int r = f->bounds_below && !is_unlimited(want)
				? read_own(scope_fd, guest_fd, f, &have)
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
