/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/report.h"
#include "common/text.h"
#include "governor/client/connect.h"
#include "governor/client/verb.h"

#define ROWS_SCHEMA 1

void rows_free(struct rows *rows)
{
	free(rows->row);
}

/* ---- asking ---- */

static int take_row(struct rows *rows, const void *buf, size_t len, struct error *e)
{
	struct guest_row *more = reallocarray(rows->row, rows->n + 1, sizeof(*more));
	int r;

	if (!more)
		return error_errno(e, -ENOMEM, "cannot keep the list of guests");
	rows->row = more;
	more[rows->n] = (struct guest_row){};
	r = wire_decode(guest_row_fields, guest_row_n_fields, buf, len, &more[rows->n], e);
	if (r < 0)
		return r;
	rows->n++;
	return 0;
}

static int take_refusal(const void *buf, size_t len, struct error *e)
{
	struct answer answer = {};
	int r = wire_decode(answer_fields, answer_n_fields, buf, len, &answer, e);

	return r < 0 ? r : error_set(e, -EPERM, "%s", answer.text);
}

/* Takes one message. Returns 1 when more are to come. */
static int take_message(struct rows *rows, int sock, struct error *e)
{
	WIRE_BUFFER(buf);
	ssize_t n = receive_answer(sock, buf, NULL, e);
	int type, r;

	if (n < 0)
		return (int)n;
	if (n == 0)
		return error_set(e, -ECONNRESET, "the daemon closed the connection");
	type = wire_type(buf, (size_t)n, e);
	if (type < 0 || type == WIRE_DONE)
		return type < 0 ? type : 0;
	if (type == WIRE_REFUSED)
		return take_refusal(buf, (size_t)n, e);
	if (type != WIRE_GUEST)
		return error_set(e, -EPROTO, "the daemon sent a message of type %d", type);
	r = take_row(rows, buf, (size_t)n, e);
	return r < 0 ? r : 1;
}

static int ask(const char *socket, const struct request *q, struct rows *rows, struct error *e)
{
	_cleanup_close_ int sock = connect_daemon(socket, e);
	int r;

	if (sock < 0)
		return sock;
	r = send_request(sock, WIRE_PS, q, NULL, 0, e);
	if (r < 0)
		return r;
	do
		r = take_message(rows, sock, e);
	while (r > 0);
	return r;
}

/* All or nothing. */
static int ask_whole(const char *socket, const struct request *q, struct rows *ret, struct error *e)
{
	struct rows rows = ROWS_NULL;
	int r = ask(socket, q, &rows, e);

	if (r < 0) {
		rows_free(&rows);
		return r;
	}
	*ret = rows;
	return 0;
}

int rows_ask(const char *socket, const char *target, struct rows *ret, struct error *e)
{
	struct request q;

	request_clear(&q);
	if (target && !name_valid(target)) {
		*ret = ROWS_NULL;
		return 0;
	}
	if (target)
		strcpy(q.target, target);
	return ask_whole(socket, &q, ret, e);
}

int rows_ask_brief(const char *socket, struct rows *ret, struct error *e)
{
	struct request q;

	request_clear(&q);
	q.brief = 1;
	return ask_whole(socket, &q, ret, e);
}

/* ---- choosing ---- */

static int is_called(const struct guest_row *row, const char *target)
{
	return strcmp(row->id, target) == 0 || strcmp(row->name, target) == 0;
}

static int is_one_of(const struct guest_row *row, char *const targets[])
{
	while (*targets && !is_called(row, *targets))
		targets++;
	return *targets != NULL;
}

void rows_drop_slots(struct rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].caller_uid != ROW_NO_CALLER)
			rows->row[n++] = rows->row[i];
	rows->n = n;
}

int rows_have(const struct rows *rows, const char *target)
{
	size_t i = 0;

	while (i < rows->n && !is_called(&rows->row[i], target))
		i++;
	return i < rows->n;
}

void rows_choose(struct rows *rows, char *const targets[])
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++)
		if (is_one_of(&rows->row[i], targets))
			rows->row[n++] = rows->row[i];
	rows->n = n;
}

int rows_complain_of_none(const struct rows *rows, char *const targets[])
{
	int missing = 0;

	for (; *targets; targets++) {
		struct error e;

		if (rows_have(rows, *targets))
			continue;
		error_set(&e, -ENOENT, "there is no guest \"%.72s\"", *targets);
		complain(e.text);
		missing = 1;
	}
	return missing;
}

/* ---- showing ---- */

const char *row_state(const struct guest_row *row)
{
	return row->state < GUEST_STATE_COUNT ? guest_state_names[row->state] : "unknown";
}

const char *row_scope(const struct guest_row *row)
{
	const char *slash = strrchr(row->cgroup, '/');

	return slash ? slash + 1 : "";
}

static json_t *optional_text(const char *text)
{
	char shown[4 * sizeof(((struct guest_row *)0)->cgroup)];

	return text[0] ? json_string(text_escape(text, shown, sizeof(shown))) : json_null();
}

static json_t *optional_number(uint64_t value, uint64_t unknown)
{
	return value == unknown ? json_null() : json_integer((json_int_t)value);
}

static json_t *memory_max(const struct guest_row *row)
{
	uint64_t max = row->limits.value[LIMIT_MEMORY];

	return max == LIMIT_INFINITY ? json_string("max") : optional_number(max, LIMIT_UNSET);
}

static json_t *row_json(const struct guest_row *row)
{
	const struct {
		const char *key;
		json_t *value;
	} members[] = {
		{ "id", optional_text(row->id) },
		{ "name", optional_text(row->name) },
		{ "command", optional_text(row->command) },
		{ "state", json_string(row_state(row)) },
		{ "uid", optional_number(row->uid, 0) },
		{ "caller_uid", optional_number(row->caller_uid, ROW_NO_CALLER) },
		{ "main_pid", optional_number(row->main_pid, 0) },
		{ "started_usec", optional_number(row->started_usec, 0) },
		{ "profile", optional_text(row->profile) },
		{ "scope", optional_text(row_scope(row)) },
		{ "cgroup", optional_text(row->cgroup) },
		{ "memory_bytes", optional_number(row->memory_bytes, UINT64_MAX) },
		{ "memory_peak_bytes", optional_number(row->memory_peak, UINT64_MAX) },
		{ "memory_max_bytes", memory_max(row) },
		{ "pids", optional_number(row->pids, UINT64_MAX) },
		{ "cpu_usec", optional_number(row->cpu_usec, UINT64_MAX) },
		{ "limits", limits_json(&row->limits) },
	};
	json_t *object = json_object();
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		failed |= json_object_set_new(object, members[i].key, members[i].value);
	if (!failed)
		return object;
	json_decref(object);
	return NULL;
}

int rows_print_json(const struct rows *rows)
{
	json_t *root = json_object(), *guests = json_array();
	_cleanup_free_ char *text = NULL;
	int failed = json_object_set_new(root, "schema", json_integer(ROWS_SCHEMA));

	for (size_t i = 0; i < rows->n; i++)
		failed |= json_array_append_new(guests, row_json(&rows->row[i]));
	failed |= json_object_set_new(root, "guests", guests);
	text = failed ? NULL : json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text ? puts(text) < 0 ? -EIO : 0 : -ENOMEM;
}

/* Most rows are of the same user as the one before: the last answer is kept. */
static const struct passwd *find_user(uint32_t uid)
{
	static const struct passwd *user;
	static uint32_t of = ROW_NO_CALLER;

	if (uid != of)
		user = getpwuid(uid);
	of = uid;
	return user;
}

const char *user_text(uint32_t uid, char *buf, size_t size)
{
	const struct passwd *user = uid == ROW_NO_CALLER ? NULL : find_user(uid);

	if (user)
		return escape_for(STDOUT_FILENO, user->pw_name, buf, size);
	snprintf(buf, size, uid == ROW_NO_CALLER ? "-" : "%" PRIu32, uid);
	return buf;
}
