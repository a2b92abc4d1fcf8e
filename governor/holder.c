/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/holder.h"

#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE 16384

/* Only the caller's memory is shared, so this must touch nothing of it. */
static int hold(void *parent)
{
	sigset_t all;

	/* Its maker may die any time; the second line closes the gap before the first. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != (pid_t)(intptr_t)parent)
		_exit(0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_range(0, ~0U, 0);
	for (;;)
		pause();
	return 0;
}

pid_t holder_start(void)
{
	/* One stack for all: a process starts one holder, and pause() writes nothing to it. */
	static char stack[STACK_SIZE] __attribute__((aligned(16)));
	pid_t pid =
		clone(hold, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)(intptr_t)getpid());

	return pid < 0 ? -errno : pid;
}

void holder_stop(pid_t *holder)
{
	if (*holder <= 0)
		return;
	kill(*holder, SIGKILL);
	while (waitpid(*holder, NULL, 0) < 0 && errno == EINTR)
		;
	*holder = 0;
}
