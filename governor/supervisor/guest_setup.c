/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Up to the release: what the caller handed over, a place from the daemon, and reading all back. */
#include "governor/supervisor/guest_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/cgroup_limits.h"
#include "governor/guest/confine.h"
#include "governor/guest/view.h"
#include "governor/supervisor/child.h"
#include "governor/supervisor/deadline.h"
#include "governor/supervisor/parent_check.h"
#include "governor/supervisor/stdio_check.h"

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
		      struct spaces *ret_spaces, struct error *e)
{
	int r = pair_send(g->call->daemon, ask, sizeof(*ask));

	if (r < 0)
		r = error_set(e, -ECONNRESET, "the daemon is gone");
	if (r == 0)
		r = wait_for_daemon(g, e);
	if (r == 0)
		r = pair_answer(g->call->daemon, ask->verb, reply, ret_spaces, e);
	if (r == -ECANCELED)
		g->ended = (enum ended)(reply->stop % ENDED_COUNT);
	else if (r == -ECONNRESET)
		g->ended = ENDED_GOVERNOR_LOST;
	else if (r == 0 && reply->verb != PAIR_OK)
		r = error_set(e, -EPROTO, "the daemon's answer makes no sense");
	return r;
}

/* ---- what the caller handed over ---- */

int guest_parent(const struct guest *g)
{
	return g->call->request->with_parent ? g->call->fds[RUN_FD_COUNT] : -1;
}

static int check_parent(struct guest *g, struct error *e)
{
	int r = guest_parent(g) < 0 ? 0 : parent_check(guest_parent(g), e);

	if (r <= 0)
		return r;
	g->ended = ENDED_CALLER_GONE;
	return error_set(e, -ESRCH, "its parent ended before the command ran");
}

bool guest_is_terminal(const struct guest *g, int stream)
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
		if (!guest_is_terminal(g, i))
			r = stdio_check(fds[RUN_FD_STDIN + i], names[i], e);
	if (r == 0)
		r = open_handed(g, e);
	if (r == 0)
		r = check_parent(g, e);
	deadline_end();
	return r;
}

/* ---- policy, uid and scope, by the daemon ---- */

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
	r = ask_daemon(g, &ask, &reply, &g->spaces, e);
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
	const char *slash = strrchr(g->grant.scope, '/');

	memcpy(r->id, g->grant.id, sizeof(r->id));
	snprintf(r->scope, sizeof(r->scope), "%.*s", (int)sizeof(r->scope) - 1,
		 slash ? slash + 1 : "");
	memcpy(r->profile, g->grant.profile, sizeof(r->profile));
	r->uid = g->grant.uid;
	r->caller_uid = g->grant.caller_uid;
	r->asked = g->grant.limits;
	r->origins = g->grant.origins;
}

/* ---- reading everything back ---- */

static int verify_limits(struct guest *g, struct error *e)
{
	int r = cgroup_throttle(&g->cgroup, e);

	if (r == 0)
		r = cgroup_verify(&g->cgroup, &g->grant.limits, &g->report->limits,
				  &g->report->origins, e);
	return r == 0 ? cgroup_verify_member(&g->cgroup, g->child, e) : r;
}

/* What the child has made of itself. */
static int verify_child(struct guest *g, struct error *e)
{
	int r = confine_verify(g->child, g->grant.uid, e);

	if (r == 0)
		r = spaces_verify(g->child, g->grant.own_network, e);
	if (r == 0 && g->grant.own_network)
		network_open(g->child, &g->network);
	return r == 0 ? view_verify(g->child, g->call->means->ground, &g->mounts, e) : r;
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

/* ---- the whole ---- */

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
	return r < 0 ? r
		     : cgroup_bound(&g->cgroup, &grant->limits,
				    grant->was_warm ? &grant->made : NULL, e);
}

/* While the child is still at it. When that fails the better reason is its own, if it has one: with
 * it, its cgroup may be gone. */
static int verify_limits_beside(struct guest *g, struct error *e)
{
	struct error why = ERROR_NULL;
	int r = verify_limits(g, e), child = r < 0 ? guest_expect_ready(g, &why) : 0;

	if (child == -ECHILD || child == -EIO)
		*e = why;
	return r;
}

/* A small CPU quota is lifted until the child is ready: then all are read back after that. */
static int make_child(struct guest *g, struct error *e)
{
	bool lifted = g->cgroup.lifted;
	int r = guest_start_child(g, e);

	if (r == 0 && !lifted)
		r = verify_limits_beside(g, e);
	if (r == 0)
		r = guest_expect_ready(g, e);
	if (r == 0 && lifted)
		r = verify_limits(g, e);
	return r == 0 ? verify_child(g, e) : r;
}

int guest_set_up(struct guest *g, struct error *e)
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
		r = make_child(g, e);
	if (r == 0)
		r = ask_release(g, e);
	return r;
}
