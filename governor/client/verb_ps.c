/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov ps`.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "governor/client/rows.h"
#include "governor/client/verb.h"

enum { PS_JSON, PS_OPTIONS };

static const struct option ps_options[PS_OPTIONS] = {
	[PS_JSON] = { .name = "json", .help = "print one JSON object instead of a table" },
};

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

static void cell_uid(uint32_t uid, char *cell)
{
	if (uid)
		sprintf(cell, "%" PRIu32, uid);
	else
		strcpy(cell, "-");
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
	sprintf(cell, "%s/%s", now,
		unit_format(UNIT_SIZE, row->limits.value[LIMIT_MEMORY], max, sizeof(max)));
}

static void fill_line(struct line *line, const struct guest_row *row)
{
	cell_text(row->id, line->cell[COLUMN_ID]);
	cell_text(row->name, line->cell[COLUMN_NAME]);
	user_text(row->caller_uid, line->cell[COLUMN_CALLER], sizeof(line->cell[0]));
	cell_uid(row->uid, line->cell[COLUMN_UID]);
	cell_text(row_state(row), line->cell[COLUMN_STATE]);
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

static int ps_main(const char *socket, const char *const values[], char **operands)
{
	_cleanup_(rows_free) struct rows rows = ROWS_NULL;
	struct error e;
	int r;

	if (operands[0]) {
		complain("ps takes no arguments: see harpe-gov ps --help");
		return verb_ps.usage_status;
	}
	r = values[PS_JSON] ? rows_ask(socket, NULL, &rows, &e) : rows_ask_brief(socket, &rows, &e);
	if (r == 0) {
		r = values[PS_JSON] ? rows_print_json(&rows) : print_table(&rows);
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
	.summary = "List the guests that are waiting, starting, running or ending",
	.details = "The guests are your own; root sees those of everybody, and slots without one.\n"
		   "MEMORY is what is in use and the limit.\n",
	.set = { ps_options, PS_OPTIONS, 0 },
	.usage_status = 2,
	.main = ps_main,
};
