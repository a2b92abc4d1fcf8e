/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/cgroup.h"

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
#include "governor/guest/cgroup_counters.h"
#include "governor/guest/cgroup_io.h"

#define TEXT_MAX 4096

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
		return error_errno(e, r, "%s%s/%s: cannot write \"%s\"", cg->path,
				   dirfd == cg->guest_fd ? "/guest" : "", file, text);
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

static int open_scope(struct cgroup *cg, const char *path, struct error *e)
{
	cg->path = path;
	cg->scope_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return cg->scope_fd < 0 ? error_errno(e, -errno, "%s: cannot be opened", path) : 0;
}

static int open_guest(struct cgroup *cg, struct error *e)
{
	cg->guest_fd = openat(cg->scope_fd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return cg->guest_fd < 0 ? error_errno(e, -errno, "%s/guest: cannot be opened", cg->path)
				: 0;
}

static int make_guest(struct cgroup *cg, struct error *e)
{
	int r = make_directory(cg, "guest", e);

	if (r == 0)
		r = open_guest(cg, e);
	return r < 0 ? r : write_in(cg, cg->guest_fd, "memory.oom.group", "1", e);
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

/* One process alone, as what sets a guest up, never needs more than one CPU. */
static bool slows(const char *cpu_max)
{
	uint64_t quota, period;

	return parse_cpu_max(cpu_max, &quota, &period) == 0 &&
	       cpu_per_second(quota, period) < USEC_PER_SEC;
}

static int lift_cpu(struct cgroup *cg, struct error *e)
{
	cg->lifted = true;
	return write_in(cg, cg->scope_fd, "cpu.max", "max", e);
}

static int put_guest_cpu(const struct cgroup *cg, struct error *e)
{
	return cg->guest_cpu_max[0] ? write_in(cg, cg->guest_fd, "cpu.max", cg->guest_cpu_max, e)
				    : 0;
}

int cgroup_make(struct cgroup *cg, const char *scope_path, pid_t holder, struct error *e)
{
	int r = open_scope(cg, scope_path, e);

	if (r == 0)
		r = move_holder(cg, holder, e);
	if (r == 0)
		r = enable_controllers(cg, e);
	return r == 0 ? make_guest(cg, e) : r;
}

/* A child that is born there would never say that it is ready. */
static int check_thawed(const struct cgroup *cg, struct error *e)
{
	char text[TEXT_MAX];
	uint64_t frozen = 0;
	int r = (int)read_file_at(cg->guest_fd, "cgroup.events", text, sizeof(text));

	if (r >= 0)
		r = keyed_u64(text, "frozen", &frozen);
	if (r < 0)
		return error_errno(e, r, "%s/guest/cgroup.events: cannot be read", cg->path);
	return frozen ? error_set(e, -ESTALE, "%s/guest: is frozen", cg->path) : 0;
}

int cgroup_open(struct cgroup *cg, const char *scope_path, struct error *e)
{
	int r = open_scope(cg, scope_path, e);

	if (r == 0)
		r = open_guest(cg, e);
	cg->ooms_before = cgroup_scope_ooms(cg);
	return r == 0 ? check_thawed(cg, e) : r;
}

/* Without swap there is no such file, and nothing in it. */
static int check_left(const struct cgroup *cg, const struct limits *made, struct error *e)
{
	uint64_t memory, swap = 0;
	int r = read_number_at(cg->scope_fd, "memory.swap.current", &swap);

	if (r == 0 || r == -ENOENT)
		r = read_number_at(cg->scope_fd, "memory.current", &memory);
	if (r < 0 || memory > made->value[LIMIT_MEMORY] / 16 || swap > made->value[LIMIT_SWAP] / 16)
		return error_set(e, -EBUSY, "%s: memory of its last guest is left", cg->path);
	return 0;
}

int cgroup_renew(struct cgroup *cg, const char *scope_path, const struct limits *made,
		 struct error *e)
{
	int r = open_scope(cg, scope_path, e);

	if (r < 0)
		return r;
	if (unlinkat(cg->scope_fd, "guest", AT_REMOVEDIR) < 0)
		return error_errno(e, -EBUSY, "%s/guest: cannot be removed", cg->path);
	r = check_left(cg, made, e);
	return r < 0 ? r : make_guest(cg, e);
}

static int set_number(const struct cgroup *cg, const char *file, uint64_t value, struct error *e)
{
	char text[32] = "max";

	if (value != LIMIT_INFINITY)
		snprintf(text, sizeof(text), "%" PRIu64, value);
	return write_in(cg, cg->guest_fd, file, text, e);
}

/* What is guest/'s in any case, and what is the scope's, where that may have more. */
static int set_numbers(const struct cgroup *cg, const struct limits *limits, struct error *e)
{
	static const struct {
		enum limit limit;
		const char *file;
		bool of_scope;
	} files[] = {
		{ LIMIT_PIDS, "pids.max", false },
		{ LIMIT_MEMORY, "memory.max", true },
		{ LIMIT_SWAP, "memory.swap.max", true },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		uint64_t value = limits->value[files[i].limit];

		if (!files[i].of_scope || cg->made)
			r = set_number(cg, files[i].file, value, e);
	}
	return r;
}

int cgroup_bound(struct cgroup *cg, const struct limits *limits, const struct limits *made,
		 struct error *e)
{
	uint64_t cpu = limits->value[LIMIT_CPU];
	int r;

	cg->made = made;
	r = set_numbers(cg, limits, e);
	if (r == 0)
		r = cgroup_io_bound(cg->guest_fd, cg->path, limits, e);
	if (r < 0)
		return r;
	if (made)
		cpu_max_text(cpu, cg->guest_cpu_max, sizeof(cg->guest_cpu_max));
	r = (int)read_file_at(cg->scope_fd, "cpu.max", cg->cpu_max, sizeof(cg->cpu_max));
	if (r < 0)
		return error_errno(e, r, "%s/cpu.max: cannot be read", cg->path);
	return slows(cg->cpu_max) || slows(cg->guest_cpu_max) ? lift_cpu(cg, e)
							      : put_guest_cpu(cg, e);
}

int cgroup_throttle(struct cgroup *cg, struct error *e)
{
	int r;

	if (!cg->lifted)
		return 0;
	r = write_in(cg, cg->scope_fd, "cpu.max", cg->cpu_max, e);
	if (r == 0)
		r = put_guest_cpu(cg, e);
	cg->lifted = r < 0;
	return r;
}

int cgroup_verify_member(const struct cgroup *cg, pid_t pid, struct error *e)
{
	char file[64], text[TEXT_MAX], want[600];

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	snprintf(want, sizeof(want), "0::%s/guest", cg->path + strlen(CGROUP_ROOT));
	if (read_file_at(AT_FDCWD, file, text, sizeof(text)) < 0 || strcmp(text, want) != 0)
		return error_set(e, -ESTALE, "process %d is not in %s/guest", pid, cg->path);
	if (cgroup_tasks(cg) != 1)
		return error_set(e, -ESTALE, "process %d is not alone in %s/guest", pid, cg->path);
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

static int kill_all(struct cgroup *cg, int timeout_ms)
{
	int r;

	lift_cpu(cg, NULL); /* it dies all the same, only later */
	if (cg->guest_cpu_max[0])
		write_in(cg, cg->guest_fd, "cpu.max", "max", NULL);
	cgroup_io_lift(cg->guest_fd);
	r = write_file_at(cg->guest_fd, "cgroup.kill", "1");
	return r == 0 ? wait_empty(cg, timeout_ms) : r;
}

int cgroup_kill(struct cgroup *cg, int timeout_ms, struct error *e)
{
	int r;

	if (cg->guest_fd < 0)
		return 0;
	r = wait_empty(cg, 0);
	if (r == -ETIMEDOUT)
		r = kill_all(cg, timeout_ms);
	if (r == -ENODEV || r == -ENOENT)
		return 0; /* systemd was faster */
	if (r < 0)
		return error_errno(e, r, "%s/guest: is not empty after SIGKILL", cg->path);
	return 0;
}

void cgroup_kill_scope(int dirfd)
{
	_cleanup_close_ int guest = openat(dirfd, "guest", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (guest >= 0) {
		cgroup_io_lift(guest);
		write_file_at(guest, "cpu.max", "max");
	}
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
