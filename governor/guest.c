/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/cgroup_counters.h"
#include "governor/cgroup_limits.h"
#include "governor/child.h"
#include "governor/confine.h"
#include "governor/deadline.h"
#include "governor/ledger.h"
#include "governor/network.h"
#include "governor/pair.h"
#include "governor/parent_check.h"
#include "governor/stdio_check.h"
#include "governor/terminal.h"
#include "governor/view.h"
#include "governor/watch.h"

#define KILL_TIMEOUT_MS	   5000
#define SETUP_DEADLINE_SEC 30 /* for a step of the child: a hostile directory can block it */

struct guest {
	const struct guest_call *call;
	struct report *report;
	struct pair_grant grant;
	struct cgroup cgroup;
	struct handed handed;
	struct terminal terminal;
	struct network network;
	pid_t child;
	int pidfd, control, holder;
	int netns;	  /* that was made before; -1 = none */
	enum ended ended; /* so far: why the set-up did not succeed */
	uint64_t wall_usec;
};

/* The caller may go away while the daemon takes its time: it is told to wait for a place. */
static int wait_for_daemon(struct guest *g, struct error *e)
{
	struct pollfd p[2] = {
		{ .fd = g->call->daemon, .events = POLLIN },
		{ .fd = g->call->client, .events = POLLRDHUP },
	};

	while (poll(p, ARRAY_SIZE(p), -1) < 0)
		if (errno != EINTR)
			return error_errno(e, -errno, "the daemon cannot be waited for");
	if (p[0].revents || !p[1].revents)
		return 0;
	g->ended = ENDED_CALLER_GONE;
	return error_set(e, -EPIPE, "before the guest ran");
}

/* Asks the daemon, with pair_answer(); what came instead of an answer is why the run ended. */
static int ask_daemon(struct guest *g, const struct pair_ask *ask, struct pair_reply *reply,
		      int *ret_fd, struct error *e)
{
	int r = pair_send(g->call->daemon, ask, sizeof(*ask));

	if (r < 0)
		r = error_set(e, -ECONNRESET, "the daemon is gone");
	if (r == 0)
		r = wait_for_daemon(g, e);
	if (r == 0)
		r = pair_answer(g->call->daemon, ask->verb, reply, ret_fd, e);
	if (r == -ECANCELED)
		g->ended = (enum ended)(reply->stop % ENDED_COUNT);
	else if (r == -ECONNRESET)
		g->ended = ENDED_GOVERNOR_LOST;
	else if (r == 0 && reply->verb != PAIR_OK)
		r = error_set(e, -EPROTO, "the daemon's answer makes no sense");
	return r;
}

/* ---- 1: what the caller handed over ---- */

/* What came as a pidfd of the caller's parent, or -1. */
static int parent_of(const struct guest *g)
{
	return g->call->request->with_parent ? g->call->fds[RUN_FD_COUNT] : -1;
}

static int check_parent(struct guest *g, struct error *e)
{
	int r = parent_of(g) < 0 ? 0 : parent_check(parent_of(g), e);

	if (r <= 0)
		return r;
	g->ended = ENDED_CALLER_GONE;
	return error_set(e, -ESRCH, "its parent ended before the command ran");
}

static int is_terminal(const struct guest *g, int stream)
{
	return (g->call->request->terminals & (1u << stream)) != 0;
}

static int open_handed(struct guest *g, struct error *e)
{
	const int *fds = g->call->fds;
	const struct handed_call call = {
		.request = g->call->request,
		.caller = g->call->caller,
		.base = g->call->means->view,
		.cwd = fds[RUN_FD_CWD],
		.mntns = fds[RUN_FD_MNTNS],
		.fds = fds + request_first_view_fd(g->call->request),
	};

	return handed_open(&call, &g->handed, e);
}

/* Looking at a hostile descriptor can block: the supervisor's deadline is running. */
static int check_descriptors(struct guest *g, struct error *e)
{
	static const char *const names[] = { "standard input", "standard output",
					     "standard error" };
	const int *fds = g->call->fds;
	int r = strings_check(fds[RUN_FD_STRINGS], e);

	for (int i = 0; i < 3 && r == 0; i++)
		if (!is_terminal(g, i))
			r = stdio_check(fds[RUN_FD_STDIN + i], names[i], e);
	if (r == 0)
		r = open_handed(g, e);
	if (r == 0)
		r = check_parent(g, e);
	deadline_end();
	return r;
}

/* ---- 2, 3: policy, uid and scope, by the daemon ---- */

static int get_scope(struct guest *g, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_START };
	struct pair_reply reply;
	int r;

	ask.start.limits = g->call->request->limits;
	ask.start.wait_usec = g->call->request->wait_usec;
	memcpy(ask.start.net, g->call->request->net, sizeof(ask.start.net));
	memcpy(ask.start.name, g->call->request->name, sizeof(ask.start.name));
	memcpy(ask.start.command, g->call->request->command, sizeof(ask.start.command));
	r = ask_daemon(g, &ask, &reply, &g->netns, e);
	if (r < 0)
		return r;
	g->grant = reply.grant;
	g->holder = (int)syscall(SYS_pidfd_open, g->grant.holder, 0);
	return g->holder < 0 ? error_errno(e, -errno, "the scope's own process") : 0;
}

/* This process was made before the run waited, with what was in force then. */
static int check_means(const struct guest *g, struct error *e)
{
	if (g->grant.means == g->call->means->version)
		return 0;
	return error_set(e, -ESTALE,
			 "what guests see or may do was changed while this run waited; start it "
			 "again");
}

static int check_lasting(const struct guest *g, struct error *e)
{
	if (!(g->grant.filter & CONFINE_USER_NAMESPACES))
		return 0;
	return handed_check_lasting(&g->handed, g->call->request, g->grant.profile, e);
}

static void describe(struct guest *g)
{
	struct report *r = g->report;

	memcpy(r->id, g->grant.id, sizeof(r->id));
	memcpy(r->profile, g->grant.profile, sizeof(r->profile));
	r->uid = g->grant.uid;
	r->caller_uid = g->grant.caller_uid;
	r->asked = g->grant.limits;
	r->origins = g->grant.origins;
}

/* ---- 4, 5: the child, born in its cgroup ---- */

static pid_t clone_into(int cgroup_fd, bool own_network, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_NEWNS | CLONE_NEWIPC | CLONE_PIDFD |
			 (own_network ? CLONE_NEWNET : 0),
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

static uint64_t tmp_bytes(const struct guest *g)
{
	uint64_t asked = g->call->request->tmp_bytes;

	return asked != LIMIT_UNSET ? asked : g->grant.limits.value[LIMIT_MEMORY];
}

/* All but the pidfd of the parent, which is watched. */
static void close_handed_over(struct guest *g)
{
	int *fds = g->call->fds;
	size_t first = request_first_view_fd(g->call->request);

	close_all(fds, RUN_FD_COUNT);
	close_all(fds + first, request_n_fds(g->call->request) - first);
	handed_close(&g->handed);
}

/* All but its end of the control socket. */
static void plan_child(struct guest *g, struct child_plan *ret)
{
	const struct request *q = g->call->request;
	const int *fds = g->call->fds;

	*ret = (struct child_plan){
		.uid = g->grant.uid,
		.umask_bits = q->umask,
		.rlimits = q->rlimits,
		.filter = &g->call->means->filters[g->grant.filter],
		.view = { .base = g->call->means->view,
			  .items = q->view,
			  .handed = &g->handed,
			  .uid = g->grant.uid,
			  .tmp_bytes = tmp_bytes(g),
			  .resolver = g->grant.resolver != 0,
			  .own_pts = q->terminals == 0 },
		.file_bytes = g->grant.limits.value[LIMIT_MEMORY],
		.strings_fd = fds[RUN_FD_STRINGS],
		.terminal = &g->terminal,
		.terminals = q->terminals,
		.own_network = g->grant.own_network != 0,
		.netns = g->netns,
	};
	for (int i = 0; i < 3; i++)
		ret->stdio[i] = is_terminal(g, i) ? g->terminal.slave : fds[RUN_FD_STDIN + i];
}

static int start_child(struct guest *g, struct error *e)
{
	struct timeval patience = { .tv_sec = SETUP_DEADLINE_SEC };
	struct child_plan plan;
	int ends[2];

	plan_child(g, &plan);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_errno(e, -errno, "no control socket");
	plan.control = ends[1];
	g->child = clone_into(g->cgroup.guest_fd, plan.own_network && g->netns < 0, &g->pidfd);
	if (g->child == 0)
		child_main(&plan);
	close(ends[1]);
	g->control = ends[0];
	if (g->child < 0)
		return error_errno(e, -errno, "the guest's process cannot be made%s",
				   errno == EAGAIN ? ": look at TasksMax= of harpe.slice" : "");
	setsockopt(g->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	deadline_begin(); /* closing a hostile descriptor can block */
	close_handed_over(g);
	terminal_close_slave(&g->terminal);
	deadline_end();
	close_fd(&g->netns); /* or it would outlive the guest */
	g->netns = -1;
	return 0;
}

/* What the child says; a child that just dies (the memory limit may be too small for the set-up)
 * counts as a failure of this set-up. */
static int expect_ready(struct guest *g, struct error *e)
{
	struct child_message m;
	int r = pair_receive(g->control, &m, sizeof(m));

	if (r == -EAGAIN)
		return error_set(
			e, r,
			"the guest's process was not ready after %d s: its slice is frozen, or "
			"a directory does not answer",
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
		r = cgroup_verify(&g->cgroup, &g->grant.limits, &g->report->limits,
				  &g->report->origins, e);
	if (r == 0)
		r = cgroup_verify_member(&g->cgroup, g->child, e);
	if (r == 0)
		r = confine_verify(g->child, g->grant.uid, e);
	if (r == 0)
		r = view_verify(g->child, e);
	if (r == 0 && g->grant.own_network)
		r = network_verify(g->child, &g->network, e);
	return r;
}

static int ask_release(struct guest *g, struct error *e)
{
	struct pair_ask ask = {
		.verb = PAIR_RELEASE,
		.release = { .main_pid = g->child, .in_force = g->report->limits },
	};
	struct pair_reply reply;

	return ask_daemon(g, &ask, &reply, NULL, e);
}

static int release(struct guest *g, struct error *e)
{
	char go = CHILD_GO;

	deadline_silence();
	if (send(g->control, &go, 1, MSG_NOSIGNAL) != 1)
		return error_errno(e, -errno, "the guest's process cannot be released");
	g->report->started_usec = clock_usec(CLOCK_REALTIME);
	return 0;
}

/* A scope that waited for a guest has its cgroups already. */
static int enter_scope(struct guest *g, struct error *e)
{
	const struct pair_grant *grant = &g->grant;
	int r;

	g->cgroup.untold = limits_untold(&g->call->request->limits, &grant->limits);
	if (grant->was_warm)
		r = cgroup_open(&g->cgroup, grant->scope, e);
	else
		r = cgroup_make(&g->cgroup, grant->scope, grant->holder, e);
	return r < 0 ? r : cgroup_bound(&g->cgroup, &grant->limits, &grant->made, e);
}

static int set_up(struct guest *g, struct error *e)
{
	int r = check_descriptors(g, e);

	if (r == 0)
		r = get_scope(g, e);
	if (r < 0)
		return r;
	describe(g);
	r = check_means(g, e);
	if (r == 0)
		r = check_lasting(g, e);
	if (r < 0)
		return r;
	r = enter_scope(g, e);
	if (r == 0 && g->call->request->terminals)
		r = terminal_open(&g->terminal, g->grant.uid, &g->call->request->terminal, e);
	if (r == 0)
		r = handed_map(&g->handed, g->call->caller, g->grant.uid, e);
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
		.parent = parent_of(g),
		.terminal = &g->terminal,
		.cgroup = &g->cgroup,
		.report = g->report,
		.wall_usec = g->grant.limits.value[LIMIT_TIME],
		.cpu_usec = g->grant.limits.value[LIMIT_CPU_TIME],
	};
	enum ended ended = watch_guest(&watch, e);

	return ended == ENDED_SETUP_FAILED ? exec_failed(g, e) : ended;
}

/* ---- 8: the end ---- */

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

/* Tells the daemon, which answers when systemd has taken the scope away. */
static void leave_scope(struct guest *g)
{
	struct pair_ask ask = { .verb = PAIR_END, .report = *g->report };
	struct pair_reply reply;
	int r;

	r = pair_send(g->call->daemon, &ask, sizeof(ask));
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

static void end(struct guest *g, struct error *e)
{
	struct report *r = g->report;
	enum ended ended = g->ended;

	reap(g); /* first: a zombie still counts as a task */
	r->left_processes = ended == ENDED_EXITED ? cgroup_tasks(&g->cgroup) : REPORT_UNKNOWN;
	cgroup_sample_memory(&g->cgroup, r);
	if (cgroup_kill(&g->cgroup, KILL_TIMEOUT_MS, e) < 0)
		ended = ENDED_UNKILLABLE;
	reap(g);
	if (r->guest_ran)
		r->wall_usec = g->wall_usec;
	cgroup_counters(&g->cgroup, r);
	network_unroutable(&g->network, &r->unroutable);
	r->ended = ended == ENDED_EXITED ? why_it_ended(r, e) : ended;
	memcpy(r->error, e->text, sizeof(r->error));
	leave_scope(g);
	cgroup_close(&g->cgroup);
	handed_close(&g->handed);
	terminal_close(&g->terminal);
	network_close(&g->network);
	close_fd(&g->pidfd);
	close_fd(&g->control);
	close_fd(&g->holder);
	close_fd(&g->netns);
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
		.netns = -1,
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
	g.wall_usec = clock_usec(CLOCK_MONOTONIC) - start;
	end(&g, &e);
}
