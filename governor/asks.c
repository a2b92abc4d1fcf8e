/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What supervisors ask of the daemon, one function per verb of pair.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/text.h"
#include "governor/admission.h"
#include "governor/cgroup.h"
#include "governor/journal.h"
#include "governor/ledger.h"
#include "governor/policy.h"
#include "governor/run.h"
#include "governor/runs.h"

#define WAIT_MAX_USEC (86400 * USEC_PER_SEC)

/* ---- PAIR_HELLO ---- */

static void ask_hello(struct run *r, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct error e = ERROR_NULL;
	const struct access *a;

	r->caller = ask->caller;
	if (r->caller.n_groups > CALLER_GROUPS_MAX)
		r->caller.n_groups = CALLER_GROUPS_MAX;
	runs_listen(r->d);
	a = access_find(r->d->config, &r->caller);
	if (run_count_of_caller(r, false) < a->max_connections) {
		run_reply(r, PAIR_HELLO, &m);
		return;
	}
	error_set(&e, -EDQUOT,
		  "uid %u has %u connection%s already, the most that max-connections allows",
		  r->caller.uid, a->max_connections, PLURAL(a->max_connections));
	run_refuse(r, PAIR_HELLO, &e);
}

/* ---- PAIR_START ---- */

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

/* For a later daemon, should this one die. The run goes on without. */
static void note(const struct run *r)
{
	struct report report;
	struct error e = ERROR_NULL;

	run_describe(r, &report);
	if (ledger_note(LEDGER_PATH, &report, &e) < 0)
		journal_error("run %s: %s", r->id, e.text);
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
	note(r);
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

static void ask_start(struct run *r, const struct pair_ask *ask)
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
	r->drops_before = FIREWALL_UNKNOWN;
	firewall_uid_drops(r->d->firewall, r->uid, &r->drops_before, NULL);
	r->started_usec = clock_usec(CLOCK_REALTIME);
	r->main_pid = release->main_pid;
	r->in_force = release->in_force;
	note(r);
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
}

/* ---- PAIR_END ---- */

/* Strings of a record are as trustworthy as a process that talked to a peer. */
static void take_report(struct run *r, const struct report *report)
{
	r->report = *report;
	r->report.ended %= ENDED_COUNT;
	r->report.profile[sizeof(r->report.profile) - 1] = '\0';
	r->report.error[sizeof(r->report.error) - 1] = '\0';
}

static void ask_end(struct run *r, const struct pair_ask *ask)
{
	take_report(r, &ask->report);
	/* A holder that died by itself did so because the whole scope was stopped. */
	if (r->has_scope && !r->job && r->report.ended == ENDED_SIGNALED &&
	    holder_is_dead(&r->holder))
		r->report.ended = ENDED_KILLED;
	holder_kill(&r->holder);
	r->state = RUN_ENDING;
	if (r->job && r->silent)
		run_end_early(r);
	else if (!r->has_scope || run_scope_is_gone(r))
		run_finish(r);
	else
		run_set_timer(r, SCOPE_USEC);
}

/* ---- PAIR_NEXT, PAIR_KILL ---- */

static bool owns(const struct run *asker, const struct run *r)
{
	return asker->caller.uid == 0 || asker->caller.uid == r->caller.uid;
}

static uint64_t count_in(int dirfd, const char *file)
{
	char text[32];
	uint64_t n;

	if (read_file_at(dirfd, file, text, sizeof(text)) < 0 || parse_u64_prefix(text, &n) < 0)
		return UINT64_MAX;
	return n;
}

/* Before guest/ is there, and when it is gone, nothing is known. */
static void count_guest(const struct run *r, struct guest_row *row)
{
	char path[PATH_TEXT_MAX + 8];
	_cleanup_(cgroup_close) struct cgroup cg = CGROUP_NULL;

	snprintf(path, sizeof(path), "%s/guest", r->path);
	cg.guest_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	row->memory_bytes = count_in(cg.guest_fd, "memory.current");
	row->memory_peak = count_in(cg.guest_fd, "memory.peak");
	row->pids = count_in(cg.guest_fd, "pids.current");
	if (cgroup_cpu_usage(&cg, &row->cpu_usec) < 0)
		row->cpu_usec = UINT64_MAX;
}

static uint32_t state_of(const struct run *r)
{
	if (r->state == RUN_WAITING)
		return GUEST_WAITING;
	if (r->state == RUN_RUNNING)
		return GUEST_RUNNING;
	return r->state < RUN_RUNNING ? GUEST_STARTING : GUEST_ENDING;
}

static void fill_row(const struct run *r, struct guest_row *row)
{
	memcpy(row->id, r->id, sizeof(row->id));
	memcpy(row->name, r->asked.name, sizeof(row->name));
	memcpy(row->command, r->asked.command, sizeof(row->command));
	row->state = state_of(r);
	row->uid = r->uid;
	row->caller_uid = r->caller.uid;
	row->main_pid = (uint32_t)r->main_pid;
	row->started_usec = r->started_usec;
	row->limits = r->main_pid ? r->in_force : r->limits;
	row->own = r->limits;
	memcpy(row->profile, r->slice->profile, sizeof(row->profile));
	if (r->has_scope)
		memcpy(row->cgroup, r->path, sizeof(row->cgroup));
	count_guest(r, row);
}

static void ask_next(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_NONE };

	for (const struct run *r = asker->d->runs; r; r = r->next) {
		if (r->serial <= ask->cursor || !run_is_guest(r) || !owns(asker, r))
			continue;
		m.verb = PAIR_OK;
		m.next.cursor = r->serial;
		fill_row(r, &m.next.row);
		break;
	}
	run_reply(asker, PAIR_NEXT, &m);
}

static bool is_target(const struct run *r, const char *target)
{
	return !target[0] || strcmp(target, r->id) == 0 || strcmp(target, r->asked.name) == 0;
}

static void ask_kill(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	char target[GUEST_NAME_MAX + 1];

	memcpy(target, ask->target, sizeof(target));
	target[GUEST_NAME_MAX] = '\0';
	for (struct run *r = asker->d->runs; r; r = r->next) {
		if (!run_is_guest(r) || !owns(asker, r) || !is_target(r, target))
			continue;
		run_stop(r, ENDED_KILLED);
		m.count++;
	}
	run_reply(asker, PAIR_KILL, &m);
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
