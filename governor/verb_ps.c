/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov ps`.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/connect.h"
#include "governor/verb.h"

#define PS_SCHEMA 1

enum { PS_JSON, PS_OPTIONS };

static const struct option ps_options[PS_OPTIONS] = {
	[PS_JSON] = { NULL, "json", NULL, "print one JSON object instead of a table" },
};

struct rows {
	struct guest_row *row;
	size_t n;
};

static void rows_free(struct rows *rows)
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

static int ask_rows(const char *socket, struct rows *rows, struct error *e)
{
	_cleanup_close_ int sock = connect_daemon(socket, e);
	struct request q;
	int r;

	if (sock < 0)
		return sock;
	request_clear(&q);
	r = send_request(sock, WIRE_PS, &q, NULL, 0, e);
	if (r < 0)
		return r;
	do
		r = take_message(rows, sock, e);
	while (r > 0);
	return r;
}

/* ---- the table ---- */

enum column {
	COLUMN_ID,
	COLUMN_NAME,
	COLUMN_CALLER,
	COLUMN_UID,
	COLUMN_STATE,
	COLUMN_AGE,
	COLUMN_MEMORY,
	COLUMN_COMMAND,
	COLUMN_COUNT,
};

struct line {
	char cell[COLUMN_COUNT][4 * COMMAND_TEXT_MAX + 1];
};

static const struct line header = { {
	"ID",
	"NAME",
	"CALLER",
	"UID",
	"STATE",
	"AGE",
	"MEMORY",
	"COMMAND",
} };

static void cell_text(const char *text, char *cell)
{
	escape_for(STDOUT_FILENO, text[0] ? text : "-", cell, sizeof(header.cell[0]));
}

static void cell_caller(uint32_t uid, char *cell)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		cell_text(user->pw_name, cell);
	else
		sprintf(cell, "%" PRIu32, uid);
}

static void cell_age(uint64_t started_usec, char *cell)
{
	uint64_t now = (uint64_t)time(NULL) * USEC_PER_SEC;
	uint64_t seconds = now > started_usec ? (now - started_usec) / USEC_PER_SEC : 0;

	if (started_usec == 0)
		strcpy(cell, "-");
	else
		unit_format(UNIT_DURATION, seconds * USEC_PER_SEC, cell, sizeof(header.cell[0]));
}

static void cell_memory(const struct guest_row *row, char *cell)
{
	char now[32] = "?", max[32];

	if (row->memory_bytes != UINT64_MAX)
		unit_format(UNIT_SIZE, row->memory_bytes, now, sizeof(now));
	sprintf(cell, "%s/%s", now, unit_format(UNIT_SIZE, row->memory_max, max, sizeof(max)));
}

static const char *state_name(const struct guest_row *row)
{
	return row->state < GUEST_STATE_COUNT ? guest_state_names[row->state] : "unknown";
}

static void fill_line(struct line *line, const struct guest_row *row)
{
	cell_text(row->id, line->cell[COLUMN_ID]);
	cell_text(row->name, line->cell[COLUMN_NAME]);
	cell_caller(row->caller_uid, line->cell[COLUMN_CALLER]);
	sprintf(line->cell[COLUMN_UID], "%" PRIu32, row->uid);
	cell_text(state_name(row), line->cell[COLUMN_STATE]);
	cell_age(row->started_usec, line->cell[COLUMN_AGE]);
	cell_memory(row, line->cell[COLUMN_MEMORY]);
	cell_text(row->command, line->cell[COLUMN_COMMAND]);
}

static void measure(const struct line *line, int width[COLUMN_COUNT])
{
	for (int i = 0; i < COLUMN_COUNT; i++)
		if ((int)strlen(line->cell[i]) > width[i])
			width[i] = (int)strlen(line->cell[i]);
}

static void print_line(const struct line *line, const int width[COLUMN_COUNT])
{
	for (int i = 0; i < COLUMN_COUNT - 1; i++)
		printf("%-*s  ", width[i], line->cell[i]);
	puts(line->cell[COLUMN_COMMAND]);
}

static int print_table(const struct rows *rows)
{
	_cleanup_free_ struct line *lines = calloc(rows->n + 1, sizeof(*lines));
	int width[COLUMN_COUNT] = {};

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i <= rows->n; i++) {
		if (i == 0)
			lines[i] = header;
		else
			fill_line(&lines[i], &rows->row[i - 1]);
		measure(&lines[i], width);
	}
	for (size_t i = 0; i <= rows->n; i++)
		print_line(&lines[i], width);
	return 0;
}

/* ---- JSON ---- */

static json_t *optional_text(const char *text)
{
	char shown[4 * COMMAND_TEXT_MAX + 1];

	return text[0] ? json_string(text_escape(text, shown, sizeof(shown))) : json_null();
}

static json_t *optional_number(uint64_t value, uint64_t unknown)
{
	return value == unknown ? json_null() : json_integer((json_int_t)value);
}

static json_t *row_json(const struct guest_row *row)
{
	json_t *max = row->memory_max == LIMIT_INFINITY ? json_string("max")
							: json_integer((json_int_t)row->memory_max);

	return json_pack("{so so so ss sI sI so so so so}", "id", optional_text(row->id), "name",
			 optional_text(row->name), "command", optional_text(row->command), "state",
			 state_name(row), "uid", (json_int_t)row->uid, "caller_uid",
			 (json_int_t)row->caller_uid, "main_pid", optional_number(row->main_pid, 0),
			 "started_usec", optional_number(row->started_usec, 0), "memory_bytes",
			 optional_number(row->memory_bytes, UINT64_MAX), "memory_max_bytes", max);
}

static int print_json(const struct rows *rows)
{
	json_t *root = json_object(), *guests = json_array();
	_cleanup_free_ char *text = NULL;
	int failed = json_object_set_new(root, "schema", json_integer(PS_SCHEMA));

	for (size_t i = 0; i < rows->n; i++)
		failed |= json_array_append_new(guests, row_json(&rows->row[i]));
	failed |= json_object_set_new(root, "guests", guests);
	text = failed ? NULL : json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text ? puts(text) < 0 ? -EIO : 0 : -ENOMEM;
}

static int ps_main(const char *socket, const char *const values[], char **operands)
{
	_cleanup_(rows_free) struct rows rows = {};
	struct error e;
	int r;

	if (operands[0]) {
		complain("ps takes no arguments: see harpe-gov ps --help");
		return verb_ps.usage_status;
	}
	r = ask_rows(socket, &rows, &e);
	if (r == 0) {
		r = values[PS_JSON] ? print_json(&rows) : print_table(&rows);
		if (r < 0)
			error_errno(&e, r, "cannot print the list of guests");
	}
	if (r < 0)
		complain(e.text);
	return r < 0;
}

const struct verb verb_ps = {
	.name = "ps",
	.operands = "[--json]",
	.summary = "List the guests that are starting, running or ending",
	.details = "The guests are your own; root sees those of everybody.\n"
		   "MEMORY is what is in use and the limit.\n",
	.set = { ps_options, PS_OPTIONS, 0 },
	.usage_status = 2,
	.main = ps_main,
};
