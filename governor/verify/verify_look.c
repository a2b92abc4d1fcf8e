/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a guest can be seen from outside, by its caller. */
#include "governor/verify/verify_guests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/client/rows.h"

#define ROW_MS	      4000 /* for the daemon to answer */
#define MEASURE_USEC  USEC_PER_SEC
#define RENEW_USEC    (2 * USEC_PER_SEC)
#define RENEW_LOOK_MS 20

void guest_name(const struct verify *v, enum verify_run run, char name[GUEST_NAME_SIZE])
{
	snprintf(name, GUEST_NAME_SIZE, "verify-%.16s-%d", v->prepared.nonce, (int)run);
}

/* ---- while one lives ---- */

/* In a child: the daemon may not answer. */
static void tell_row(const struct verify *v, enum verify_run run, int fd) __attribute__((noreturn));
static void tell_row(const struct verify *v, enum verify_run run, int fd)
{
	struct rows rows = ROWS_NULL;
	char name[GUEST_NAME_SIZE];

	guest_name(v, run, name);
	if (rows_ask(v->socket, name, &rows, NULL) < 0)
		_exit(1);
	for (size_t i = 0; i < rows.n; i++)
		if (strcmp(rows.row[i].name, name) == 0)
			write_whole(fd, &rows.row[i], sizeof(rows.row[i]));
	_exit(0);
}

/* Which control group is there now as its own? 0 when there is none. */
static uint64_t group_of(const struct guest_run *g)
{
	char path[2 * PATH_TEXT_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/guest", g->row.cgroup);
	return g->row.id[0] && stat(path, &st) == 0 ? st.st_ino : 0;
}

/* The row stays empty when nobody tells it in time. */
void look_for_row(struct verify *v, enum verify_run run)
{
	struct pollfd polled = { .events = POLLIN };
	struct guest_row row;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		tell_row(v, run, fds[1]);
	close(fds[1]);
	polled.fd = fds[0];
	if (pid > 0 && poll(&polled, 1, ROW_MS) > 0 &&
	    read(fds[0], &row, sizeof(row)) == sizeof(row))
		v->runs[run].row = row;
	close(fds[0]);
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		waitpid(pid, NULL, 0);
	v->runs[run].group = group_of(&v->runs[run]);
}

static int read_cgroup(const struct guest_run *g, const char *name, char *buf, size_t size)
{
	char path[2 * PATH_TEXT_MAX];

	if (!g->row.id[0])
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", g->row.cgroup, name);
	return (int)read_file_at(AT_FDCWD, path, buf, size);
}

static int parse_cpu(const char *text, uint64_t *ret)
{
	uint64_t quota, period;
	int r = parse_cpu_max(text, &quota, &period);

	if (r == 0)
		*ret = cpu_per_second(quota, period);
	return r;
}

static const struct {
	enum limit limit;
	const char *file;
	int (*parse)(const char *text, uint64_t *ret);
} limit_files[] = {
	{ LIMIT_MEMORY, "memory.max", parse_u64_prefix },
	{ LIMIT_PIDS, "pids.max", parse_u64_prefix },
	{ LIMIT_CPU, "cpu.max", parse_cpu },
};

/* The smaller of what the scope and the guest's own cgroup have; -ENOENT when neither has any. */
static int smallest_limit(const struct guest_run *g, size_t i, uint64_t *ret)
{
	static const char *const below[] = { "", "guest/" };
	int r = -ENOENT;

	for (size_t j = 0; j < ARRAY_SIZE(below); j++) {
		char name[64], text[128];
		uint64_t value;

		snprintf(name, sizeof(name), "%s%s", below[j], limit_files[i].file);
		if (read_cgroup(g, name, text, sizeof(text)) <= 0 ||
		    limit_files[i].parse(text, &value) < 0)
			continue;
		if (r < 0 || value < *ret)
			*ret = value;
		r = 0;
	}
	return r;
}

/* As the kernel has them. */
static void look_at_limits(struct verify *v)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];

	v->limits_known = true;
	for (size_t i = 0; i < ARRAY_SIZE(limit_files); i++) {
		uint64_t value;

		if (smallest_limit(g, i, &value) < 0)
			v->limits_known = false;
		else if (value > g->row.limits.value[limit_files[i].limit] && !v->limits[0])
			snprintf(v->limits, sizeof(v->limits), "%s is above what was asked for",
				 limit_files[i].file);
	}
}

static uint64_t cpu_usage(const struct guest_run *g)
{
	char text[2048];
	uint64_t usage = 0;

	if (read_cgroup(g, "cpu.stat", text, sizeof(text)) > 0)
		keyed_u64(text, "usage_usec", &usage);
	return usage;
}

/* Is a listener of the guest's reachable from the host? */
static bool listener_answers(const struct prepared *p)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons((uint16_t)atoi(p->aim[AIM_LISTEN])),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	int error = ENOTCONN;
	socklen_t size = sizeof(error);

	if (fd < 0)
		return false;
	if (connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0)
		return true;
	return errno == EINPROGRESS && poll(&polled, 1, 500) > 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

static bool any_left_shared(const struct prepared *p)
{
	_cleanup_free_ char *paths = strdup(p->aim[AIM_LEFT]);
	char *at = paths;
	bool found = false;

	for (char *path; (path = strsep(&at, ","));)
		found |= access(path, F_OK) == 0;
	return found;
}

void look_at_main(struct verify *v)
{
	const struct prepared *p = &v->prepared;

	if (v->runs[RUN_MAIN].row.id[0])
		look_at_limits(v);
	v->made_shared = shmget(p->key + 1, 0, 0) >= 0;
	v->left_shared = any_left_shared(p);
	v->listener_answered = listener_answers(p);
}

/* How much CPU time it gets in a second. */
void measure_cpu(struct verify *v)
{
	static uint64_t since, before;
	struct guest_run *g = &v->runs[RUN_CPU];
	uint64_t now = clock_usec(CLOCK_MONOTONIC), after;

	if (!g->begun_usec || g->client <= 0 || v->cpu_wall_usec)
		return;
	if (!since) {
		since = now;
		before = cpu_usage(g);
	} else if (now - since >= MEASURE_USEC) {
		after = cpu_usage(g);
		v->cpu_used_usec = after > before ? after - before : 0; /* it was not read */
		v->cpu_wall_usec = clock_usec(CLOCK_MONOTONIC) - since;
		kill(g->client, SIGKILL);
	}
}

/* ---- when it has ended ---- */

/* A process of that uid, 0 = none. */
static int process_of(uint32_t uid)
{
	_cleanup_(close_directory) DIR *directory = opendir("/proc");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int pid = atoi(entry->d_name);
		struct stat st;

		if (pid > 0 && fstatat(dirfd(directory), entry->d_name, &st, 0) == 0 &&
		    st.st_uid == uid)
			return pid;
	}
	return 0;
}

/* At once: later its uid may be another guest's. */
void look_for_processes(struct verify *v)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];
	int pid = g->row.id[0] ? process_of(g->row.uid) : 0;

	if (pid)
		snprintf(v->left, sizeof(v->left), "process %d of its uid lives", pid);
}

/* The main guest's control group. The scope of a slot may stay for the next guest (recycle in
 * harpe-gov.conf(5)), which has another guest/. */
static bool group_is_left(const struct guest_run *g)
{
	uint64_t now = group_of(g);

	return access(g->row.cgroup, F_OK) == 0 && (g->group == 0 || now == g->group);
}

/* Where the scope stays, another guest/ is made after the guest's end was told. */
void look_for_group(struct verify *v)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];
	uint64_t end = clock_usec(CLOCK_MONOTONIC) + RENEW_USEC;

	if (v->left[0] || !g->row.id[0])
		return;
	while (group_is_left(g) && clock_usec(CLOCK_MONOTONIC) < end)
		poll(NULL, 0, RENEW_LOOK_MS);
	if (group_is_left(g))
		snprintf(v->left, sizeof(v->left), "%.120s is still there", g->row.cgroup);
}

void look_at_log(struct verify *v)
{
	char text[256];

	v->log_written = read_file_at(AT_FDCWD, v->prepared.aim[AIM_LOG], text, sizeof(text)) > 0 &&
			 strstr(text, "\n{\"tool\": \"harpe-gov-verify\"}");
}
