/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PAIR_NEXT, PAIR_KILL: what a caller asks about guests, its own or, for root, all. */
#include <string.h>

#include "governor/daemon/asks.h"
#include "governor/supervisor/deadline.h"

/* A supervisor may be held up by its client for as long with each of them. */
#define ROWS_USEC ((PAIR_ROWS * DEADLINE_SEC + 1) * USEC_PER_SEC)

static bool owns(const struct run *asker, const struct run *r)
{
	return asker->caller.uid == 0 || asker->caller.uid == r->caller.uid;
}

static uint32_t state_of(const struct run *r)
{
	if (r->state == RUN_WARM)
		return GUEST_WARM;
	if (r->state == RUN_WAITING)
		return GUEST_WAITING;
	if (r->state == RUN_RUNNING)
		return GUEST_RUNNING;
	return r->state < RUN_RUNNING ? GUEST_STARTING : GUEST_ENDING;
}

/* Without the counters: reading them is the supervisor's work. */
static void fill_row(const struct run *r, struct guest_row *row)
{
	*row = (struct guest_row){};
	memcpy(row->id, r->id, sizeof(row->id));
	memcpy(row->name, r->asked.name, sizeof(row->name));
	memcpy(row->command, r->asked.command, sizeof(row->command));
	row->state = state_of(r);
	row->uid = r->uid;
	row->caller_uid = r->caller.uid;
	row->main_pid = (uint32_t)r->main_pid;
	row->started_usec = r->started_usec;
	row->own = r->slot ? r->made : r->limits;
	row->limits = r->main_pid ? r->in_force : row->own;
	memcpy(row->profile, r->slice->profile, sizeof(row->profile));
	if (r->has_scope)
		memcpy(row->cgroup, r->path, sizeof(row->cgroup));
}

/* @target need not be terminated. */
static bool is_called(const char *called, const char target[GUEST_NAME_MAX + 1])
{
	return strncmp(called, target, GUEST_NAME_MAX + 1) == 0;
}

static bool is_target(const struct run *r, const char target[GUEST_NAME_MAX + 1])
{
	return !target[0] || is_called(r->id, target) || is_called(r->asked.name, target);
}

/* A slot from when it has a scope until that is gone: whoever looks into the slice finds it there.
 */
static bool has_row(const struct run *r)
{
	return r->slot ? r->has_scope : run_is_guest(r);
}

static bool is_listed(const struct run *asker, const struct run *r, const struct pair_ask *ask)
{
	return r->serial > ask->next.cursor && has_row(r) && owns(asker, r) &&
	       is_target(r, ask->next.target);
}

/* Some at a time: in between come the others who want something of the daemon. */
void ask_next(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };
	uint32_t n = 0;

	for (const struct run *r = asker->d->runs; r && n < PAIR_ROWS; r = r->next) {
		if (!is_listed(asker, r, ask))
			continue;
		fill_row(r, &m.next.row);
		m.next.cursor = r->serial;
		run_reply(asker, PAIR_NEXT, &m);
		n++;
	}
	if (n < PAIR_ROWS)
		run_reply(asker, PAIR_NEXT, &(struct pair_reply){ .verb = PAIR_NONE });
	if (asker->state == RUN_CONNECTED)
		run_set_timer(asker, ROWS_USEC);
}

void ask_kill(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_OK };

	for (struct run *r = asker->d->runs; r; r = r->next) {
		if (!run_is_guest(r) || !owns(asker, r) || !is_target(r, ask->target))
			continue;
		run_stop(r, ENDED_KILLED);
		m.count++;
	}
	run_reply(asker, PAIR_KILL, &m);
}
