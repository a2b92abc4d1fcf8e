/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov kill`. One connection per target, since a connection carries one request. Which guests
 * are meant is settled before the first is killed: those are waited for, by their ids, and not what
 * is started under the same name meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "governor/client/connect.h"
#include "governor/client/rows.h"
#include "governor/client/verb.h"

#define WAIT_MS	    15000 /* more than the daemon gives a scope to go, and systemd a unit to stop */
#define LOOK_MIN_MS 10
#define LOOK_MAX_MS 200

enum { KILL_ALL, KILL_NO_WAIT, KILL_OPTIONS };

static const struct option kill_options[KILL_OPTIONS] = {
	[KILL_ALL] = { .name = "all", .help = "kill all guests of yours" },
	[KILL_NO_WAIT] = { .name = "no-wait", .help = "do not wait until they are gone" },
};

/* ---- killing ---- */

static int take_answer(const void *buf, size_t len, struct error *e)
{
	struct answer answer = {};
	int type = wire_type(buf, len, e), r;

	if (type < 0)
		return type;
	if (type != WIRE_DONE && type != WIRE_REFUSED)
		return error_set(e, -EPROTO, "the daemon sent a message of type %d", type);
	r = wire_decode(answer_fields, answer_n_fields, buf, len, &answer, e);
	if (r == 0 && type == WIRE_REFUSED)
		r = error_set(e, -EPERM, "%s", answer.text);
	return r;
}

/* @target "": all. */
static int kill_target(const char *socket, const char *target, struct error *e)
{
	_cleanup_close_ int sock = connect_daemon(socket, e);
	struct request q;
	WIRE_BUFFER(buf);
	ssize_t n;
	int r;

	if (sock < 0)
		return sock;
	request_clear(&q);
	strcpy(q.target, target);
	r = send_request(sock, WIRE_KILL, &q, NULL, 0, e);
	if (r < 0)
		return r;
	n = receive_answer(sock, buf, NULL, e);
	if (n == 0)
		return error_set(e, -ECONNRESET, "the daemon closed the connection");
	return n < 0 ? (int)n : take_answer(buf, (size_t)n, e);
}

/* What is in no list needs no killing. */
static int kill_targets(const char *socket, const struct rows *rows, char *const targets[],
			struct error *e)
{
	int r = 0;

	for (; *targets && r == 0; targets++)
		if (rows_have(rows, *targets))
			r = kill_target(socket, *targets, e);
	return r;
}

/* ---- waiting ---- */

/* Not by its name, which may be another's id. */
static const struct guest_row *find_id(const struct rows *rows, const char *id)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].id, id) == 0)
			return &rows->row[i];
	return NULL;
}

/* Keeps those of @doomed that are still there. */
static void keep_those_in(struct rows *doomed, const struct rows *there)
{
	size_t n = 0;

	for (size_t i = 0; i < doomed->n; i++)
		if (find_id(there, doomed->row[i].id))
			doomed->row[n++] = doomed->row[i];
	doomed->n = n;
}

static int look_for_all(const char *socket, struct rows *doomed, struct error *e)
{
	_cleanup_(rows_free) struct rows there = ROWS_NULL;
	int r = rows_ask_brief(socket, &there, e);

	if (r == 0)
		keep_those_in(doomed, &there);
	return r;
}

/* There may be a thousand, whom to list takes the time that their end needs: as long as the last is
 * there, no other is looked for. */
static int look_again(const char *socket, struct rows *doomed, struct error *e)
{
	_cleanup_(rows_free) struct rows there = ROWS_NULL;
	struct guest_row *last = &doomed->row[doomed->n - 1];
	const struct guest_row *now;
	int r = rows_ask(socket, last->id, &there, e);

	if (r < 0)
		return r;
	now = find_id(&there, last->id);
	if (now) {
		*last = *now;
		return 0;
	}
	doomed->n--;
	return doomed->n > 0 ? look_for_all(socket, doomed, e) : 0;
}

static int give_up(const struct guest_row *row, struct error *e)
{
	return error_set(e, -ETIMEDOUT,
			 "guest %s has not gone within %d s, it is %s: see \"harpe-gov ps\"",
			 row->id, WAIT_MS / 1000, row_state(row));
}

/* Until one is gone, whichever: the last look is for all. */
static int wait_for_some(const char *socket, struct rows *doomed, struct error *e)
{
	size_t n = doomed->n;
	long pause_ms = LOOK_MIN_MS;
	int r = look_again(socket, doomed, e);

	for (long waited_ms = 0; r == 0 && doomed->n == n; waited_ms += pause_ms) {
		if (waited_ms >= WAIT_MS)
			return give_up(&doomed->row[n - 1], e);
		if (waited_ms > 0)
			pause_ms = pause_ms * 2 < LOOK_MAX_MS ? pause_ms * 2 : LOOK_MAX_MS;
		nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
		r = waited_ms + pause_ms < WAIT_MS ? look_again(socket, doomed, e)
						   : look_for_all(socket, doomed, e);
	}
	return r;
}

static int wait_gone(const char *socket, struct rows *doomed, struct error *e)
{
	int r = 0;

	while (r == 0 && doomed->n > 0)
		r = wait_for_some(socket, doomed, e);
	return r;
}

/* ---- the verb ---- */

static int kill_main(const char *socket, const char *const values[], char **targets)
{
	_cleanup_(rows_free) struct rows rows = ROWS_NULL;
	struct error e;
	int missing = 0, r;

	if (!values[KILL_ALL] == !targets[0]) {
		complain("kill needs either names and ids of guests, or --all");
		return verb_kill.usage_status;
	}
	r = targets[0] && !targets[1] ? rows_ask(socket, targets[0], &rows, &e)
				      : rows_ask_brief(socket, &rows, &e);
	if (r == 0) {
		rows_drop_slots(&rows);
		missing = rows_complain_of_none(&rows, targets);
		r = values[KILL_ALL] ? kill_target(socket, "", &e)
				     : kill_targets(socket, &rows, targets, &e);
	}
	if (!values[KILL_ALL])
		rows_choose(&rows, targets);
	if (r == 0 && !values[KILL_NO_WAIT])
		r = wait_gone(socket, &rows, &e);
	if (r < 0)
		complain(e.text);
	return r < 0 || missing;
}

const struct verb verb_kill = {
	.name = "kill",
	.operands = "[--no-wait] {ID|NAME... | --all}",
	.summary = "Kill guests with all their processes",
	.details = "Returns when they are gone, or with --no-wait when they are told to end.\n"
		   "Root kills the guests of everybody.\n"
		   "Exit status: 1 when one was not found, or none went for 15 s.\n",
	.set = { kill_options, KILL_OPTIONS, 0 },
	.usage_status = 2,
	.main = kill_main,
};
