/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child, born in its cgroup. */
#include "governor/supervisor/guest_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/supervisor/child.h"
#include "governor/supervisor/deadline.h"

#define SETUP_DEADLINE_SEC 30 /* for a step of the child: a hostile directory can block it */

static pid_t clone_into(int cgroup_fd, uint64_t new_spaces, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_PIDFD | new_spaces,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Those that were not made before. */
static uint64_t new_spaces(const struct guest *g)
{
	return (g->spaces.ipc < 0 ? CLONE_NEWIPC : 0) |
	       (g->grant.own_network && g->spaces.net < 0 ? CLONE_NEWNET : 0);
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
		.view = { .start = { .ground = g->call->means->ground,
				     .base = g->call->means->view,
				     .tmp_bytes = tmp_bytes(g) },
			  .prepared = g->spaces.mounts,
			  .prepared_tmp_bytes = g->grant.made.value[LIMIT_MEMORY],
			  .items = q->view,
			  .handed = &g->handed,
			  .uid = g->grant.uid,
			  .resolver = g->grant.resolver != 0,
			  .own_pts = q->terminals == 0 },
		.file_bytes = g->grant.limits.value[LIMIT_MEMORY],
		.strings_fd = fds[RUN_FD_STRINGS],
		.terminal = &g->terminal,
		.terminals = q->terminals,
		.own_network = g->grant.own_network != 0,
		.spaces = g->spaces,
	};
	for (int i = 0; i < 3; i++)
		ret->stdio[i] = guest_is_terminal(g, i) ? g->terminal.slave : fds[RUN_FD_STDIN + i];
}

int guest_start_child(struct guest *g, struct error *e)
{
	struct timeval patience = { .tv_sec = SETUP_DEADLINE_SEC };
	struct child_plan plan;
	int ends[2];

	plan_child(g, &plan);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_errno(e, -errno, "no control socket");
	plan.control = ends[1];
	g->child = clone_into(g->cgroup.guest_fd, new_spaces(g), &g->pidfd);
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
	spaces_close(&g->spaces); /* or they would outlive the guest */
	return 0;
}

/* What the child says; a child that just dies (the memory limit may be too small for the set-up)
 * counts as a failure of this set-up. */
int guest_expect_ready(struct guest *g, struct error *e)
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
