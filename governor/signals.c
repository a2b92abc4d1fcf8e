/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/signals.h"

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

void signals_release(void)
{
	if (!caught)
		return;
	set_handlers(SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
