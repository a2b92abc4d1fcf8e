/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PAIR_NEXT, PAIR_KILL: what a caller asks about guests, its own or, for root, all. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "governor/asks.h"
#include "governor/cgroup_counters.h"

static bool owns(const struct run *asker, const struct run *r)
{
	return asker->caller.uid == 0 || asker->caller.uid == r->caller.uid;
}

static uint64_t count_in(int dirfd, const char *file)
{
	uint64_t n;

	return read_number_at(dirfd, file, &n) < 0 ? UINT64_MAX : n;
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

static bool is_warm(const struct run *r)
{
	return r->slot && r->state == RUN_WARM;
}

static uint32_t state_of(const struct run *r)
{
	if (is_warm(r))
		return GUEST_WARM;
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
	row->own = is_warm(r) ? r->made : r->limits;
	row->limits = r->main_pid ? r->in_force : row->own;
	memcpy(row->profile, r->slice->profile, sizeof(row->profile));
	if (r->has_scope)
		memcpy(row->cgroup, r->path, sizeof(row->cgroup));
	count_guest(r, row);
}

void ask_next(struct run *asker, const struct pair_ask *ask)
{
	struct pair_reply m = { .verb = PAIR_NONE };

	for (const struct run *r = asker->d->runs; r; r = r->next) {
		if (r->serial <= ask->cursor || !(run_is_guest(r) || is_warm(r)) || !owns(asker, r))
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

void ask_kill(struct run *asker, const struct pair_ask *ask)
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
