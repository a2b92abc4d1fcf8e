/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PAIR_START: policy, place, uid and scope; and who waits for a place. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "governor/daemon/access.h"
#include "governor/daemon/admission.h"
#include "governor/daemon/asks.h"
#include "governor/daemon/drops.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/place.h"
#include "governor/daemon/policy.h"
#include "governor/daemon/slots.h"

#define WAIT_MAX_USEC (86400 * USEC_PER_SEC)

/* What the configuration says to the request: asked anew when a place is there, since a reload may
 * have come while the run waited for it. */
static int judge(struct run *r, struct error *e)
{
	const struct config *c = r->d->config;
	const struct access *a = access_find(c, &r->caller);
	const struct profile *profile;
	int ret = policy_limits(c, a, &r->asked.limits, &r->limits, &r->origins, e);

	if (ret == 0)
		ret = policy_profile(c, a, r->asked.net, &profile, e);
	if (ret == 0)
		r->slice = daemon_slice(r->d, profile->name);
	return ret;
}

static void grant(struct run *r)
{
	struct pair_reply m = { .verb = PAIR_OK };

	memcpy(m.grant.id, r->id, sizeof(m.grant.id));
	memcpy(m.grant.profile, r->slice->profile, sizeof(m.grant.profile));
	m.grant.own_network = r->slice->own_network;
	m.grant.means = r->d->means;
	m.grant.filter = r->slice->filter;
	m.grant.resolver = r->slice->resolver;
	memcpy(m.grant.scope, r->path, sizeof(m.grant.scope));
	m.grant.uid = r->uid;
	m.grant.caller_uid = r->caller.uid;
	m.grant.holder = r->holder.pid;
	m.grant.was_warm = r->was_warm;
	m.grant.limits = r->limits;
	m.grant.made = r->made;
	m.grant.origins = r->origins;
	r->state = RUN_PREPARING;
	run_set_timer(r, SETUP_USEC);
	run_reply_with(r, PAIR_START, &m, &r->spaces);
	spaces_close(&r->spaces);
	drops_begin(r); /* while the supervisor is at work */
}

/* The caller is not kept waiting any longer; its uid is, until systemd has answered. */
static void on_scope_late(struct run *r, const struct error *e)
{
	r->silent = true;
	journal_error("%s; uid %u is not used before it says more", e->text, r->uid);
	if (r->state == RUN_STARTING)
		run_refuse(r, PAIR_START, e);
	else if (r->state == RUN_ENDING)
		run_end_early(r);
}

static void on_scope_started(void *userdata, int ret, const struct error *error)
{
	struct run *r = userdata;
	struct error e = *error;

	if (ret == -EINPROGRESS) {
		on_scope_late(r, &e);
		return;
	}
	r->job = false;
	if (r->state != RUN_STARTING) { /* it ended meanwhile */
		place_leave(r);
		return;
	}
	if (ret == 0)
		ret = place_check(r, &e);
	if (ret == 0) {
		grant(r);
		return;
	}
	scope_stop(r->d->scopes, r->scope);
	run_refuse(r, PAIR_START, &e);
}

/* Not off the hot path, but better than none: what came back, else that of a slot. */
static void find_uid(struct daemon *d)
{
	if (identity_n_free(d->pool) == 0)
		daemon_verify_uids(d);
	if (identity_n_free(d->pool) > 0)
		return;
	slots_yield(d);
	daemon_verify_uids(d);
}

/* A uid and a scope of its own for @r, which has an id. */
static int make_place(struct run *r, struct error *e)
{
	char description[64];
	int ret;

	find_uid(r->d);
	r->made = r->limits;
	snprintf(description, sizeof(description), "Guest %s of uid %u", r->id, r->caller.uid);
	ret = place_take(r, description, on_scope_started, e);
	if (ret == 0)
		run_note(r);
	return ret;
}

/* A place that is there already, or one of its own. Who waits is known by its id already. */
static int take_place(struct run *r, struct error *e)
{
	int ret = judge(r, e);

	if (ret == 0)
		ret = admission_check(r, e);
	if (ret < 0)
		return ret;
	slots_need(r->d);
	if (r->state == RUN_WAITING || !slots_take(r))
		return make_place(r, e);
	grant(r);
	run_note(r);
	return 0;
}

static int settle(struct run *r, const struct pair_ask *ask, struct error *e)
{
	if (r->state != RUN_CONNECTED)
		return error_set(e, -EPROTO, "a connection is good for one guest");
	if (r->late)
		return run_too_late(e);
	if (r->d->stopping)
		return error_set(e, -EBUSY, "no guest can be started now: the daemon stops");
	r->asked = ask->start;
	r->asked.name[GUEST_NAME_MAX] = '\0';
	r->asked.command[COMMAND_TEXT_MAX] = '\0';
	if (r->asked.wait_usec > WAIT_MAX_USEC)
		r->asked.wait_usec = WAIT_MAX_USEC;
	r->asked.net[PROFILE_NAME_MAX] = '\0';
	return place_name(r, e);
}

void ask_start(struct run *r, const struct pair_ask *ask)
{
	struct error e = ERROR_NULL;
	int ret = settle(r, ask, &e);

	if (ret == 0)
		ret = take_place(r, &e);
	if (admission_is_shortage(ret) && r->asked.wait_usec > 0) {
		r->state = RUN_WAITING;
		run_set_timer(r, r->asked.wait_usec);
	} else if (ret < 0) {
		run_refuse(r, PAIR_START, &e);
	}
}

void asks_admit_waiting(struct daemon *d)
{
	struct error e = ERROR_NULL;
	struct run *r;

	while (!d->stopping && (r = admission_next(d))) {
		int ret = take_place(r, &e);

		if (admission_is_shortage(ret))
			return; /* nobody overtakes it */
		if (ret < 0) {
			r->state = RUN_CONNECTED;
			run_refuse(r, PAIR_START, &e);
		}
	}
}

void asks_stop_waiting(struct run *r)
{
	struct error e = ERROR_NULL;
	char time[32];

	admission_check(r, &e);
	error_wrap(&e, -ETIMEDOUT, "no place within %s",
		   unit_format(UNIT_DURATION, r->asked.wait_usec, time, sizeof(time)));
	r->state = RUN_CONNECTED;
	run_refuse(r, PAIR_START, &e);
	asks_admit_waiting(r->d); /* those behind it may need less */
}
