/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PAIR_START: policy, place, uid and scope; and who waits for a place. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "governor/admission.h"
#include "governor/asks.h"
#include "governor/journal.h"
#include "governor/policy.h"

#define WAIT_MAX_USEC (86400 * USEC_PER_SEC)

static int make_id(struct run *r, struct error *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(e, -errno, "no random number");
	snprintf(r->id, sizeof(r->id), "%016" PRIx64, random);
	snprintf(r->scope, sizeof(r->scope), "harpe-%s.scope", r->id);
	return 0;
}

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
	if (ret < 0)
		return ret;
	r->slice = daemon_slice(r->d, profile->name);
	if ((size_t)snprintf(r->path, sizeof(r->path), "%s/%s", r->slice->path, r->scope) >=
	    sizeof(r->path))
		return error_set(e, -ENAMETOOLONG, "the slice lies too deep");
	return 0;
}

static int check_scope(struct run *r, struct error *e)
{
	char path[PATH_TEXT_MAX];
	struct stat st;
	int ret = scope_path(r->scope, r->holder.pid, path, e);

	if (ret < 0)
		return ret;
	if (strcmp(path, r->path) != 0)
		return error_set(e, -ESTALE, "systemd made %s instead of %s", path, r->path);
	if (stat(path, &st) < 0)
		return error_errno(e, -errno, "%s", path);
	r->scope_id = st.st_ino;
	return 0;
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
	m.grant.limits = r->limits;
	m.grant.origins = r->origins;
	r->state = RUN_PREPARING;
	run_set_timer(r, SETUP_USEC);
	run_reply(r, PAIR_START, &m);
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
		scope_stop(r->d->scopes, r->scope);
		if (run_scope_is_gone(r))
			run_finish(r);
		else
			run_set_timer(r, SCOPE_USEC);
		return;
	}
	if (ret == 0)
		ret = check_scope(r, &e);
	if (ret == 0) {
		grant(r);
		return;
	}
	scope_stop(r->d->scopes, r->scope);
	run_refuse(r, PAIR_START, &e);
}

static int start_scope(struct run *r, struct error *e)
{
	char description[64 + GUEST_NAME_MAX];
	struct scope_spec spec = {
		.name = r->scope,
		.slice = r->slice->unit,
		.description = description,
		.pid = r->holder.pid,
		.limits = &r->limits,
	};

	snprintf(description, sizeof(description), "Guest %s of uid %u", r->id, r->caller.uid);
	return scope_start(r->d->scopes, &spec, on_scope_started, r, e);
}

/* A uid and a scope for @r, which has an id. */
static int take_place(struct run *r, struct error *e)
{
	struct daemon *d = r->d;
	int ret = judge(r, e);

	if (ret == 0)
		ret = admission_check(r, e);
	if (ret == 0 && identity_n_free(d->pool) == 0)
		daemon_verify_uids(d); /* not off the hot path, but better than none */
	if (ret == 0)
		ret = identity_lease(d->pool, &r->uid, e);
	if (ret < 0)
		return ret;
	ret = holder_start(&r->holder);
	if (ret < 0)
		error_errno(e, ret, "no process to make a scope around");
	else
		ret = start_scope(r, e);
	if (ret < 0) {
		holder_stop(&r->holder);
		daemon_quarantine(d, r->uid);
		return ret;
	}
	r->has_scope = r->job = true;
	run_note(r);
	r->state = RUN_STARTING;
	run_set_timer(r, SETUP_USEC);
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
	return make_id(r, e);
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
