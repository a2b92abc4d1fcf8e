/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/journal.h"
#include "governor/run.h"
#include "governor/supervisor.h"

#define REQUEST_USEC ((REQUEST_DEADLINE_SEC + 1) * USEC_PER_SEC)

uint32_t runs_max(const struct daemon *d)
{
	return 2 * d->config->uid_count + 64;
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

void run_reply(struct run *r, const struct pair_reply *m)
{
	if (r->pair >= 0 && pair_send(r->pair, m, sizeof(*m)) < 0)
		kill_supervisor(r);
}

void run_refuse(struct run *r, const struct error *e)
{
	struct pair_reply m = { .verb = PAIR_REFUSED };

	m.refused = *e;
	run_reply(r, &m);
}

void run_set_timer(struct run *r, uint64_t usec)
{
	sd_event_source_set_time_relative(r->timer, usec);
	sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

bool run_is_guest(const struct run *r)
{
	return r->state >= RUN_STARTING;
}

uint32_t run_count_of_caller(const struct run *self, bool guests_only)
{
	uint32_t n = 0;

	for (const struct run *r = self->d->runs; r; r = r->next)
		if (r != self && r->caller.uid == self->caller.uid &&
		    (run_is_guest(r) || !guests_only))
			n++;
	return n;
}

void run_stop(struct run *r, enum ended reason)
{
	struct pair_reply m = { .verb = PAIR_STOP, .stop = reason };

	if (r->state < RUN_ENDING)
		run_reply(r, &m);
}

void runs_stop_all(struct daemon *d, enum ended reason)
{
	for (struct run *r = d->runs; r; r = r->next)
		if (run_is_guest(r))
			run_stop(r, reason);
}

/* ---- the scope's end ---- */

/* The last of the guest is gone: lease and entry go with it. */
void run_finish(struct run *r)
{
	struct pair_reply m = { .verb = PAIR_OK };
	struct daemon *d = r->d;
	uint64_t now = FIREWALL_UNKNOWN, strays = FIREWALL_UNKNOWN;

	if (r->has_scope && r->started_usec > 0) {
		firewall_uid_drops(d->firewall, r->uid, &now, NULL);
		firewall_stray_drops(d->firewall, r->scope_id, &strays, NULL);
	}
	if (r->has_scope)
		daemon_quarantine(d, r->uid);
	r->has_scope = false;
	m.drops.uid = now == FIREWALL_UNKNOWN || r->drops_before == FIREWALL_UNKNOWN
			      ? REPORT_UNKNOWN
			      : now - r->drops_before;
	m.drops.slice = strays == FIREWALL_UNKNOWN ? REPORT_UNKNOWN : strays;
	if (r->state == RUN_ENDING) {
		run_reply(r, &m);
		journal_run(&r->report);
	}
	r->state = RUN_CONNECTED;
	if (r->supervisor == 0)
		run_free(r);
	else
		run_set_timer(r, REQUEST_USEC); /* it has nothing more to do than to report */
	asks_admit_waiting(d);
}

bool run_scope_is_gone(const struct run *r)
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
			run_finish(r);
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
	if (run_scope_is_gone(r))
		run_finish(r);
	else
		run_set_timer(r, SCOPE_USEC);
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

/* ---- the connection ---- */

static int on_ask(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct run *r = userdata;
	struct pair_ask ask;

	(void)revents;
	if (pair_receive(fd, &ask, sizeof(ask)) < 0) { /* it ends; on_supervisor_exit() follows */
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	if (asks_serve(r, &ask) < 0)
		kill_supervisor(r);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;
	struct error e = ERROR_NULL;

	(void)source;
	(void)usec;
	if (r->state == RUN_WAITING) {
		asks_stop_waiting(r);
	} else if (r->state < RUN_RUNNING) {
		kill_supervisor(r);
	} else if (run_scope_is_gone(r)) {
		run_finish(r);
	} else {
		scope_stop(r->d->scopes, r->scope);
		error_set(&e, -EBUSY,
			  "%s is still there; uid %u is not used again before it is gone", r->scope,
			  r->uid);
		journal_error("%s", e.text);
		if (r->state == RUN_ENDING)
			run_refuse(r, &e);
		r->state = RUN_STUCK;
		run_set_timer(r, SCOPE_USEC);
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

static struct run *run_new(struct daemon *d, const struct caller *caller)
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
	struct caller caller;
	struct run *r;
	int ret = caller_of(client, &caller);

	if (ret < 0 || !(r = run_new(d, &caller))) {
		close(client);
		return;
	}
	ret = fork_supervisor(r, client,
			      run_count_of_caller(r, false) >=
				      access_find(d->config, &caller)->max_connections);
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
