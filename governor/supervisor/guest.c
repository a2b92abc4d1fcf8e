/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/guest_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "governor/supervisor/child.h"
#include "governor/supervisor/deadline.h"
#include "governor/supervisor/watch.h"

static int release(struct guest *g, struct error *e)
{
	char go = CHILD_GO;

	deadline_silence();
	if (send(g->control, &go, 1, MSG_NOSIGNAL) != 1)
		return error_errno(e, -errno, "the guest's process cannot be released");
	g->report->started_usec = clock_usec(CLOCK_REALTIME);
	return 0;
}

/* A message after the release is the child's last word: execve(2) failed. */
static enum ended exec_failed(struct guest *g, struct error *e)
{
	struct child_message m;

	if (pair_receive(g->control, &m, sizeof(m)) < 0 || m.event != CHILD_EXEC_FAILED) {
		error_set(e, -EPROTO, "the guest's process makes no sense");
		return ENDED_SETUP_FAILED;
	}
	m.error.text[sizeof(m.error.text) - 1] = '\0';
	g->report->exit_code = m.exit_code == 126 ? 126 : 127;
	error_set(e, -ENOEXEC, "%s", m.error.text);
	return ENDED_SETUP_FAILED;
}

static enum ended run(struct guest *g, struct error *e)
{
	struct watch watch = {
		.pidfd = g->pidfd,
		.control = g->control,
		.client = g->call->client,
		.daemon = g->call->daemon,
		.holder = g->holder,
		.parent = guest_parent(g),
		.terminal = &g->terminal,
		.cgroup = &g->cgroup,
		.report = g->report,
		.wall_usec = g->grant.limits.value[LIMIT_TIME],
		.cpu_usec = g->grant.limits.value[LIMIT_CPU_TIME],
	};
	enum ended ended = watch_guest(&watch, e);

	return ended == ENDED_SETUP_FAILED ? exec_failed(g, e) : ended;
}

void guest_run(const struct guest_call *call, struct report *ret)
{
	struct guest g = {
		.call = call,
		.report = ret,
		.cgroup = CGROUP_NULL,
		.handed = { .cwd = -1 },
		.terminal = TERMINAL_NULL,
		.network = NETWORK_NULL,
		.pidfd = -1,
		.control = -1,
		.holder = -1,
		.mounts = -1,
		.spaces = SPACES_NULL,
		.ended = ENDED_SETUP_FAILED,
	};
	struct error e = ERROR_NULL;
	uint64_t start;
	int r;

	report_clear(ret);
	memcpy(ret->name, call->request->name, sizeof(ret->name));
	memcpy(ret->command, call->request->command, sizeof(ret->command));
	r = guest_set_up(&g, &e);
	start = clock_usec(CLOCK_MONOTONIC);
	if (r == 0)
		r = release(&g, &e);
	if (r == 0)
		g.ended = run(&g, &e);
	g.wall_usec = clock_usec(CLOCK_MONOTONIC) - start;
	guest_end(&g, &e);
}
