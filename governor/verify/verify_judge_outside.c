/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By what arrived or happened outside, whatever the probe says. */
#include "governor/verify/verify_judge.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#define PRIMES_SUM "5736396" /* of those below 10000 */

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
	else if (l->type == SOCK_STREAM && said_is(s, "done"))
		judge_set(j, VERDICT_FAIL, "connected to %.120s, which is none of verify's",
			  s->detail);
	else if (!said_is(s, "done") && !said_is_error(s)) /* it may never have sent */
		judge_said(j, VERDICT_UNKNOWN, s);
	else
		judge_set(j, VERDICT_PASS, "nothing arrived; %s (%.120s)", s->outcome, s->detail);
}

void judge_listen(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)c;
	if (!said_is(s, "done"))
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
	if (said_is(s, "EAFNOSUPPORT"))
		judge_set(j, VERDICT_PASS, "there is no IPv6");
}

void judge_dns(const struct verify *v, const struct verify_check *c, const struct said *s,
	       struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (said_is(s, "nothing"))
		judge_set(j, VERDICT_UNKNOWN, "it could ask %.100s, and got no answer", s->detail);
}

void judge_resolver(const struct verify *v, const struct verify_check *c, const struct said *s,
		    struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (said_is(s, "answer"))
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
	if (v->prepared.unix_heard[2] || said_is(s, "done"))
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
		   said_is(s, "done") && strcmp(s->detail, PRIMES_SUM) == 0 ? VERDICT_PASS
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
	else if (!said_is(s, "done"))
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
	else if (!said_is(s, "done"))
		judge_set(j, VERDICT_UNKNOWN, "none could be made: %s", s->outcome);
	else
		judge_set(j, VERDICT_PASS, "the host does not see it");
}

void judge_nosuid(const struct verify *v, const struct verify_check *c, const struct said *s,
		  struct judgement *j)
{
	(void)v;
	(void)c;
	if (said_is(s, "nosuid"))
		judge_set(j, VERDICT_PASS, "nosuid everywhere");
	else
		judge_set(j, said_is(s, "suid") ? VERDICT_FAIL : VERDICT_UNKNOWN,
			  "not nosuid: %.150s", s->detail);
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
	if (victim_was_signalled(&v->prepared) || said_is(s, "unsafe"))
		judge_set(j, VERDICT_FAIL, "it would reach processes of the caller's");
	else if (said_is(s, "done") || said_is_error(s))
		judge_set(j, VERDICT_PASS, "nobody's but its own; %s", s->outcome);
	else
		judge_said(j, VERDICT_UNKNOWN, s);
}

/* A kernel without the other architecture kills instead. */
void judge_foreign_call(const struct verify *v, const struct verify_check *c, const struct said *s,
			struct judgement *j)
{
	judge_denied(v, c, s, j);
	if (said_is(s, "killed"))
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
