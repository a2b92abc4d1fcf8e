/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "governor/probe/probe.h"
#include "governor/probe/process.h"

enum rank { RANK_NONE, RANK_DENIED, RANK_NOTHING, RANK_ERROR, RANK_DONE };

static enum rank rank_of(const char *outcome)
{
	if (!outcome[0])
		return RANK_NONE;
	if (strcmp(outcome, "done") == 0)
		return RANK_DONE;
	if (strcmp(outcome, "nothing") == 0)
		return RANK_NOTHING;
	return strcmp(outcome, "EPERM") == 0 ? RANK_DENIED : RANK_ERROR;
}

static void keep_the_worse(struct seen *s, const char *outcome, const char *what)
{
	if (rank_of(outcome) > rank_of(s->outcome))
		seen_set(s, outcome, "%s", what);
}

bool seen_attempt(struct seen *s, const char *what, long result)
{
	const char *name = result < 0 ? strerrorname_np(errno) : "done";

	keep_the_worse(s, name ? name : "error", what);
	return result >= 0;
}

void seen_nothing(struct seen *s, const char *what)
{
	keep_the_worse(s, "nothing", what);
}

void seen_set(struct seen *s, const char *outcome, const char *format, ...)
{
	va_list ap;

	snprintf(s->outcome, sizeof(s->outcome), "%s", outcome);
	va_start(ap, format);
	vsnprintf(s->detail, sizeof(s->detail), format, ap);
	va_end(ap);
}

void seen_word(struct seen *s, const char *word)
{
	size_t used = strlen(s->detail);

	snprintf(s->detail + used, sizeof(s->detail) - used, "%s%s", used ? " " : "", word);
}

static void tell(const struct seen *s, bool held)
{
	struct told told = { *s, held };

	if (write(TELL_FD, &told, sizeof(told)) != sizeof(told))
		_exit(1);
}

void seen_tell(const struct seen *s)
{
	tell(s, false);
}

void seen_hold(const struct seen *s)
{
	tell(s, true);
	for (;;)
		pause();
}

char *next_word(char **aim)
{
	return strsep(aim, ",");
}
