/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov kill`. One connection per target, since a connection carries one request.
 */
#include <errno.h>
#include <string.h>

#include "common/fd.h"
#include "governor/connect.h"
#include "governor/verb.h"

enum { KILL_ALL, KILL_OPTIONS };

static const struct option kill_options[KILL_OPTIONS] = {
	[KILL_ALL] = { NULL, "all", NULL, "kill all guests of yours" },
};

static int take_count(const void *buf, size_t len, uint64_t *ret_count, struct error *e)
{
	struct answer answer = {};
	int type = wire_type(buf, len, e), r;

	if (type < 0)
		return type;
	if (type != WIRE_DONE && type != WIRE_REFUSED)
		return error_set(e, -EPROTO, "the daemon sent a message of type %d", type);
	r = wire_decode(answer_fields, answer_n_fields, buf, len, &answer, e);
	if (r < 0)
		return r;
	if (type == WIRE_REFUSED)
		return error_set(e, -EPERM, "%s", answer.text);
	*ret_count = answer.count;
	return 0;
}

static int kill_target(const char *socket, const struct request *q, uint64_t *ret_count,
		       struct error *e)
{
	_cleanup_close_ int sock = connect_daemon(socket, e);
	WIRE_BUFFER(buf);
	ssize_t n;
	int r;

	if (sock < 0)
		return sock;
	r = send_request(sock, WIRE_KILL, q, NULL, 0, e);
	if (r < 0)
		return r;
	n = receive_answer(sock, buf, NULL, e);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return error_set(e, -ECONNRESET, "the daemon closed the connection");
	return take_count(buf, (size_t)n, ret_count, e);
}

/* @name NULL: all. */
static int kill_named(const char *socket, const char *name)
{
	struct request q;
	uint64_t count = 0;
	struct error e;
	int r = 0;

	request_clear(&q);
	if (name && name_valid(name)) {
		strcpy(q.target, name);
		r = kill_target(socket, &q, &count, &e);
	} else if (!name) {
		r = kill_target(socket, &q, &count, &e);
	}
	if (r == 0 && (count > 0 || !name))
		return 0;
	if (r == 0)
		error_set(&e, -ENOENT, "there is no guest \"%.72s\"", name);
	complain(e.text);
	return 1;
}

static int kill_main(const char *socket, const char *const values[], char **names)
{
	int failed = 0;

	if (!values[KILL_ALL] == !names[0]) {
		complain("kill needs either names and ids of guests, or --all");
		return verb_kill.usage_status;
	}
	if (values[KILL_ALL])
		return kill_named(socket, NULL);
	for (; *names; names++)
		failed |= kill_named(socket, *names);
	return failed;
}

const struct verb verb_kill = {
	.name = "kill",
	.operands = "ID|NAME... | --all",
	.summary = "Kill guests with all their processes",
	.details = "A guest is gone when its \"harpe-gov run\" has returned.\n"
		   "Root kills the guests of everybody.\n"
		   "Exit status: 1 when one was not found.\n",
	.set = { kill_options, KILL_OPTIONS, 0 },
	.usage_status = 2,
	.main = kill_main,
};
