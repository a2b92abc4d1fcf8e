/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/request.h"
#include "common/wire.h"
#include "governor/guest/cgroup_counters.h"
#include "governor/guest/descriptors.h"
#include "governor/supervisor/deadline.h"
#include "governor/supervisor/guest.h"
#include "governor/supervisor/pair.h"

struct call {
	struct request request;
	int fds[WIRE_FDS_MAX];
	size_t n_fds;
	struct caller caller;
	struct guest_means means;
};

/* The client may not read. */
static void send_in_time(const void *buf, size_t len)
{
	if (wire_try_send(SUPERVISOR_CLIENT_FD, buf, len, NULL, 0) != -EAGAIN)
		return;
	deadline_begin();
	wire_send(SUPERVISOR_CLIENT_FD, buf, len, NULL, 0);
	deadline_end();
}

static void answer(enum wire_type type, const struct wire_field *fields, size_t n_fields,
		   const void *object)
{
	WIRE_BUFFER(buf);
	ssize_t n = wire_encode(type, fields, n_fields, object, buf, sizeof(buf));

	if (n > 0)
		send_in_time(buf, (size_t)n);
}

static void answer_done(uint64_t count)
{
	struct answer a = { .count = count };

	answer(WIRE_DONE, answer_fields, answer_n_fields, &a);
}

static void refuse(const struct error *e)
{
	struct answer a = { .count = 0 };

	memcpy(a.text, e->text, sizeof(a.text));
	answer(WIRE_REFUSED, answer_fields, answer_n_fields, &a);
}

/* The daemon may be busy, which is not the client's doing: it says itself what takes too long. */
static int ask_daemon(const struct pair_ask *ask, struct pair_reply *reply, struct error *e)
{
	deadline_end();
	return pair_call(SUPERVISOR_DAEMON_FD, ask, reply, e);
}

/* ---- the verbs ---- */

static int check_descriptors(const struct call *c, struct error *e)
{
	size_t want = request_n_fds(&c->request);

	if (c->n_fds != want)
		return error_set(e, -EPROTO, "the request has %zu descriptors instead of %zu",
				 c->n_fds, want);
	return 0;
}

static int serve_run(struct call *c, struct error *e)
{
	struct report report;
	struct guest_call call = {
		.client = SUPERVISOR_CLIENT_FD,
		.daemon = SUPERVISOR_DAEMON_FD,
		.request = &c->request,
		.caller = &c->caller,
		.fds = c->fds,
		.means = &c->means,
	};
	int r = check_descriptors(c, e);

	if (r < 0)
		return r;
	guest_run(&call, &report);
	answer(WIRE_REPORT, report_fields, report_n_fields, &report);
	return 0;
}

static int serve_explain(struct call *c, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_EXPLAIN, .start = { .limits = c->request.limits } };
	struct pair_reply reply;
	int r;

	memcpy(ask.start.net, c->request.net, sizeof(ask.start.net));
	r = ask_daemon(&ask, &reply, e);
	if (r == 0)
		answer(WIRE_EXPLANATION, explanation_fields, explanation_n_fields,
		       &reply.explanation);
	return r;
}

/* The next row: the first of PAIR_ROWS has to be asked for, the others come by themselves. */
static int next_row(struct pair_ask *ask, uint64_t n, struct pair_reply *reply, struct error *e)
{
	int r = n % PAIR_ROWS == 0 ? ask_daemon(ask, reply, e)
				   : pair_answer(SUPERVISOR_DAEMON_FD, PAIR_NEXT, reply, NULL, e);

	if (r < 0 || reply->verb != PAIR_OK)
		return r;
	ask->next.cursor = reply->next.cursor;
	return 1;
}

static int serve_ps(struct call *c, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_NEXT };
	struct pair_reply reply;
	uint64_t count = 0;
	int r;

	memcpy(ask.next.target, c->request.target, sizeof(ask.next.target));
	while ((r = next_row(&ask, count, &reply, e)) > 0) {
		cgroup_count_row(&reply.next.row, c->request.brief);
		answer(WIRE_GUEST, guest_row_fields, guest_row_n_fields, &reply.next.row);
		count++;
	}
	if (r == 0)
		answer_done(count);
	return r;
}

static int serve_kill(struct call *c, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_KILL };
	struct pair_reply reply;
	int r;

	memcpy(ask.target, c->request.target, sizeof(ask.target));
	r = ask_daemon(&ask, &reply, e);
	if (r < 0)
		return r;
	answer_done(reply.count);
	return 0;
}

static const struct {
	int type;
	int (*serve)(struct call *c, struct error *e);
} verbs[] = {
	{ WIRE_RUN, serve_run },
	{ WIRE_EXPLAIN, serve_explain },
	{ WIRE_PS, serve_ps },
	{ WIRE_KILL, serve_kill },
};

/* ---- the connection ---- */

static int receive(struct call *c, int *ret_type, struct error *e)
{
	WIRE_BUFFER(buf);
	ssize_t n;
	int r;

	deadline_begin(); /* and so it stays until all that came was looked at */
	n = wire_receive(SUPERVISOR_CLIENT_FD, buf, sizeof(buf), c->fds, &c->n_fds);
	if (n == 0)
		_exit(0); /* somebody looked whether the door is there */
	if (n < 0)
		return error_errno(e, (int)n, "the request cannot be received");
	r = wire_type(buf, (size_t)n, e);
	if (r < 0)
		return r;
	*ret_type = r;
	request_clear(&c->request);
	r = wire_decode(request_fields, request_n_fields, buf, (size_t)n, &c->request, e);
	return r < 0 ? r : request_check(&c->request, e);
}

static int dispatch(struct call *c, struct error *e)
{
	int type = 0, r = receive(c, &type, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].type == type)
			return verbs[i].serve(c, e);
	return error_set(e, -EPROTO, "the request is of unknown kind %d", type);
}

/* Signal handling of a process that nobody but the daemon and SIGALRM may end. Blocked, not
 * ignored: the child has only one mask to empty. SIGCHLD can be waited for (guest_end.c). */
static void block_signals(void)
{
	static const int blocked[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(blocked); i++)
		sigaddset(&set, blocked[i]);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

/* Before the wait: whoever waits must not hold what is the daemon's, like the socket that owns the
 * table, or the other ends of pairs, which tell others of the daemon's end. */
static void keep_only(int daemon, int ground, int listener)
{
	int client = -1;
	int *const list[] = { &client, &daemon, &ground, &listener };

	if (keep_descriptors(list, ARRAY_SIZE(list), SUPERVISOR_CLIENT_FD, 0) < 0)
		_exit(0);
}

/* The next connection, if it is still there: others may be faster, or its maker has given up. */
static bool take_client(void)
{
	int client = accept4(SUPERVISOR_LISTENER_FD, NULL, NULL, SOCK_CLOEXEC);

	if (client != SUPERVISOR_CLIENT_FD && errno != EAGAIN && errno != ECONNABORTED)
		_exit(0);
	return client == SUPERVISOR_CLIENT_FD;
}

/* Until somebody connects; what the daemon says, or its end, is that none is wanted any more. */
static void accept_client(void)
{
	struct pollfd p[] = { { .fd = SUPERVISOR_DAEMON_FD, .events = POLLIN },
			      { .fd = SUPERVISOR_LISTENER_FD, .events = POLLIN } };

	do
		if (poll(p, ARRAY_SIZE(p), -1) < 0 || p[0].revents)
			_exit(0);
	while (!take_client());
	close(SUPERVISOR_LISTENER_FD);
}

/* Tells the daemon who calls; it may have too many of them already. One that is not served counts
 * as well. */
static int say_hello(struct call *c, struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_HELLO };
	struct pair_reply reply;
	int known = caller_of(SUPERVISOR_CLIENT_FD, &ask.caller), r;

	c->caller = ask.caller;
	r = ask_daemon(&ask, &reply, e);
	if (r == 0 && known == -ERANGE)
		return error_set(
			e, known,
			"uid %u is in more than %d supplementary groups, the most that are "
			"looked through",
			c->caller.uid, CALLER_GROUPS_MAX);
	return r == 0 && known < 0 ? error_errno(e, known, "the caller cannot be identified") : r;
}

void supervisor_main(int listener, int daemon, const struct guest_means *means)
{
	struct call call = { .means = *means };
	struct error e = ERROR_NULL;

	block_signals();
	keep_only(daemon, means->ground, listener);
	call.means.ground = SUPERVISOR_GROUND_FD;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	deadline_prepare(SUPERVISOR_CLIENT_FD);
	accept_client();
	if (say_hello(&call, &e) < 0 || dispatch(&call, &e) < 0)
		refuse(&e);
	_exit(0);
}
