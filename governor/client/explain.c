/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "governor/client/connect.h"

static int take_answer(const void *buf, size_t len, struct explanation *ret, struct error *e)
{
	struct answer refused = { .count = 0 };
	int type = wire_type(buf, len, e), r;

	if (type == WIRE_EXPLANATION)
		return wire_decode(explanation_fields, explanation_n_fields, buf, len, ret, e);
	if (type != WIRE_REFUSED)
		return type < 0 ? type : error_set(e, -EPROTO, "the daemon sent type %d", type);
	r = wire_decode(answer_fields, answer_n_fields, buf, len, &refused, e);
	return r < 0 ? r : error_set(e, -EPERM, "%s", refused.text);
}

static int ask(const char *socket, const struct request *q, struct explanation *ret,
	       struct error *e)
{
	_cleanup_close_ int sock = connect_daemon(socket, e);
	WIRE_BUFFER(buf);
	ssize_t n;
	int r = sock < 0 ? sock : send_request(sock, WIRE_EXPLAIN, q, NULL, 0, e);

	if (r < 0)
		return r;
	n = receive_answer(sock, buf, NULL, e);
	if (n == 0)
		return error_set(e, -ECONNRESET, "the daemon closed the connection");
	return n < 0 ? (int)n : take_answer(buf, (size_t)n, ret, e);
}

/* ---- the table ---- */

enum { LIMIT_NAME, VALUE, FROM, AT_MOST, AT_MOST_FROM, KERNEL, COLUMNS };

#define CELL_MAX (ORIGIN_TEXT_MAX + 1)
#define ROWS	 (LIMIT_COUNT + 1)

struct table {
	char cell[ROWS][COLUMNS][CELL_MAX];
};

static void fill_row(char row[COLUMNS][CELL_MAX], const struct explanation *x, enum limit limit)
{
	const struct limit_info *info = &limit_table[limit];
	uint64_t value = x->limits.value[limit];
	const char *from = x->origins.text[limit];

	snprintf(row[LIMIT_NAME], CELL_MAX, "%s", info->name);
	unit_format(info->unit, value, row[VALUE], CELL_MAX);
	if (strcmp(from, LIMIT_ASKED) == 0)
		snprintf(row[FROM], CELL_MAX, "--%s", info->name);
	else
		snprintf(row[FROM], CELL_MAX, "%s", from);
	unit_format(info->unit, x->ceiling.value[limit], row[AT_MOST], CELL_MAX);
	snprintf(row[AT_MOST_FROM], CELL_MAX, "%s", x->ceiling_origins.text[limit]);
	limit_kernel_text(limit, value, row[KERNEL], CELL_MAX);
}

static size_t column_width(const struct table *t, int column)
{
	size_t width = 0;

	for (int i = 0; i < ROWS; i++)
		if (strlen(t->cell[i][column]) > width)
			width = strlen(t->cell[i][column]);
	return width;
}

static void print_table(const struct table *t)
{
	for (int i = 0; i < ROWS; i++) {
		for (int j = 0; j < KERNEL; j++)
			printf("%-*s  ", (int)column_width(t, j), t->cell[i][j]);
		printf("%s\n", t->cell[i][KERNEL]);
	}
}

/* A cgroup above may allow less than what would be asked for. */
static void print_above(const struct explanation *x)
{
	char shown[32];

	for (int i = 0; i < LIMIT_COUNT; i++)
		if (x->above.text[i][0])
			printf("\n%s: %s allows no more than %s, which would be in force.\n",
			       limit_table[i].name, x->above.text[i],
			       unit_format(limit_table[i].unit, x->in_force.value[i], shown,
					   sizeof(shown)));
}

int explain(const char *socket, const struct request *q, struct error *e)
{
	struct explanation x = { .access = "" };
	struct table t = { { { "LIMIT", "VALUE", "FROM", "AT MOST", "FROM",
			       "THE KERNEL IS TOLD" } } };
	int r = ask(socket, q, &x, e);

	if (r < 0)
		return r;
	for (int i = 0; i < LIMIT_COUNT; i++)
		fill_row(t.cell[i + 1], &x, (enum limit)i);
	print_table(&t);
	print_above(&x);
	printf("\nYou fall under [%s]. Network profile %s: %s.\n", x.access, x.profile, x.network);
	return 0;
}
