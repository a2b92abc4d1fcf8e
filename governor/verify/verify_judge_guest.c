/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who the guest is, and what its limits did to it. */
#include "governor/verify/verify_judge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"

#define LATE_USEC (10 * USEC_PER_SEC)

/* ---- who the guest is ---- */

/* "Uid: A A A A Gid: A A A A" */
void judge_ids(const struct verify *v, const struct verify_check *c, const struct said *s,
	       struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];
	unsigned long uid = strtoul(s->detail + strcspn(s->detail, " "), NULL, 10);
	char want[SAID_DETAIL_MAX];

	(void)c;
	if (g->row.id[0])
		uid = g->row.uid;
	snprintf(want, sizeof(want), "Uid: %lu %lu %lu %lu Gid: %lu %lu %lu %lu", uid, uid, uid,
		 uid, uid, uid, uid, uid);
	judge_set(j,
		  strcmp(s->detail, want) == 0 && uid != 0 && uid != getuid() ? VERDICT_PASS
									      : VERDICT_FAIL,
		  "%s", s->detail);
}

static void judge_text(const char *want, const struct said *s, struct judgement *j)
{
	if (!said_is(s, "seen"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else
		judge_set(j, strcmp(s->detail, want) == 0 ? VERDICT_PASS : VERDICT_FAIL, "%s",
			  s->detail);
}

void judge_groups(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	judge_text("Groups:", s, j);
}

/* Words that are names, and numbers of nothing but zeros. */
static bool all_zeros(const char *detail)
{
	size_t values = 0;

	for (const char *at = detail; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (at[len - 1] != ':' && strspn(at, "0") != len)
			return false;
		values += at[len - 1] != ':';
		at += len;
	}
	return values > 0;
}

void judge_zeros(const struct verify *v, const struct verify_check *c, const struct said *s,
		 struct judgement *j)
{
	(void)v;
	(void)c;
	if (!said_is(s, "seen"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else if (all_zeros(s->detail))
		judge_set(j, VERDICT_PASS, "all sets are empty");
	else
		judge_set(j, VERDICT_FAIL, "%s", s->detail);
}

void judge_no_new_privs(const struct verify *v, const struct verify_check *c, const struct said *s,
			struct judgement *j)
{
	(void)v;
	(void)c;
	judge_text("NoNewPrivs: 1", s, j);
}

void judge_filter(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	judge_text("Seccomp: 2", s, j);
}

void judge_personality(const struct verify *v, const struct verify_check *c, const struct said *s,
		       struct judgement *j)
{
	(void)v;
	(void)c;
	judge_text("0", s, j);
}

void judge_descriptors(const struct verify *v, const struct verify_check *c, const struct said *s,
		       struct judgement *j)
{
	(void)v;
	(void)c;
	judge_text("0 ", s, j);
	if (j->verdict == VERDICT_PASS)
		judge_set(j, VERDICT_PASS, "0, 1 and 2");
}

void judge_environment(const struct verify *v, const struct verify_check *c, const struct said *s,
		       struct judgement *j)
{
	(void)c;
	judge_text(v->environment, s, j);
}

/* ---- limits ---- */

void judge_in_force(const struct verify *v, const struct verify_check *c, const struct said *s,
		    struct judgement *j)
{
	(void)c;
	(void)s;
	if (v->limits[0])
		judge_set(j, VERDICT_FAIL, "%s", v->limits);
	else if (!v->limits_known)
		judge_set(j, VERDICT_UNKNOWN, "its control group cannot be read");
	else
		judge_set(j, VERDICT_PASS, "memory.max, pids.max and cpu.max are as asked for");
}

/* Did the run end for that reason, and not the work? */
static void judge_ended(const struct verify *v, enum verify_run run, const char *reason,
			const struct said *s, struct judgement *j)
{
	const struct guest_run *g = &v->runs[run];

	if (!said_is(s, "begun"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else if (s->n > 1)
		judge_set(j, VERDICT_FAIL, "it went on to its end");
	else if (!g->ended)
		judge_set(j, VERDICT_FAIL, "it still runs");
	else if (strcmp(g->ended_by, reason) != 0)
		judge_set(j, VERDICT_FAIL, "it ended, but by: %s", g->ended_by);
	else
		judge_set(j, VERDICT_PASS, "ended by: %s", g->ended_by);
}

void judge_wall_clock(const struct verify *v, const struct verify_check *c, const struct said *s,
		      struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_WALL];
	double seconds = (double)(g->ended_usec - g->begun_usec) / USEC_PER_SEC;

	(void)c;
	judge_ended(v, RUN_WALL, "wall-clock", s, j);
	if (j->verdict != VERDICT_PASS)
		return;
	judge_set(j, g->ended_usec - g->begun_usec > LATE_USEC ? VERDICT_FAIL : VERDICT_PASS,
		  "ended by: wall-clock, after %.1f s", seconds);
}

void judge_cpu_time(const struct verify *v, const struct verify_check *c, const struct said *s,
		    struct judgement *j)
{
	(void)c;
	judge_ended(v, RUN_CPU_TIME, "cpu-time", s, j);
}

void judge_memory(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)c;
	judge_ended(v, RUN_MEMORY, "memory", s, j);
}

/* 20 %, each period's quota once more for the one that was under way, and some for the clock. */
void judge_cpu(const struct verify *v, const struct verify_check *c, const struct said *s,
	       struct judgement *j)
{
	double share =
		v->cpu_wall_usec ? 100.0 * (double)v->cpu_used_usec / (double)v->cpu_wall_usec : 0;

	(void)c;
	if (!said_is(s, "begun"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else if (!v->cpu_wall_usec || v->cpu_used_usec == 0)
		judge_set(j, VERDICT_UNKNOWN, "cpu.stat was not read");
	else
		judge_set(j, share > 30 ? VERDICT_FAIL : VERDICT_PASS, "%.0f%% of one CPU", share);
}

void judge_pids(const struct verify *v, const struct verify_check *c, const struct said *s,
		struct judgement *j)
{
	long n = strtol(s->detail, NULL, 10);

	(void)v;
	(void)c;
	if (said_is(s, "done") || (said_is(s, "EAGAIN") && n >= 16))
		judge_set(j, VERDICT_FAIL, "%ld processes", n);
	else
		judge_set(j, said_is(s, "EAGAIN") ? VERDICT_PASS : VERDICT_UNKNOWN,
			  "%s after %ld more processes", s->outcome, n);
}

/* The grandchild keeps the pipe: only its death closes it. */
void judge_tree(const struct verify *v, const struct verify_check *c, const struct said *s,
		struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_TREE];

	(void)c;
	if (!said_is(s, "begun"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else if (!g->ended)
		judge_set(j, VERDICT_FAIL, "the run does not end");
	else if (g->lingered)
		judge_set(j, VERDICT_FAIL, "it lives on");
	else
		judge_set(j, VERDICT_PASS, "it was dead when the run had ended");
}
