/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What supervisors ask of the daemon, one function per verb of pair.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/text.h"
#include "governor/daemon/asks.h"
#include "governor/daemon/overlap.h"
#include "governor/daemon/policy.h"
#include "governor/daemon/runs.h"
#include "governor/daemon/slots.h"
#include "governor/daemon/spare.h"
#include "governor/guest/cgroup_limits.h"

/* ---- PAIR_HELLO ---- */

static void ask_hello(struct run *r, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct error e = ERROR_NULL;
	const struct access *a;

	r->caller = ask->caller;
	if (r->caller.n_groups > CALLER_GROUPS_MAX)
		r->caller.n_groups = CALLER_GROUPS_MAX;
	run_set_timer(r, REQUEST_USEC);
	spare_taken(r);
	/* One account has thousands of them, each of which would count as a caller of its own and
	 * fall under no [access NAME] of the account's. */
	if (overlap_is_lent(r->caller.uid)) {
		error_set(&e, -EACCES,
			  "uid %u is one of those that /etc/subuid lends to an account; call as "
			  "the account itself",
			  r->caller.uid);
		run_refuse(r, PAIR_HELLO, &e);
		return;
	}
	a = access_find(r->d->config, &r->caller);
	if (!run_caller_has(r, false, a->max_connections)) {
		run_reply(r, PAIR_HELLO, &m);
		return;
	}
	error_set(&e, -EDQUOT,
		  "uid %u has %u connection%s already, the most that max-connections allows",
		  r->caller.uid, a->max_connections, PLURAL(a->max_connections));
	run_refuse(r, PAIR_HELLO, &e);
}

/* ---- PAIR_EXPLAIN ---- */

static void ask_explain(struct run *r, const struct pair_ask *ask)
{
	const struct config *c = r->d->config;
	const struct access *a = access_find(c, &r->caller);
	struct pair_reply m = { .verb = PAIR_OK };
	struct explanation *x = &m.explanation;
	const struct profile *profile;
	struct error e = ERROR_NULL;
	int ret = policy_limits(c, a, &ask->start.limits, &x->limits, &x->origins, &e);

	if (ret == 0)
		ret = policy_profile(c, a, ask->start.net, &profile, &e);
	x->in_force = x->limits;
	if (ret == 0)
		ret = cgroup_lower(daemon_slice(r->d, profile->name)->path, &x->in_force, &x->above,
				   &e);
	if (ret < 0) {
		run_refuse(r, PAIR_EXPLAIN, &e);
		return;
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		x->ceiling.value[i] = access_ceiling(c, a, (enum limit)i);
		config_ceiling_origin(c, a, (enum limit)i, x->ceiling_origins.text[i],
				      ORIGIN_TEXT_MAX);
	}
	snprintf(x->access, sizeof(x->access), "access%s%s", a->name[0] ? " " : "", a->name);
	memcpy(x->profile, profile->name, sizeof(x->profile));
	profile_sentence(profile, x->network);
	run_reply(r, PAIR_EXPLAIN, &m);
}

/* ---- PAIR_RELEASE ---- */

static int check_release(struct run *r, struct error *e)
{
	int ret;

	if (r->state != RUN_PREPARING)
		return error_set(e, -EPROTO, "nothing is prepared that could be released");
	if (r->late)
		return run_too_late(e);
	if (r->d->stopping)
		return error_set(e, -EBUSY, "the daemon stops");
	ret = scope_check_ip_deny(r->path, e); /* this run's own trouble, if any */
	return ret < 0 ? ret : daemon_check_policy(r->d, r->slice, e);
}

static void note_release(struct run *r, const struct pair_release *release)
{
	r->started_usec = clock_usec(CLOCK_REALTIME);
	r->main_pid = release->main_pid;
	r->in_force = release->in_force;
	run_note(r);
	r->state = RUN_RUNNING;
	sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
}

static void ask_release(struct run *r, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct error e = ERROR_NULL;

	if (check_release(r, &e) < 0) {
		run_refuse(r, PAIR_RELEASE, &e);
		return;
	}
	note_release(r, &ask->release);
	run_reply(r, PAIR_RELEASE, &m);
	spare_need(r->d, 0); /* while the guest is busy */
}

/* ---- all of them ---- */

static const struct {
	uint32_t verb;
	void (*serve)(struct run *r, const struct pair_ask *ask);
} verbs[] = {
	{ PAIR_HELLO, ask_hello },     { PAIR_START, ask_start }, { PAIR_EXPLAIN, ask_explain },
	{ PAIR_RELEASE, ask_release }, { PAIR_END, ask_end },	  { PAIR_NEXT, ask_next },
	{ PAIR_KILL, ask_kill },
};

int asks_serve(struct run *r, const struct pair_ask *ask)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].verb == ask->verb) {
			verbs[i].serve(r, ask);
			return 0;
		}
	return -EPROTO;
}
