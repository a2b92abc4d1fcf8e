/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/spaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/descriptors.h"
#include "governor/guest/network.h"

static int open_own(int proc, const char *name, int *ret, struct error *e)
{
	*ret = openat(proc, name, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? error_errno(e, -errno, "/proc/%s", name) : 0;
}

/* The one for mounts last: there is no /proc in it. */
static int make(const struct view_start *start, bool own_network, struct spaces *ret,
		struct error *e)
{
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (proc < 0 || unshare(CLONE_NEWIPC) < 0)
		return error_errno(e, -errno, "no IPC namespace");
	r = open_own(proc, "self/ns/ipc", &ret->ipc, e);
	if (r == 0 && own_network) {
		ret->net = network_make(e);
		r = ret->net < 0 ? ret->net : 0;
	}
	if (r == 0)
		r = view_start_make(start, e);
	return r == 0 ? open_own(proc, "self/ns/mnt", &ret->mounts, e) : r;
}

int spaces_make(const struct view_start *start, bool own_network, struct spaces *ret,
		struct error *e)
{
	int r = make(start, own_network, ret, e);

	if (r < 0)
		spaces_close(ret);
	return r;
}

int spaces_enter(const struct spaces *s, struct error *e)
{
	if (s->ipc >= 0 && setns(s->ipc, CLONE_NEWIPC) < 0)
		return error_errno(e, -errno, "the IPC namespace cannot be entered");
	return network_enter(s->net, e);
}

static int verify_one(pid_t pid, const char *name, const char *what, struct error *e)
{
	struct stat own, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &own) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", path);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	if (stat(path, &theirs) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", path);
	return own.st_ino != theirs.st_ino
		       ? 0
		       : error_set(e, -ESTALE, "the guest is in the host's %s namespace", what);
}

int spaces_verify(pid_t pid, bool own_network, struct error *e)
{
	int r = verify_one(pid, "ipc", "IPC", e);

	if (r == 0)
		r = verify_one(pid, "mnt", "mount", e);
	return r == 0 && own_network ? verify_one(pid, "net", "network", e) : r;
}

void spaces_close(struct spaces *s)
{
	close_fd(&s->ipc);
	close_fd(&s->mounts);
	close_fd(&s->net);
	*s = SPACES_NULL;
}

/* Ends, and so closes @mounts, when nobody has the other end of @gate any more. */
static void wait_and_close(int mounts, int gate) __attribute__((noreturn));
static void wait_and_close(int mounts, int gate)
{
	int *const list[] = { &mounts, &gate };
	char byte;

	if (keep_descriptors(list, ARRAY_SIZE(list), 0, 0) < 0) /* it would wait for itself */
		_exit(1);
	while (read(gate, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

pid_t spaces_close_aside(struct spaces *s)
{
	_cleanup_close_ int wait = -1, gate = -1;
	int ends[2];
	pid_t pid = 0;

	if (s->mounts >= 0 && pipe2(ends, O_CLOEXEC) == 0) {
		wait = ends[0];
		gate = ends[1];
		pid = fork();
		if (pid == 0)
			wait_and_close(s->mounts, wait);
	}
	spaces_close(s);
	return pid < 0 ? 0 : pid;
}

size_t spaces_list(const struct spaces *s, int fds[SPACES_MAX])
{
	if (s->ipc < 0)
		return 0;
	fds[0] = s->ipc;
	fds[1] = s->mounts;
	fds[2] = s->net;
	return s->net < 0 ? 2 : 3;
}

int spaces_take(const int *fds, size_t n, struct spaces *ret)
{
	*ret = SPACES_NULL;
	if (n == 1 || n > SPACES_MAX)
		return -EPROTO;
	if (n > 0) {
		ret->ipc = fds[0];
		ret->mounts = fds[1];
	}
	if (n > 2)
		ret->net = fds[2];
	return 0;
}
