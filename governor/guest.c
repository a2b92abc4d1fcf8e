/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/cgroup.h"
#include "governor/child.h"
#include "governor/confine.h"
#include "governor/holder.h"
#include "governor/pair.h"
#include "governor/parent_check.h"
#include "governor/stdio_check.h"
#include "governor/supervisor.h"
#include "governor/view.h"
#include "governor/watch.h"

#define KILL_TIMEOUT_MS	   5000
#define SETUP_DEADLINE_SEC 30 /* for a step of the child: a hostile directory can block it */

struct guest {
	const struct guest_call *call;
	struct report *report;
	struct pair_grant grant;
	struct cgroup cgroup;
	struct view_cwd cwd;
	pid_t holder, child;
	int pidfd, control;
	enum ended ended; /* so far: why the set-up did not succeed */
};

/* Asks the daemon; what came instead of an answer is why the run ended. */
static int ask_daemon(struct guest *g, const struct pair_ask *ask, struct pair_reply *reply,
		      struct error *e)
{
	int r = pair_call(g->call->daemon, ask, reply, e);

	if (r == -ECANCELED)
		g->ended = (enum ended)(reply->stop % ENDED_COUNT);
	else if (r == -ECONNRESET)
		g->ended = ENDED_GOVERNOR_LOST;
	else if (r == 0 && reply->verb != PAIR_OK)
		r = error_set(e, -EPROTO, "the daemon's answer makes no sense");
	return r;
}

/* ---- 1: what the caller handed over ---- */

static int check_parent(struct guest *g, struct error *e)
{
	int r = g->call->parent < 0 ? 0 : parent_check(g->call->parent, e);

	if (r <= 0)
		return r;
	g->ended = ENDED_CALLER_GONE;
	return error_set(e, -ESRCH, "its parent ended before the command ran");
}

/* Looking at a hostile descriptor can block: the supervisor's deadline is running. */
static int check_descriptors(struct guest *g, struct error *e)
{
	static const char *const names[] = { "standard input", "standard output",
					     "standard error" };
	const int *fds = g->call->fds;
	int r = strings_check(fds[RUN_FD_STRINGS], e);

	for (int i = 0; i < 3 && r == 0; i++)
		r = stdio_check(fds[RUN_FD_STDIN + i], names[i], e);
	if (r == 0)
		r = view_cwd_open(fds[RUN_FD_CWD], fds[RUN_FD_MNTNS], &g->cwd, e);
	if (r == 0)
		r = check_parent(g, e);
	alarm(0);
	return r;
}

/* ---- 2, 3: policy, uid and scope, by the daemon ---- */

static int get_scope(struct guest *g, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_START };
	struct pair_reply reply;
	int r;

	g->holder = holder_start();
	if (g->holder < 0)
		return error_errno(e, g->holder, "no holder process");
	ask.start.limits = g->call->request->limits;
	memcpy(ask.start.name, g->call->request->name, sizeof(ask.start.name));
	memcpy(ask.start.command, g->call->request->command, sizeof(ask.start.command));
	ask.start.holder = g->holder;
	r = ask_daemon(g, &ask, &reply, e);
	if (r == 0)
		g->grant = reply.grant;
	return r;
}

static void describe(struct guest *g)
{
	struct report *r = g->report;

	memcpy(r->id, g->grant.id, sizeof(r->id));
	memcpy(r->profile, g->grant.profile, sizeof(r->profile));
	r->uid = g->grant.uid;
	r->caller_uid = g->grant.caller_uid;
	r->limits = g->grant.limits;
}

/* ---- 4, 5: the child, born in its cgroup ---- */

static pid_t clone_into(int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_NEWNS | CLONE_NEWIPC | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		close_fd(&fds[i]);
		fds[i] = -1;
	}
}

static int start_child(struct guest *g, struct error *e)
{
	const struct request *q = g->call->request;
	int *fds = g->call->fds, ends[2];
	struct child_plan plan = {
		.uid = g->grant.uid,
		.umask_bits = q->umask,
		.rlimits = q->rlimits,
		.filter = g->call->filter,
		.cwd = &g->cwd,
		.tmp_bytes = g->grant.limits.value[LIMIT_MEMORY],
		.strings_fd = fds[RUN_FD_STRINGS],
		.stdio = { fds[RUN_FD_STDIN], fds[RUN_FD_STDOUT], fds[RUN_FD_STDERR] },
	};
	struct timeval patience = { .tv_sec = SETUP_DEADLINE_SEC };
	int guest_cgroup = openat(g->cgroup.guest_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (guest_cgroup < 0)
		return error_errno(e, -errno, "the guest's cgroup cannot be opened");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		close(guest_cgroup);
		return error_errno(e, -errno, "no control socket");
	}
	plan.control = ends[1];
	g->child = clone_into(guest_cgroup, &g->pidfd);
	if (g->child == 0)
		child_main(&plan);
	close(guest_cgroup);
	close(ends[1]);
	g->control = ends[0];
	if (g->child < 0)
		return error_errno(e, -errno, "the guest's process cannot be made");
	setsockopt(g->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	alarm(REQUEST_DEADLINE_SEC); /* closing a hostile descriptor can block */
	close_all(fds, RUN_FD_COUNT);
	alarm(0);
	return 0;
}

/* What the child says; a child that just dies (the memory limit may be too small for the set-up)
 * counts as a failure of this set-up. */
static int expect_ready(struct guest *g, struct error *e)
{
	struct child_message m;
	int r = pair_receive(g->control, &m, sizeof(m));

	if (r == -EAGAIN)
		return error_set(e, r, "the guest's process was not ready after %d s",
				 SETUP_DEADLINE_SEC);
	if (r < 0)
		return error_set(
			e, -ECHILD,
			"the guest's process died before the command ran; is --memory too small?");
	if (m.event == CHILD_READY)
		return 0;
	m.error.text[sizeof(m.error.text) - 1] = '\0';
	return error_set(e, -EIO, "%s", m.error.text);
}

/* ---- 6: read everything back, then release ---- */

static int verify(struct guest *g, struct error *e)
{
	int r = cgroup_throttle(&g->cgroup, e);

	if (r == 0)
		r = cgroup_verify(&g->cgroup, &g->grant.limits, &g->report->limits, e);
	if (r == 0)
		r = cgroup_verify_member(&g->cgroup, g->child, e);
	if (r == 0)
		r = confine_verify(g->child, g->grant.uid, e);
	return r;
}

static int ask_release(struct guest *g, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_RELEASE, .release = { .main_pid = g->child } };
	struct pair_reply reply;

	return ask_daemon(g, &ask, &reply, e);
}

static uint64_t clock_usec(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

/* Sends the byte; end of file on the control socket means that execve(2) succeeded. */
static int release(struct guest *g, struct error *e)
{
	struct child_message m;
	char go = CHILD_GO;
	int r;

	if (send(g->control, &go, 1, MSG_NOSIGNAL) != 1)
		return error_errno(e, -errno, "the guest's process cannot be released");
	g->report->started_usec = clock_usec(CLOCK_REALTIME);
	r = pair_receive(g->control, &m, sizeof(m));
	if (r == -ECONNRESET) {
		g->report->guest_ran = 1;
		return 0;
	}
	if (r < 0 || m.event != CHILD_EXEC_FAILED)
		return error_set(e, -EPROTO, "the guest's process makes no sense");
	m.error.text[sizeof(m.error.text) - 1] = '\0';
	g->report->exit_code = m.exit_code == 126 ? 126 : 127;
	return error_set(e, -ENOEXEC, "%s", m.error.text);
}

static int set_up(struct guest *g, struct error *e)
{
	int r = check_descriptors(g, e);

	if (r == 0)
		r = get_scope(g, e);
	if (r < 0)
		return r;
	describe(g);
	r = cgroup_prepare(&g->cgroup, g->grant.scope, g->holder, &g->grant.limits, e);
	if (r == 0)
		r = start_child(g, e);
	if (r == 0)
		r = expect_ready(g, e);
	if (r == 0)
		r = verify(g, e);
	if (r == 0)
		r = ask_release(g, e);
	return r;
}

/* ---- 7: while it runs ---- */

static enum ended run(struct guest *g, struct error *e)
{
	struct watch watch = {
		.pidfd = g->pidfd,
		.client = g->call->client,
		.daemon = g->call->daemon,
		.parent = g->call->parent,
		.cgroup = &g->cgroup,
		.wall_usec = g->grant.limits.value[LIMIT_TIME],
		.cpu_usec = g->grant.limits.value[LIMIT_CPU_TIME],
	};

	return watch_guest(&watch, e);
}

/* ---- 8: the end ---- */

static void reap(struct guest *g)
{
	siginfo_t info = { 0 };
	struct report *r = g->report;

	if (g->child <= 0 || waitid(P_PIDFD, (id_t)g->pidfd, &info, WEXITED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		return;
	g->child = 0;
	if (!r->guest_ran)
		return;
	if (info.si_code == CLD_EXITED)
		r->exit_code = (uint64_t)info.si_status;
	else
		r->signal = (uint64_t)info.si_status;
}

/* The first process ended by itself, or by whom? Kernel counters decide, not the status. A dead
 * holder means that the whole scope was stopped. */
static enum ended why_it_ended(struct guest *g)
{
	const struct report *r = g->report;

	if (waitpid(g->holder, NULL, WNOHANG) == g->holder) {
		g->holder = 0;
		return ENDED_KILLED;
	}
	if (r->memory_oom_kills != REPORT_UNKNOWN && r->memory_oom_kills > 0)
		return ENDED_MEMORY;
	return r->signal != REPORT_UNKNOWN ? ENDED_SIGNALED : ENDED_EXITED;
}

/* Tells the daemon, which answers when systemd has taken the scope away. */
static void leave_scope(struct guest *g, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_END, .report = *g->report };
	struct pair_reply reply;
	int r;

	holder_stop(&g->holder);
	r = pair_send(g->call->daemon, &ask, sizeof(ask));
	do /* a stop may still be on its way */
		r = r < 0 ? r : pair_receive(g->call->daemon, &reply, sizeof(reply));
	while (r == 0 && reply.verb == PAIR_STOP);
	if (r == 0 && reply.verb == PAIR_OK) {
		g->report->drops_uid = reply.drops.uid;
		g->report->drops_slice = reply.drops.slice;
	} else if (r == 0 && reply.verb == PAIR_REFUSED) {
		error_set(e, -EIO, "%s", reply.refused.text);
		g->report->ended = ENDED_UNKILLABLE;
	}
}

static void end(struct guest *g, struct error *e)
{
	struct report *r = g->report;
	enum ended ended = g->ended;

	reap(g); /* first: a zombie still counts as a task */
	r->left_processes = ended == ENDED_EXITED ? cgroup_tasks(&g->cgroup) : REPORT_UNKNOWN;
	if (cgroup_kill(&g->cgroup, KILL_TIMEOUT_MS, e) < 0)
		ended = ENDED_UNKILLABLE;
	reap(g);
	cgroup_counters(&g->cgroup, r);
	r->ended = ended == ENDED_EXITED ? why_it_ended(g) : ended;
	leave_scope(g, e);
	memcpy(r->error, e->text, sizeof(r->error));
	cgroup_close(&g->cgroup);
	view_cwd_close(&g->cwd);
	close_fd(&g->pidfd);
	close_fd(&g->control);
}

void guest_run(const struct guest_call *call, struct report *ret)
{
	struct guest g = {
		.call = call,
		.report = ret,
		.cgroup = CGROUP_NULL,
		.cwd = VIEW_CWD_NULL,
		.pidfd = -1,
		.control = -1,
		.ended = ENDED_SETUP_FAILED,
	};
	struct error e = ERROR_NULL;
	uint64_t start;
	int r;

	report_clear(ret);
	memcpy(ret->name, call->request->name, sizeof(ret->name));
	memcpy(ret->command, call->request->command, sizeof(ret->command));
	r = set_up(&g, &e);
	start = clock_usec(CLOCK_MONOTONIC);
	if (r == 0)
		r = release(&g, &e);
	if (r == 0)
		g.ended = run(&g, &e);
	ret->wall_usec = ret->guest_ran ? clock_usec(CLOCK_MONOTONIC) - start : REPORT_UNKNOWN;
	end(&g, &e);
}
