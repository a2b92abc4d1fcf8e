/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/daemon/asks.h"
#include "governor/daemon/drops.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/launch.h"
#include "governor/daemon/spare.h"
#include "governor/guest/cgroup_counters.h"
#include "governor/supervisor/ledger.h"

/* Whoever they belong to. */
bool runs_have_room(const struct daemon *d)
{
	return d->n_runs < 2 * d->config->uid_count + 64;
}

/* ---- small things ---- */

void run_free(struct run *r)
{
	*(r->previous ? &r->previous->next : &r->d->runs) = r->next;
	*(r->next ? &r->next->previous : &r->d->last_run) = r->previous;
	r->d->n_runs--;
	scope_forget(r->d->scopes, r);
	sd_event_source_disable_unref(r->io);
	sd_event_source_disable_unref(r->child);
	sd_event_source_disable_unref(r->timer);
	sd_bus_slot_unref(r->question);
	close_fd(&r->pair);
	spaces_close(&r->spaces);
	spare_lost(r);
	free(r);
}

static void kill_supervisor(struct run *r)
{
	r->killed = true;
	if (r->supervisor > 0)
		kill(r->supervisor, SIGKILL); /* not reaped yet, so the pid is still its own */
}

void run_reply_with(struct run *r, enum pair_verb to, struct pair_reply *m,
		    const struct spaces *with)
{
	m->to = to;
	if (r->pair >= 0 && pair_send_with(r->pair, m, sizeof(*m), with) < 0)
		kill_supervisor(r);
}

void run_reply(struct run *r, enum pair_verb to, struct pair_reply *m)
{
	run_reply_with(r, to, m, &SPACES_NULL);
}

void run_refuse(struct run *r, enum pair_verb to, const struct error *e)
{
	struct pair_reply m = { .verb = PAIR_REFUSED };

	m.refused = *e;
	run_reply(r, to, &m);
}

void run_set_timer(struct run *r, uint64_t usec)
{
	sd_event_source_set_time_relative(r->timer, usec);
	sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

bool run_is_guest(const struct run *r)
{
	return !r->slot && r->state >= RUN_WAITING && r->state <= RUN_STUCK;
}

uint32_t run_count_of_caller(const struct run *self, bool guests_only)
{
	uint32_t n = 0;

	for (const struct run *r = self->d->runs; r; r = r->next)
		if (r != self && r->caller.uid == self->caller.uid &&
		    (r->has_scope || !guests_only))
			n++;
	return n;
}

/* Mostly there are fewer in all. */
bool run_caller_has(const struct run *self, bool guests_only, uint32_t n)
{
	return self->d->n_runs > n && run_count_of_caller(self, guests_only) >= n;
}

/* The run goes on without. */
void run_note(const struct run *r)
{
	struct report report;
	struct error e = ERROR_NULL;

	run_describe(r, &report);
	if (ledger_note(LEDGER_PATH, &report, &e) < 0)
		journal_error("run %s: %s", r->id, e.text);
}

void run_stop(struct run *r, enum ended reason)
{
	struct pair_reply m = { .verb = PAIR_STOP, .stop = reason };

	if (r->state < RUN_ENDING)
		run_reply(r, 0, &m);
}

void runs_stop_all(struct daemon *d, enum ended reason)
{
	for (struct run *r = d->runs; r; r = r->next)
		if (run_is_guest(r))
			run_stop(r, reason);
}

static void identify(const struct run *r, struct report *report)
{
	memcpy(report->id, r->id, sizeof(report->id));
	memcpy(report->name, r->asked.name, sizeof(report->name));
	memcpy(report->command, r->asked.command, sizeof(report->command));
	memcpy(report->profile, r->slice->profile, sizeof(report->profile));
	snprintf(report->scope, sizeof(report->scope), "%.*s", (int)sizeof(report->scope) - 1,
		 r->scope);
	report->uid = r->uid;
	report->caller_uid = r->caller.uid;
}

void run_describe(const struct run *r, struct report *report)
{
	report_clear(report);
	identify(r, report);
	report->guest_ran = r->started_usec ? REPORT_RAN_UNKNOWN : 0;
	report->asked = r->limits;
	report->origins = r->origins;
	if (r->started_usec)
		report->started_usec = r->started_usec;
}

/* One entry in the journal for every run that had a scope, with what the daemon itself knows. */
static void journal_once(struct run *r)
{
	if (r->journaled || !r->has_scope)
		return;
	r->journaled = true;
	identify(r, &r->report);
	journal_run(&r->report);
	ledger_forget(LEDGER_PATH, r->id);
}

/* ---- the scope's end ---- */

static void reply_end(struct run *r)
{
	struct pair_reply m = { .verb = PAIR_OK };

	m.end.ended = r->report.ended;
	m.end.drops_uid = r->report.drops_uid;
	m.end.drops_slice = r->report.drops_slice;
	run_reply(r, PAIR_END, &m);
}

void run_finish(struct run *r)
{
	struct daemon *d = r->d;
	bool told = r->state == RUN_STUCK;

	drops_count(r);
	if (!told)
		reply_end(r); /* the caller need not wait for the rest */
	r->state = RUN_OVER;
	if (r->has_scope) {
		journal_once(r);
		holder_stop(&r->holder);
		if (r->uid)
			daemon_quarantine(d, r->uid);
		r->has_scope = false;
	}
	if (r->supervisor == 0)
		run_free(r);
	else
		run_set_timer(r, REQUEST_USEC);
	asks_admit_waiting(d);
}

void run_end_early(struct run *r)
{
	journal_once(r);
	reply_end(r);
	r->state = RUN_STUCK;
	run_set_timer(r, REQUEST_USEC);
}

bool run_scope_is_gone(const struct run *r)
{
	struct stat st;

	return !r->job && stat(r->path, &st) < 0 && errno == ENOENT;
}

void runs_scope_gone(struct daemon *d, const char *name)
{
	for (struct run *r = d->last_run; r; r = r->previous) { /* the young ones end first */
		if (!r->has_scope || strcmp(r->scope, name) != 0)
			continue;
		if ((r->state == RUN_ENDING || r->state == RUN_STUCK) && !r->job)
			run_finish(r);
		else if (r->slot)
			run_lose(r);
		return; /* else its supervisor will find out and tell */
	}
}

static int on_closed(sd_event_source *source, const siginfo_t *info, void *userdata)
{
	(void)info;
	(void)userdata;
	sd_event_source_disable_unref(source);
	return 0;
}

/* Of a slot that nobody took. */
static void close_spaces(struct run *r)
{
	pid_t pid = spaces_close_aside(&r->spaces);
	sd_event_source *source = NULL;

	if (pid > 0)
		sd_event_add_child(r->d->event, &source, pid, WEXITED, on_closed, NULL);
}

void run_lose(struct run *r)
{
	_cleanup_close_ int fd = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (r->state < RUN_ENDING) {
		run_describe(r, &r->report);
		cgroup_counters_at(r->path, &r->report);
	}
	r->question = sd_bus_slot_unref(r->question);
	close_spaces(r);
	r->state = RUN_STUCK;
	if (fd >= 0)
		cgroup_kill_scope(fd);
	holder_kill(&r->holder);
	if (!r->job)
		scope_stop(r->d->scopes, r->scope);
	if (run_scope_is_gone(r))
		run_finish(r);
	else
		run_set_timer(r, SCOPE_USEC);
}

static int on_supervisor_exit(sd_event_source *source, const siginfo_t *info, void *userdata)
{
	struct run *r = userdata;
	struct daemon *d = r->d;

	(void)info;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	r->supervisor = 0;
	r->io = sd_event_source_disable_unref(r->io);
	close_fd(&r->pair);
	r->pair = -1;
	if (!r->has_scope) {
		run_free(r);
		asks_admit_waiting(d); /* it may have been in front of others */
	} else if (r->state != RUN_STUCK && r->state != RUN_WARM) {
		run_lose(r);
	}
	return 0;
}

/* ---- the connection ---- */

static int on_ask(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct run *r = userdata;
	struct pair_ask ask;

	(void)revents;
	/* It ends: on_supervisor_exit() follows. */
	if (r->killed || pair_receive(fd, &ask, sizeof(ask)) < 0) {
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	if (asks_serve(r, &ask) < 0)
		kill_supervisor(r);
	return 0;
}

/* A process that SIGKILL does not end, until the kernel lets it go. */
static void give_up(struct run *r)
{
	struct error e = ERROR_NULL;

	error_set(&e, -EBUSY, "%s is still there; uid %u is not used again before it is gone",
		  r->scope, r->uid);
	journal_error("%s", e.text);
	if (r->state == RUN_ENDING) {
		r->report.ended = ENDED_UNKILLABLE;
		drops_count(r);
		journal_once(r);
		run_refuse(r, PAIR_END, &e);
	}
	r->state = RUN_STUCK;
	r->given_up = true;
}

/* Systemd did not take the scope away in time. It gives up as well, and forgets it: then it is ours
 * to remove. */
static void on_scope_stays(struct run *r)
{
	if (!r->given_up)
		give_up(r);
	scope_stop(r->d->scopes, r->scope);
	cgroup_remove_scope(r->path);
	run_set_timer(r, SCOPE_USEC);
}

int run_too_late(struct error *e)
{
	return error_set(e, -ETIMEDOUT, "the set-up takes too long; is the machine overloaded?");
}

/* Then the one who is late is the daemon. */
static bool has_asked(const struct run *r)
{
	char byte;

	return r->pair >= 0 && recv(r->pair, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The time of a supervisor that sets a run up is over: it is told, so that its client gets a
 * sentence, and killed if that does not help. */
static void on_too_late(struct run *r)
{
	struct error e = ERROR_NULL;

	if (!r->late && has_asked(r)) {
		run_set_timer(r, REQUEST_USEC);
		return;
	}
	if (r->late || r->state == RUN_OVER) {
		kill_supervisor(r);
		if (r->has_scope)
			run_lose(r);
		return;
	}
	r->late = true;
	run_too_late(&e);
	run_refuse(r, r->state == RUN_PREPARING ? PAIR_RELEASE : PAIR_START, &e);
	run_set_timer(r, LATE_USEC);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;

	(void)source;
	(void)usec;
	if (r->slot && r->state < RUN_ENDING) {
		kill_supervisor(r);
		run_lose(r);
	} else if (r->question) {
		ask_end_unanswered(r);
	} else if (r->state == RUN_WAITING) {
		asks_stop_waiting(r);
	} else if (!r->has_scope || r->state < RUN_RUNNING) {
		on_too_late(r);
	} else if (r->job) { /* on_scope_started() will follow */
		if (r->state == RUN_STUCK)
			kill_supervisor(r);
	} else if (run_scope_is_gone(r)) {
		run_finish(r);
	} else {
		on_scope_stays(r);
	}
	return 0;
}

static int watch(struct run *r, sd_event_io_handler_t on_record)
{
	sd_event *event = r->d->event;
	int ret =
		sd_event_add_child(event, &r->child, r->supervisor, WEXITED, on_supervisor_exit, r);

	if (ret >= 0) /* while a tracer has it, the first wake-up comes without a status to take */
		ret = sd_event_source_set_enabled(r->child, SD_EVENT_ON);
	if (ret >= 0)
		ret = sd_event_add_io(event, &r->io, r->pair, EPOLLIN, on_record, r);
	if (ret >= 0) /* its last word before its end */
		ret = sd_event_source_set_priority(r->io, SD_EVENT_PRIORITY_NORMAL - 1);
	return ret;
}

/* The supervisor accepts the connection itself: the daemon never has a descriptor of a peer, and so
 * never the last one, whose closing could block it with whatever the peer had sent along. */
static pid_t supervise(struct run *r, int pair)
{
	const struct daemon *d = r->d;

	return launch_supervisor(&(struct launch){ .program = d->program,
						   .daemon = pair,
						   .ground = d->ground,
						   .listener = d->listen_fd,
						   .means = d->means_fd });
}

/* Nobody would learn of its end. */
static void unstart(struct run *r)
{
	r->io = sd_event_source_disable_unref(r->io);
	r->child = sd_event_source_disable_unref(r->child);
	close_fd(&r->pair);
	r->pair = -1;
	kill(r->supervisor, SIGKILL);
	while (waitpid(r->supervisor, NULL, 0) < 0 && errno == EINTR)
		;
	r->supervisor = 0;
}

int run_start(struct run *r, pid_t (*start)(struct run *r, int pair),
	      sd_event_io_handler_t on_record)
{
	int ends[2], ret;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = start(r, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return pid;
	}
	r->supervisor = pid;
	r->pair = ends[0];
	ret = watch(r, on_record);
	if (ret < 0)
		unstart(r);
	return ret;
}

struct run *run_new(struct daemon *d)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	if (sd_event_add_time_relative(d->event, &r->timer, CLOCK_MONOTONIC, REQUEST_USEC, 0,
				       on_timer, r) < 0) {
		free(r);
		return NULL;
	}
	r->d = d;
	r->pair = -1;
	r->spaces = SPACES_NULL;
	r->caller.uid = (uid_t)-1; /* until PAIR_HELLO */
	r->serial = ++d->last_serial;
	r->previous = d->last_run;
	*(d->last_run ? &d->last_run->next : &d->runs) = r;
	d->last_run = r;
	d->n_runs++;
	return r;
}

/* Nobody waits for it yet. */
int runs_start_supervisor(struct daemon *d, struct run **ret)
{
	struct run *r = run_new(d);
	int error = r ? run_start(r, supervise, on_ask) : -ENOMEM;

	if (error < 0 && r)
		run_free(r);
	if (error < 0)
		return error;
	sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	*ret = r;
	return 0;
}
