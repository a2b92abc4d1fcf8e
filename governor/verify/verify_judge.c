/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/verify/verify_judge.h"

#include <stdarg.h>
#include <string.h>

void judge_set(struct judgement *j, enum verdict verdict, const char *format, ...)
{
	va_list ap;

	j->verdict = verdict;
	va_start(ap, format);
	vsnprintf(j->seen, sizeof(j->seen), format, ap);
	va_end(ap);
}

bool said_is(const struct said *s, const char *outcome)
{
	return strcmp(s->outcome, outcome) == 0;
}

bool said_is_error(const struct said *s)
{
	return s->outcome[0] == 'E' || said_is(s, "nothing");
}

/* What the probe said, as it is. */
void judge_said(struct judgement *j, enum verdict verdict, const struct said *s)
{
	judge_set(j, verdict, s->detail[0] ? "%s (%s)" : "%s%s", s->outcome, s->detail);
}

/* ---- by what the probe says alone ---- */

void judge_denied(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	judge_said(j,
		   said_is(s, "done") ? VERDICT_FAIL
		   : said_is_error(s) ? VERDICT_PASS
				      : VERDICT_UNKNOWN,
		   s);
}

static void judge_exact(const char *outcome, const struct said *s, struct judgement *j)
{
	judge_said(j,
		   said_is(s, outcome)			    ? VERDICT_PASS
		   : said_is(s, "done") || said_is_error(s) ? VERDICT_FAIL
							    : VERDICT_UNKNOWN,
		   s);
}

void judge_refused(const struct verify *v, const struct verify_check *c, const struct said *s,
		   struct judgement *j)
{
	(void)v;
	(void)c;
	judge_exact("EPERM", s, j);
}

void judge_absent(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	judge_exact("ENOSYS", s, j);
}

void judge_done(const struct verify *v, const struct verify_check *c, const struct said *s,
		struct judgement *j)
{
	(void)v;
	(void)c;
	judge_exact("done", s, j);
}

void judge_may_refuse(const struct verify *v, const struct verify_check *c, const struct said *s,
		      struct judgement *j)
{
	judge_refused(v, c, s, j);
	if (j->verdict == VERDICT_FAIL && v->has_allowances)
		judge_set(j, VERDICT_UNKNOWN,
			  "%s (%.80s); profile %s may allow it: see its section", s->outcome,
			  s->detail, v->net);
}
