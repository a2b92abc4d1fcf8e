/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/journal.h"
#include "governor/policy.h"
#include "governor/supervisor.h"

#define REQUEST_USEC ((REQUEST_DEADLINE_SEC + 1) * USEC_PER_SEC)
#define SETUP_USEC   (60 * USEC_PER_SEC)
#define SCOPE_USEC   (10 * USEC_PER_SEC) /* for systemd to take an empty scope away */

enum run_state {
	RUN_CONNECTED, /* the supervisor has not asked for anything */
	RUN_STARTING,  /* uid leased, systemd makes the scope */
	RUN_PREPARING, /* the supervisor builds the guest */
	RUN_RUNNING,
	RUN_ENDING, /* the guest is dead, systemd takes the scope away */
	RUN_STUCK,  /* systemd did not, or the supervisor is dead: nobody is told any more */
};

struct run {
	struct daemon *d;
	struct run *next;
	uint64_t serial;
	enum run_state state;
	pid_t supervisor; /* 0 once reaped */
	int pair;
	sd_event_source *io, *child, *timer;
	struct ucred caller;

	/* from PAIR_START on */
	struct pair_start asked;
	struct limits limits;
	char id[RUN_ID_LEN + 1];
	char scope[SCOPE_NAME_MAX];
	char path[PATH_TEXT_MAX]; /* the scope's cgroup directory */
	uint64_t scope_id;	  /* its cgroup id */
	uint32_t uid;
	bool has_scope; /* and the lease of uid with it */

	/* from PAIR_RELEASE on */
	pid_t main_pid;
	uint64_t started_usec;
	uint64_t drops_before;

	/* from PAIR_END on */
	struct report report;
};

uint32_t runs_max(const struct daemon *d)
{
	return 2 * d->config.uid_count + 64;
}

/* ---- small things ---- */

static struct run *find_last(struct daemon *d)
{
	struct run *r = d->runs;

	while (r && r->next)
		r = r->next;
	return r;
}

static void run_free(struct run *r)
{
	struct run **p = &r->d->runs;

	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
	r->d->n_runs--;
	scope_forget(r->d->scopes, r);
	sd_event_source_disable_unref(r->io);
	sd_event_source_disable_unref(r->child);
	sd_event_source_disable_unref(r->timer);
	close_fd(&r->pair);
	if (!r->d->stopping)
		sd_event_source_set_enabled(r->d->listener, SD_EVENT_ON);
	free(r);
}

static void kill_supervisor(struct run *r)
{
	if (r->supervisor > 0)
		kill(r->supervisor, SIGKILL); /* not reaped yet, so the pid is still its own */
}

static void reply(struct run *r, const struct pair_reply *m)
{
	if (r->pair >= 0 && pair_send(r->pair, m, sizeof(*m)) < 0)
		kill_supervisor(r);
}

static void reply_refused(struct run *r, const struct error *e)
{
	struct pair_reply m = { .verb = PAIR_REFUSED };

	m.refused = *e;
	reply(r, &m);
}

static void set_timer(struct run *r, uint64_t usec)
{
	sd_event_source_set_time_relative(r->timer, usec);
	sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static bool owns(const struct run *asker, const struct run *r)
{
	return asker->caller.uid == 0 || asker->caller.uid == r->caller.uid;
}

static bool is_guest(const struct run *r)
{
	return r->state >= RUN_STARTING;
}

/* ---- the scope's end ---- */

/* The last of the guest is gone: lease and entry go with it. */
static void finish(struct run *r)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct daemon *d = r->d;
	uint64_t now = FIREWALL_UNKNOWN, strays = FIREWALL_UNKNOWN;

	if (r->has_scope && r->started_usec > 0) {
		firewall_uid_drops(d->firewall, r->uid, &now, NULL);
		firewall_stray_drops(d->firewall, r->scope_id, &strays, NULL);
	}
	if (r->has_scope)
		identity_return(d->pool, r->uid);
	r->has_scope = false;
	m.drops.uid = now == FIREWALL_UNKNOWN || r->drops_before == FIREWALL_UNKNOWN
			      ? REPORT_UNKNOWN
			      : now - r->drops_before;
	m.drops.slice = strays == FIREWALL_UNKNOWN ? REPORT_UNKNOWN : strays;
	if (r->state == RUN_ENDING) {
		reply(r, &m);
		journal_run(&r->report);
	}
	r->state = RUN_CONNECTED;
	if (r->supervisor == 0)
		run_free(r);
	else
		set_timer(r, REQUEST_USEC); /* it has nothing more to do than to report */
}

static bool scope_is_gone(const struct run *r)
{
	struct stat st;

	return stat(r->path, &st) < 0 && errno == ENOENT;
}

void runs_scope_gone(struct daemon *d, const char *name)
{
	for (struct run *r = d->runs; r; r = r->next) {
		if (!r->has_scope || strcmp(r->scope, name) != 0)
			continue;
		if (r->state == RUN_ENDING || r->supervisor == 0)
			finish(r);
		return; /* else its supervisor will find out and tell */
	}
}

/* The supervisor is dead: what it would have done is done here. */
static void clean_up_after_supervisor(struct run *r)
{
	_cleanup_close_ int fd = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool ran = r->state == RUN_PREPARING || r->state == RUN_RUNNING;

	r->state = RUN_STUCK;
	if (fd >= 0)
		write_file_at(fd, "cgroup.kill", "1");
	scope_stop(r->d->scopes, r->scope);
	if (ran) {
		report_clear(&r->report);
		memcpy(r->report.id, r->id, sizeof(r->report.id));
		r->report.ended = ENDED_GOVERNOR_LOST;
		r->report.uid = r->uid;
		r->report.caller_uid = r->caller.uid;
		journal_run(&r->report);
	}
	if (scope_is_gone(r))
		finish(r);
	else
		set_timer(r, SCOPE_USEC);
}

static int on_supervisor_exit(sd_event_source *source, const siginfo_t *info, void *userdata)
{
	struct run *r = userdata;

	(void)source;
	(void)info;
	r->supervisor = 0;
	r->io = sd_event_source_disable_unref(r->io);
	close_fd(&r->pair);
	r->pair = -1;
	if (r->has_scope)
		clean_up_after_supervisor(r);
	else
		run_free(r);
	return 0;
}

/* ---- PAIR_START ---- */

static uint32_t count_of(const struct run *self, bool guests_only)
{
	uint32_t n = 0;

	for (const struct run *r = self->d->runs; r; r = r->next)
		if (r != self && r->caller.uid == self->caller.uid && (is_guest(r) || !guests_only))
			n++;
	return n;
}

static int make_id(struct run *r, struct error *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(e, -errno, "no random number");
	snprintf(r->id, sizeof(r->id), "%016" PRIx64, random);
	snprintf(r->scope, sizeof(r->scope), "harpe-%s.scope", r->id);
	if ((size_t)snprintf(r->path, sizeof(r->path), "%s/%s", r->d->profile_path, r->scope) >=
	    sizeof(r->path))
		return error_set(e, -ENAMETOOLONG, "the slice lies too deep");
	return 0;
}

static int check_scope(struct run *r, struct error *e)
{
	char path[PATH_TEXT_MAX];
	struct stat st;
	int ret = scope_path(r->scope, r->asked.holder, path, e);

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
	snprintf(m.grant.profile, sizeof(m.grant.profile), "%s", DROP_PROFILE);
	memcpy(m.grant.scope, r->path, sizeof(m.grant.scope));
	m.grant.uid = r->uid;
	m.grant.caller_uid = r->caller.uid;
	m.grant.limits = r->limits;
	r->state = RUN_PREPARING;
	reply(r, &m);
}

static void on_scope_started(void *userdata, int ret, const struct error *error)
{
	struct run *r = userdata;
	struct error e = *error;

	if (ret == 0)
		ret = check_scope(r, &e);
	if (ret == 0) {
		grant(r);
		return;
	}
	scope_stop(r->d->scopes, r->scope);
	reply_refused(r, &e);
}

static int start_scope(struct run *r, struct error *e)
{
	char description[64 + GUEST_NAME_MAX];
	struct scope_spec spec = {
		.name = r->scope,
		.slice = DROP_SLICE,
		.description = description,
		.pid = r->asked.holder,
		.limits = &r->limits,
	};

	snprintf(description, sizeof(description), "Guest %s of uid %u", r->id, r->caller.uid);
	return scope_start(r->d->scopes, &spec, on_scope_started, r, e);
}

static int start(struct run *r, const struct pair_ask *ask, struct error *e)
{
	struct daemon *d = r->d;
	int ret;

	if (r->state != RUN_CONNECTED || d->stopping)
		return error_set(e, -EBUSY, "no guest can be started now: the daemon stops");
	if (count_of(r, true) >= d->config.max_guests)
		return error_set(
			e, -EDQUOT,
			"uid %u has %u guests already, the most that [access] max-guests allows",
			r->caller.uid, d->config.max_guests);
	r->asked = ask->start;
	r->asked.name[GUEST_NAME_MAX] = '\0';
	r->asked.command[COMMAND_TEXT_MAX] = '\0';
	ret = policy_limits(&d->config, &r->asked.limits, &r->limits, e);
	if (ret == 0)
		ret = make_id(r, e);
	if (ret == 0)
		ret = identity_lease(d->pool, &r->uid, e);
	if (ret < 0)
		return ret;
	ret = start_scope(r, e);
	if (ret < 0) {
		identity_return(d->pool, r->uid);
		return ret;
	}
	r->has_scope = true;
	r->state = RUN_STARTING;
	set_timer(r, SETUP_USEC);
	return 0;
}

static void ask_start(struct run *r, const struct pair_ask *ask)
{
	struct error e = ERROR_NULL;

	if (start(r, ask, &e) < 0)
		reply_refused(r, &e);
}

/* ---- PAIR_RELEASE ---- */

static void ask_release(struct run *r, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct error e = ERROR_NULL, why;
	struct timespec now;
	int ret;

	if (r->state != RUN_PREPARING || r->d->stopping) {
		error_set(&e, -EBUSY, "the daemon stops");
		reply_refused(r, &e);
		return;
	}
	ret = daemon_check_policy(r->d, r->path, &e);
	if (ret < 0) {
		why = e;
		error_wrap(&e, ret, "the firewall is not in force, so nothing runs");
		reply_refused(r, &e);
		daemon_policy_lost(r->d, &why);
		return;
	}
	r->drops_before = FIREWALL_UNKNOWN;
	firewall_uid_drops(r->d->firewall, r->uid, &r->drops_before, NULL);
	clock_gettime(CLOCK_REALTIME, &now);
	r->started_usec = (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / 1000;
	r->main_pid = ask->release.main_pid;
	r->state = RUN_RUNNING;
	sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	reply(r, &m);
}

/* ---- PAIR_END ---- */

static void ask_end(struct run *r, const struct pair_ask *ask)
{
	r->report = ask->report;
	r->report.ended %= ENDED_COUNT;
	if (r->state == RUN_STARTING) /* refused by systemd; its job is over or forgotten */
		scope_forget(r->d->scopes, r);
	r->state = RUN_ENDING;
	if (!r->has_scope || scope_is_gone(r))
		finish(r);
	else
		set_timer(r, SCOPE_USEC);
}

/* ---- PAIR_NEXT, PAIR_KILL ---- */

static uint64_t memory_current(const struct run *r)
{
	char path[PATH_TEXT_MAX + 32], text[32];
	uint64_t bytes;

	snprintf(path, sizeof(path), "%s/memory.current", r->path);
	if (read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    parse_u64_prefix(text, &bytes) < 0)
		return UINT64_MAX;
	return bytes;
}

static uint32_t state_of(const struct run *r)
{
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
	row->memory_bytes = memory_current(r);
	row->memory_max = r->limits.value[LIMIT_MEMORY];
}

static void ask_next(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_NONE };

	for (const struct run *r = asker->d->runs; r; r = r->next) {
		if (r->serial <= ask->cursor || !is_guest(r) || !owns(asker, r))
			continue;
		m.verb = PAIR_OK;
		m.next.cursor = r->serial;
		fill_row(r, &m.next.row);
		break;
	}
	reply(asker, &m);
}

static void stop_guest(struct run *r, enum ended reason)
{
	struct pair_reply m = { .verb = PAIR_STOP, .stop = reason };

	if (r->state < RUN_ENDING)
		reply(r, &m);
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
		if (!is_guest(r) || !owns(asker, r) || !is_target(r, target))
			continue;
		stop_guest(r, ENDED_KILLED);
		m.count++;
	}
	reply(asker, &m);
}

void runs_stop_all(struct daemon *d, enum ended reason)
{
	for (struct run *r = d->runs; r; r = r->next)
		if (is_guest(r))
			stop_guest(r, reason);
}

/* ---- the connection ---- */

static const struct {
	uint32_t verb;
	void (*serve)(struct run *r, const struct pair_ask *ask);
} asks[] = {
	{ PAIR_START, ask_start }, { PAIR_RELEASE, ask_release }, { PAIR_END, ask_end },
	{ PAIR_NEXT, ask_next },   { PAIR_KILL, ask_kill },
};

static int on_ask(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct run *r = userdata;
	struct pair_ask ask;

	(void)revents;
	if (pair_receive(fd, &ask, sizeof(ask)) < 0) { /* it ends; on_supervisor_exit() follows */
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
		if (asks[i].verb == ask.verb) {
			asks[i].serve(r, &ask);
			return 0;
		}
	kill_supervisor(r);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;
	struct error e = ERROR_NULL;

	(void)source;
	(void)usec;
	if (r->state < RUN_RUNNING) {
		kill_supervisor(r);
	} else if (scope_is_gone(r)) {
		finish(r);
	} else {
		scope_stop(r->d->scopes, r->scope);
		error_set(&e, -EBUSY,
			  "%s is still there; uid %u is not used again before it is gone", r->scope,
			  r->uid);
		journal_error("%s", e.text);
		if (r->state == RUN_ENDING)
			reply_refused(r, &e);
		r->state = RUN_STUCK;
		set_timer(r, SCOPE_USEC);
	}
	return 0;
}

static int watch(struct run *r)
{
	sd_event *event = r->d->event;
	int ret =
		sd_event_add_child(event, &r->child, r->supervisor, WEXITED, on_supervisor_exit, r);

	if (ret >= 0)
		ret = sd_event_add_io(event, &r->io, r->pair, EPOLLIN, on_ask, r);
	if (ret >= 0)
		ret = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, REQUEST_USEC, 0,
						 on_timer, r);
	return ret;
}

/* The parent keeps nothing of the peer: closing or reading what it sent could block. */
static int fork_supervisor(struct run *r, int client, bool refuse)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r->supervisor = fork();
	if (r->supervisor == 0)
		supervisor_main(client, ends[1], refuse ? NULL : &r->d->filter);
	close(ends[1]);
	if (r->supervisor < 0) {
		close(ends[0]);
		return -errno;
	}
	r->pair = ends[0];
	return 0;
}

static struct run *run_new(struct daemon *d, const struct ucred *caller)
{
	struct run *r = calloc(1, sizeof(*r)), *last = find_last(d);

	if (!r)
		return NULL;
	r->d = d;
	r->pair = -1;
	r->caller = *caller;
	r->serial = ++d->last_serial;
	*(last ? &last->next : &d->runs) = r;
	if (++d->n_runs >= runs_max(d))
		sd_event_source_set_enabled(d->listener, SD_EVENT_OFF);
	return r;
}

void runs_accept(struct daemon *d, int client)
{
	struct ucred caller;
	socklen_t len = sizeof(caller);
	struct run *r;
	int ret;

	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &caller, &len) < 0 ||
	    !(r = run_new(d, &caller))) {
		close(client);
		return;
	}
	ret = fork_supervisor(r, client, count_of(r, false) >= d->config.max_connections);
	if (ret == 0)
		ret = watch(r);
	close(client);
	if (ret < 0) {
		journal_error("no supervisor for a connection of uid %u: %s", caller.uid,
			      strerror(-ret));
		kill_supervisor(r);
		run_free(r);
	}
}
