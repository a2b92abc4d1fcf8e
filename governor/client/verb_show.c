/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov show`: all that is known of live guests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "governor/client/rows.h"
#include "governor/client/verb.h"

enum { SHOW_JSON, SHOW_OPTIONS };

static const struct option show_options[SHOW_OPTIONS] = {
	[SHOW_JSON] = { .name = "json", .help = "print one JSON object instead" },
};

#define VALUE_MAX (4 * PATH_TEXT_MAX)

/* ---- what it is ---- */

static void print_text(const char *key, const char *text)
{
	char shown[VALUE_MAX];

	printf("%-10s %s\n", key,
	       escape_for(STDOUT_FILENO, text[0] ? text : "-", shown, sizeof(shown)));
}

/* 0 = not yet. */
static void print_number(const char *key, uint32_t n)
{
	char text[16] = "";

	if (n)
		snprintf(text, sizeof(text), "%" PRIu32, n);
	print_text(key, text);
}

static void print_caller(uint32_t uid)
{
	char number[16], name[128], text[160];

	snprintf(number, sizeof(number), "%" PRIu32, uid);
	user_text(uid, name, sizeof(name));
	if (uid == ROW_NO_CALLER || strcmp(name, number) == 0)
		snprintf(text, sizeof(text), "%s", name);
	else
		snprintf(text, sizeof(text), "%s (%s)", name, number);
	print_text("caller", text);
}

static void print_started(uint64_t usec)
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	char text[64] = "";
	struct tm tm;

	if (usec && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm);
	print_text("started", text);
}

/* ---- its limits ---- */

struct used {
	uint64_t now, most; /* UINT64_MAX = not known, or nothing that is counted */
};

static uint64_t age_usec(const struct guest_row *row)
{
	uint64_t now = (uint64_t)time(NULL) * USEC_PER_SEC;

	if (row->started_usec == 0)
		return UINT64_MAX;
	return now > row->started_usec ? (now - row->started_usec) / USEC_PER_SEC * USEC_PER_SEC
				       : 0;
}

/* The others are not counted. */
static void fill_used(const struct guest_row *row, struct used used[LIMIT_COUNT])
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		used[i] = (struct used){ UINT64_MAX, UINT64_MAX };
	used[LIMIT_MEMORY] = (struct used){ row->memory_bytes, row->memory_peak };
	used[LIMIT_PIDS].now = row->pids;
	used[LIMIT_TIME].now = age_usec(row);
	used[LIMIT_CPU_TIME].now = row->cpu_usec;
}

static void print_limit(enum limit limit, uint64_t value, const struct used *used)
{
	const struct limit_info *info = &limit_table[limit];
	char max[32] = "-", now[32] = "-", most[32];

	if (value != LIMIT_UNSET) /* else this kernel has no such limit */
		unit_format(info->unit, value, max, sizeof(max));
	if (used->now != UINT64_MAX)
		unit_format(info->unit, used->now, now, sizeof(now));
	printf("%-10s %-10s %s", info->name, max, now);
	if (used->most != UINT64_MAX)
		printf(" (peak %s)", unit_format(info->unit, used->most, most, sizeof(most)));
	putchar('\n');
}

static void print_limits(const struct guest_row *row)
{
	struct used used[LIMIT_COUNT];

	fill_used(row, used);
	printf("\n%-10s %-10s %s\n", "LIMIT", "IN FORCE", "USED");
	for (int i = 0; i < LIMIT_COUNT; i++)
		print_limit((enum limit)i, row->limits.value[i], &used[i]);
}

static void print_guest(const struct guest_row *row)
{
	print_text("id", row->id);
	print_text("name", row->name);
	print_text("command", row->command);
	print_text("state", row_state(row));
	print_caller(row->caller_uid);
	print_number("uid", row->uid);
	print_number("main pid", row->main_pid);
	print_started(row->started_usec);
	print_text("profile", row->profile);
	print_text("scope", row_scope(row));
	print_text("cgroup", row->cgroup);
	print_limits(row);
}

/* ---- the verb ---- */

static int print(const struct rows *rows, int as_json)
{
	if (as_json)
		return rows_print_json(rows);
	for (size_t i = 0; i < rows->n; i++) {
		if (i > 0)
			putchar('\n');
		print_guest(&rows->row[i]);
	}
	return 0;
}

static int show_main(const char *socket, const char *const values[], char **targets)
{
	_cleanup_(rows_free) struct rows rows = ROWS_NULL;
	struct error e;
	int missing = 0, r;

	if (!targets[0]) {
		complain("show needs names or ids of guests: see harpe-gov ps");
		return verb_show.usage_status;
	}
	r = rows_ask(socket, targets[1] ? NULL : targets[0], &rows, &e);
	if (r == 0) {
		missing = rows_complain_of_none(&rows, targets);
		rows_choose(&rows, targets);
		r = print(&rows, values[SHOW_JSON] != NULL);
		if (r < 0)
			error_errno(&e, r, "cannot print the guests");
	}
	if (r < 0)
		complain(e.text);
	return r < 0 || missing;
}

const struct verb verb_show = {
	.name = "show",
	.operands = "[--json] ID|NAME...",
	.summary = "Show all that is known of guests of yours",
	.details = "Root sees the guests of everybody.\n"
		   "Exit status: 1 when one was not found.\n",
	.set = { show_options, SHOW_OPTIONS, 0 },
	.usage_status = 2,
	.main = show_main,
};
