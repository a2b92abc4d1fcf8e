/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/verify_judge.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/units.h"

#define PRIMES_SUM "5736396" /* of those below 10000 */
#define LATE_USEC  (10 * USEC_PER_SEC)

void judge_set(struct judgement *j, enum verdict verdict, const char *format, ...)
{
	va_list ap;

	j->verdict = verdict;
	va_start(ap, format);
	vsnprintf(j->seen, sizeof(j->seen), format, ap);
	va_end(ap);
}

static bool is(const struct said *s, const char *outcome)
{
	return strcmp(s->outcome, outcome) == 0;
}

static bool is_error(const struct said *s)
{
	return s->outcome[0] == 'E' || is(s, "nothing");
}

/* What the probe said, as it is. */
static void judge_said(struct judgement *j, enum verdict verdict, const struct said *s)
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
		   is(s, "done") ? VERDICT_FAIL
		   : is_error(s) ? VERDICT_PASS
				 : VERDICT_UNKNOWN,
		   s);
}

static void judge_exact(const char *outcome, const struct said *s, struct judgement *j)
{
	judge_said(j,
		   is(s, outcome)		  ? VERDICT_PASS
		   : is(s, "done") || is_error(s) ? VERDICT_FAIL
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

/* ---- by what arrived ---- */

void judge_arrival(const struct verify *v, const struct verify_check *c, const struct said *s,
		   struct judgement *j)
{
	const struct listener *l = &v->prepared.listener[c->aim - AIM_NET];

	if (l->heard > 0)
		judge_set(j, v->has_allowances ? VERDICT_UNKNOWN : VERDICT_FAIL,
			  "%u arrived; %s (%.80s)%s", l->heard, s->outcome, s->detail,
			  v->has_allowances ? "; if the profile allows it, see harpe-gov firewall "
					      "explain"
					    : "");
	else if (!l->able)
		judge_set(j, VERDICT_UNKNOWN, "the listener does not hear verify itself either");
	else if (l->type == SOCK_STREAM && is(s, "done"))
		judge_set(j, VERDICT_FAIL, "connected to %.120s, which is none of verify's",
			  s->detail);
	else
		judge_set(j, VERDICT_PASS, "nothing arrived; %s (%.120s)", s->outcome, s->detail);
}

void judge_listen(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)c;
	if (!is(s, "done"))
		judge_set(j, VERDICT_UNKNOWN, "the guest cannot listen: %s", s->outcome);
	else if (v->listener_answered)
		judge_set(j, v->has_allowances ? VERDICT_UNKNOWN : VERDICT_FAIL,
			  "a connection from the host was answered");
	else
		judge_set(j, VERDICT_PASS, "a connection from the host was not answered");
}

void judge_target(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (j->verdict == VERDICT_FAIL && v->has_allowances)
		judge_set(j, VERDICT_UNKNOWN, "it was sent; profile %s may allow it", v->net);
}

/* The table counts; what it lets through the layers behind it would stop. */
void judge_table(const struct verify *v, const struct verify_check *c, const struct said *s,
		 struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];

	(void)c;
	(void)s;
	if (g->unroutable > 0)
		judge_set(j, VERDICT_PASS, "%" PRId64 " to where no route leads", g->unroutable);
	else if (g->drops_uid > 0)
		judge_set(j, VERDICT_PASS,
			  "%" PRId64 " of its uid, %" PRId64 " of its cgroup alone", g->drops_uid,
			  g->drops_slice);
	else if (g->drops_uid < 0)
		judge_set(j, VERDICT_UNKNOWN, "the report has no counters");
	else
		judge_set(j, VERDICT_FAIL, "nothing was counted: something else stopped it");
}

/* A host without IPv6 has no groups of it. */
void judge_join6(const struct verify *v, const struct verify_check *c, const struct said *s,
		 struct judgement *j)
{
	judge_refused(v, c, s, j);
	if (is(s, "EAFNOSUPPORT"))
		judge_set(j, VERDICT_PASS, "there is no IPv6");
}

void judge_dns(const struct verify *v, const struct verify_check *c, const struct said *s,
	       struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (is(s, "nothing"))
		judge_set(j, VERDICT_UNKNOWN, "it could ask %.100s, and got no answer", s->detail);
}

void judge_resolver(const struct verify *v, const struct verify_check *c, const struct said *s,
		    struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (is(s, "answer"))
		judge_set(j, VERDICT_UNKNOWN,
			  "\"%.80s\": somebody answered, or nobody has to be asked "
			  "(nsswitch.conf)",
			  s->detail);
}

void judge_doors(const struct verify *v, const struct verify_check *c, const struct said *s,
		 struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (v->prepared.unix_heard[0] || v->prepared.unix_heard[1])
		judge_set(j, VERDICT_FAIL, "it connected");
}

/* SECURITY.md: in the host's network these are closed only where the kernel can scope them. */
void judge_abstract(const struct verify *v, const struct verify_check *c, const struct said *s,
		    struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (v->prepared.unix_heard[2] || is(s, "done"))
		judge_set(j, strcmp(v->net, "isolated") == 0 ? VERDICT_FAIL : VERDICT_UNKNOWN,
			  "it connected: what listens on such a socket may act for the guest; only "
			  "--net=isolated closes them on every kernel");
}

/* ---- by what happened ---- */

void judge_calculation(const struct verify *v, const struct verify_check *c, const struct said *s,
		       struct judgement *j)
{
	(void)v;
	(void)c;
	judge_said(j,
		   is(s, "done") && strcmp(s->detail, PRIMES_SUM) == 0 ? VERDICT_PASS
								       : VERDICT_FAIL,
		   s);
}

void judge_log(const struct verify *v, const struct verify_check *c, const struct said *s,
	       struct judgement *j)
{
	(void)c;
	if (v->log_written)
		judge_set(j, VERDICT_PASS, "the line is there");
	else
		judge_set(j, VERDICT_FAIL, "the line is missing; %s (%.100s)", s->outcome,
			  s->detail);
}

void judge_left(const struct verify *v, const struct verify_check *c, const struct said *s,
		struct judgement *j)
{
	(void)c;
	if (v->left_shared)
		judge_set(j, VERDICT_FAIL, "the host sees it");
	else if (!is(s, "done"))
		judge_set(j, VERDICT_UNKNOWN, "none could be made: %s (%.100s)", s->outcome,
			  s->detail);
	else
		judge_set(j, VERDICT_PASS, "the host sees none of them");
}

void judge_sysv_made(const struct verify *v, const struct verify_check *c, const struct said *s,
		     struct judgement *j)
{
	(void)c;
	if (v->made_shared)
		judge_set(j, VERDICT_FAIL, "the host sees it");
	else if (!is(s, "done"))
		judge_set(j, VERDICT_UNKNOWN, "none could be made: %s", s->outcome);
	else
		judge_set(j, VERDICT_PASS, "the host does not see it");
}

void judge_nosuid(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	if (is(s, "nosuid"))
		judge_set(j, VERDICT_PASS, "nosuid everywhere");
	else
		judge_set(j, is(s, "suid") ? VERDICT_FAIL : VERDICT_UNKNOWN, "not nosuid: %.150s",
			  s->detail);
}

void judge_signal(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (victim_was_signalled(&v->prepared))
		judge_set(j, VERDICT_FAIL, "a process of the caller's was signalled");
}

/* It may reach its own. */
void judge_signal_all(const struct verify *v, const struct verify_check *c, const struct said *s,
		      struct judgement *j)
{
	(void)c;
	if (victim_was_signalled(&v->prepared) || is(s, "unsafe"))
		judge_set(j, VERDICT_FAIL, "it would reach processes of the caller's");
	else if (is(s, "done") || is_error(s))
		judge_set(j, VERDICT_PASS, "nobody's but its own; %s", s->outcome);
	else
		judge_said(j, VERDICT_UNKNOWN, s);
}

/* A kernel without the other architecture kills instead. */
void judge_foreign_call(const struct verify *v, const struct verify_check *c, const struct said *s,
			struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (is(s, "killed"))
		judge_said(j, VERDICT_PASS, s);
}

void judge_leftovers(const struct verify *v, const struct verify_check *c, const struct said *s,
		     struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];

	(void)c;
	(void)s;
	if (!g->ended)
		judge_set(j, VERDICT_UNKNOWN, "it did not end");
	else if (v->left[0])
		judge_set(j, VERDICT_FAIL, "%s", v->left);
	else if (g->lingered)
		judge_set(j, VERDICT_FAIL, "something keeps its standard output");
	else if (!g->row.id[0])
		judge_set(j, VERDICT_UNKNOWN, "which control group it had is not known");
	else
		judge_set(j, VERDICT_PASS, "its control group is gone, nobody keeps its output");
}

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
	if (!is(s, "seen"))
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
	if (!is(s, "seen"))
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

	if (!is(s, "begun"))
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
	if (!is(s, "begun"))
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
	if (is(s, "done") || (is(s, "EAGAIN") && n >= 16))
		judge_set(j, VERDICT_FAIL, "%ld processes", n);
	else
		judge_set(j, is(s, "EAGAIN") ? VERDICT_PASS : VERDICT_UNKNOWN,
			  "%s after %ld more processes", s->outcome, n);
}

/* The grandchild keeps the pipe: only its death closes it. */
void judge_tree(const struct verify *v, const struct verify_check *c, const struct said *s,
		struct judgement *j)
{
	const struct guest_run *g = &v->runs[RUN_TREE];

	(void)c;
	if (!is(s, "begun"))
		judge_said(j, VERDICT_UNKNOWN, s);
	else if (!g->ended)
		judge_set(j, VERDICT_FAIL, "the run does not end");
	else if (g->lingered)
		judge_set(j, VERDICT_FAIL, "it lives on");
	else
		judge_set(j, VERDICT_PASS, "it was dead when the run had ended");
}
