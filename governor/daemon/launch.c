/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/descriptors.h"
#include "governor/supervisor/supervisor.h"

#define STACK_SIZE 16384

struct becoming {
	struct launch launch;
	int error; /* why it did not */
};

static int become(struct launch *s)
{
	static char name[] = "harpe-gov-supervisor";
	char *const argv[] = { name, NULL }, *const envp[] = { NULL };
	int none = -1;
	int *const list[] = { &none, &s->daemon, &s->ground, &s->listener, &s->means, &s->program };
	int r = keep_descriptors(list, ARRAY_SIZE(list), SUPERVISOR_CLIENT_FD, CLOSE_RANGE_CLOEXEC);

	if (r < 0)
		return r;
	for (int fd = SUPERVISOR_DAEMON_FD; fd <= SUPERVISOR_MEANS_FD; fd++)
		fcntl(fd, F_SETFD, 0);
	execveat(s->program, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}

/* The caller's memory is shared and the caller waits: this touches nothing but its own stack,
 * what it was given, and errno. It never returns, which a sanitizer of addresses does not expect.
 */
static int become_supervisor(void *arg) __attribute__((no_sanitize_address));
static int become_supervisor(void *arg)
{
	struct becoming *b = arg;

	b->error = become(&b->launch);
	_exit(1);
}

pid_t launch_supervisor(const struct launch *s)
{
	static _Alignas(16) char stack[STACK_SIZE]; /* one child at a time: the caller waits */
	struct becoming b = { .launch = *s };
	pid_t pid =
		clone(become_supervisor, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, &b);

	if (pid < 0)
		return -errno;
	if (b.error == 0)
		return pid;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return b.error;
}
