/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/signals.h"

#include <stddef.h>

#include "common/request.h"

static volatile sig_atomic_t noted[_NSIG];
static sigset_t before;
static int caught;

static void note(int number)
{
	noted[number] = 1;
}

static void set_handlers(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler }, old;

	for (size_t i = 0; i < n_passed_signals; i++) {
		sigaction(passed_signals[i], &action, &old);
		if (old.sa_handler == SIG_IGN)
			sigaction(passed_signals[i], &old, NULL);
	}
}

/* Blocked first: until it is clear what is ignored, nothing may get through. */
void signals_catch(sigset_t *ret_waiting)
{
	sigset_t passed;

	sigemptyset(&passed);
	for (size_t i = 0; i < n_passed_signals; i++)
		sigaddset(&passed, passed_signals[i]);
	sigprocmask(SIG_BLOCK, &passed, &before);
	set_handlers(note);
	caught = 1;
	*ret_waiting = before;
}

int signals_next(void)
{
	for (size_t i = 0; i < n_passed_signals; i++) {
		int number = passed_signals[i];

		if (!noted[number])
			continue;
		noted[number] = 0;
		return number;
	}
	return 0;
}

int signal_is_deadly(int number)
{
	return number != 0 && number != SIGWINCH && number != SIGTSTP && number != SIGCONT;
}

int signals_can_stop(void)
{
	struct sigaction now;

	return sigaction(SIGTSTP, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

void signals_stop(pid_t whom)
{
	struct sigaction action = { .sa_handler = SIG_DFL }, old;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigaction(SIGTSTP, &action, &old);
	kill(whom, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL); /* here it stops */
	sigprocmask(SIG_BLOCK, &stop, NULL);
	sigaction(SIGTSTP, &old, NULL);
}

void signals_release(void)
{
	if (!caught)
		return;
	set_handlers(SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
