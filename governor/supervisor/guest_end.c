/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nothing of the guest is left, and the report says why it ended and what it used. */
#include "governor/supervisor/guest_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/guest/cgroup_counters.h"
#include "governor/supervisor/ledger.h"

#define KILL_TIMEOUT_MS 5000
#define TRACER_USEC	(2 * USEC_PER_SEC)
#define LEFT_BYTES_MAX	(1u << 20) /* in the guest's own file systems */

/* Did execve(2) of the command succeed? The kernel marks who was forked and never did
 * (PF_FORKNOEXEC, 0x40 in the flags of /proc/PID/stat, proc(5)); that can be read until the process
 * is reaped. */
static uint32_t has_executed(pid_t pid)
{
	char path[64], stat[1024];
	const char *name_end;
	unsigned int flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file_at(AT_FDCWD, path, stat, sizeof(stat)) < 0 ||
	    !(name_end = strrchr(stat, ')')) ||
	    sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		return REPORT_RAN_UNKNOWN;
	return !(flags & 0x40);
}

static void reap(struct guest *g)
{
	siginfo_t info = { 0 };
	struct report *r = g->report;

	if (g->child <= 0)
		return;
	if (r->started_usec != REPORT_UNKNOWN)
		r->guest_ran = has_executed(g->child);
	if (waitid(P_PIDFD, (id_t)g->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	g->child = 0;
	if (!r->guest_ran)
		return;
	if (info.si_code == CLD_EXITED)
		r->exit_code = (uint64_t)info.si_status;
	else
		r->signal = (uint64_t)info.si_status;
}

/* Besides the first process: a zombie still counts as a task. */
static uint64_t tasks_left(const struct guest *g)
{
	uint64_t n = cgroup_tasks(&g->cgroup);

	return n != REPORT_UNKNOWN && n > 0 && g->child > 0 ? n - 1 : n;
}

/* Its cgroup is empty a moment before there is a status to take; and who traces it, nobody of the
 * guest's, is told of its end before its parent is, and may be slow or stopped. SIGCHLD comes when
 * it is our turn. A tracer who keeps it for longer keeps its status as well. */
static void reap_after_tracer(struct guest *g)
{
	uint64_t end = clock_usec(CLOCK_MONOTONIC) + TRACER_USEC, now;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (reap(g); g->child > 0 && (now = clock_usec(CLOCK_MONOTONIC)) < end; reap(g)) {
		struct timespec left = clock_timespec(end - now);

		sigtimedwait(&set, NULL, &left); /* or EINTR */
	}
}

/* The first process ended by itself, or by whom? Kernel counters decide, not the status. */
static enum ended why_it_ended(const struct report *r, struct error *e)
{
	if (r->memory_oom_kills != REPORT_UNKNOWN && r->memory_oom_kills > 0)
		return ENDED_MEMORY;
	if (!r->guest_ran) {
		error_set(e, -ECHILD, "its process was killed before the command ran");
		return ENDED_SETUP_FAILED;
	}
	return r->signal != REPORT_UNKNOWN ? ENDED_SIGNALED : ENDED_EXITED;
}

static void let_go(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

/* Tells the daemon, which answers when systemd has taken the scope away; meanwhile the guest's
 * mounts are. */
static void leave_scope(struct guest *g)
{
	struct pair_ask ask = { .verb = PAIR_END, .report = *g->report };
	struct pair_reply reply;
	int r;

	r = pair_send(g->call->daemon, &ask, sizeof(ask));
	let_go(&g->mounts);
	do /* late answers and stops may still be on their way */
		r = r < 0 ? r : pair_receive(g->call->daemon, &reply, sizeof(reply));
	while (r == 0 && reply.to != PAIR_END);
	if (r == 0 && reply.verb == PAIR_OK) {
		g->report->ended = reply.end.ended % ENDED_COUNT;
		g->report->drops_uid = reply.end.drops_uid;
		g->report->drops_slice = reply.end.drops_slice;
	} else if (r == 0 && reply.verb == PAIR_REFUSED) {
		memcpy(g->report->error, reply.refused.text, sizeof(g->report->error));
		g->report->ended = ENDED_UNKILLABLE;
	} else if (r < 0) { /* the daemon is gone; the next one finds it there */
		ledger_note(LEDGER_PATH, g->report, NULL);
	}
}

void guest_end(struct guest *g, struct error *e)
{
	struct report *r = g->report;
	enum ended ended = g->ended;

	reap(g);
	r->left_processes = ended == ENDED_EXITED ? tasks_left(g) : REPORT_UNKNOWN;
	cgroup_sample_memory(&g->cgroup, r);
	if (cgroup_memory(&g->cgroup) > LEFT_BYTES_MAX)
		let_go(&g->mounts); /* the scope may serve another guest at once */
	if (cgroup_kill(&g->cgroup, KILL_TIMEOUT_MS, e) < 0) {
		ended = ENDED_UNKILLABLE;
		reap(g);
	} else {
		reap_after_tracer(g);
	}
	if (r->guest_ran)
		r->wall_usec = g->wall_usec;
	cgroup_counters(&g->cgroup, r);
	if (g->grant.was_warm) /* another guest may come */
		cgroup_throttle(&g->cgroup, NULL);
	network_unroutable(&g->network, &r->unroutable);
	r->ended = ended == ENDED_EXITED ? why_it_ended(r, e) : ended;
	if (r->ended == ENDED_EXITED && g->child > 0)
		error_set(e, -ECHILD, "its status is kept back by who traces it");
	memcpy(r->error, e->text, sizeof(r->error));
	leave_scope(g);
	cgroup_close(&g->cgroup);
	handed_close(&g->handed);
	terminal_close(&g->terminal);
	network_close(&g->network);
	close_fd(&g->pidfd);
	close_fd(&g->control);
	close_fd(&g->holder);
	close_fd(&g->mounts);
	spaces_close(&g->spaces);
}
