/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/explain.h"

#include <errno.h>
#include <stdio.h>

#include "common/fd.h"
#include "governor/connect.h"

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

static void print_limit(const struct request *q, const struct explanation *x, enum limit limit)
{
	const struct limit_info *info = &limit_table[limit];
	uint64_t value = x->limits.value[limit];
	char own[32], most[32], kernel[64], origin[32] = "[defaults]";

	if (q->limits.value[limit] != LIMIT_UNSET)
		snprintf(origin, sizeof(origin), "--%s", info->name);
	printf("%-10s %-10s %-12s %-10s %s\n", info->name,
	       unit_format(info->unit, value, own, sizeof(own)), origin,
	       unit_format(info->unit, x->ceiling.value[limit], most, sizeof(most)),
	       limit_kernel_text(limit, value, kernel, sizeof(kernel)));
}

int explain(const char *socket, const struct request *q, struct error *e)
{
	struct explanation x = { .access = "" };
	int r = ask(socket, q, &x, e);

	if (r < 0)
		return r;
	printf("%-10s %-10s %-12s %-10s %s\n", "LIMIT", "VALUE", "FROM", "AT MOST",
	       "THE KERNEL IS TOLD");
	for (int i = 0; i < LIMIT_COUNT; i++)
		print_limit(q, &x, (enum limit)i);
	printf("\nYou fall under [%s]. Profile %s: nothing reaches a network, loopback included.\n",
	       x.access, x.profile);
	return 0;
}
