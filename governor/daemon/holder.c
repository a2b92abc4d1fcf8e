/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/holder.h"

#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE 8192

/* The caller's memory is shared, so this touches nothing but its own stack. */
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

int holder_start(struct holder *ret)
{
	char *stack = aligned_alloc(16, STACK_SIZE);
	pid_t pid;

	if (!stack)
		return -ENOMEM;
	pid = clone(hold, stack + STACK_SIZE, CLONE_VM | SIGCHLD, (void *)(intptr_t)getpid());
	if (pid < 0) {
		free(stack);
		return -errno;
	}
	*ret = (struct holder){ .pid = pid, .stack = stack };
	return 0;
}

void holder_kill(const struct holder *h)
{
	if (h->pid > 0)
		kill(h->pid, SIGKILL);
}

bool holder_is_dead(const struct holder *h)
{
	siginfo_t info = { 0 };

	return h->pid > 0 && waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == h->pid;
}

void holder_stop(struct holder *h)
{
	holder_kill(h);
	while (h->pid > 0 && waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(h->stack);
	*h = (struct holder){ 0 };
}
