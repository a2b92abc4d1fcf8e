/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ruleset of the host, as messages: whatever is in them is taken in or refused, and what was
 * taken in can be looked at, written down and walked through.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netfilter/nf_tables.h>

#include "common/fd.h"
#include "nft/channel.h"
#include "nft/foreign.h"
#include "nft/text.h"
#include "nft/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sum; /* so that nothing is optimized away */

static void use(struct nest n)
{
	for (size_t i = 0; i < n.len; i++)
		sum += ((const uint8_t *)n.data)[i];
}

static void use_exprs(struct nest rest)
{
	struct foreign_expr x;

	sum += foreign_packets(rest);
	while (foreign_next_expr(&rest, &x)) {
		sum += strlen(x.name);
		use(x.data);
	}
}

static void use_set(const struct foreign_set *s)
{
	for (size_t i = 0; i < s->n_elements; i++) {
		const struct foreign_element *element = &s->elements[i];
		const char *chain = NULL;
		int code;

		use(element->key);
		use(element->key_end);
		sum += foreign_element_packets(element);
		if (foreign_verdict(nest_get(element->raw, NFTA_SET_ELEM_DATA), &code, &chain) &&
		    chain)
			sum += strlen(chain);
	}
}

static void use_all(struct foreign *f)
{
	for (size_t i = 0; i < f->n_chains; i++) {
		struct foreign_chain *c = &f->chains[i];

		if (c->table >= f->n_tables || !foreign_find_chain(f, c->table, c->name))
			abort();
		for (size_t j = 0; j < c->n_rules; j++)
			use_exprs(c->rules[j].exprs);
	}
	for (size_t i = 0; i < f->n_sets; i++)
		use_set(&f->sets[i]);
}

static void write_down(struct foreign *f)
{
	static const struct text_cgroup cgroup = { 1, "a.slice" };
	const struct text_names names = { &cgroup, 1 };
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; out && i < f->n_tables; i++)
		text_table(out, f, &f->tables[i], &names, true);
	if (out)
		fclose(out);
	sum += size;
}

static void walk_through(struct foreign *f)
{
	static const struct packet packets[] = {
		{ .family = AF_INET, .protocol = 17, .address = { 127, 0, 0, 1 }, .uid = 90001 },
		{ .family = AF_INET6, .protocol = 6, .not_in = 1, .not_in_level = 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		_cleanup_(walk_free) struct walk w = WALK_NULL;

		if (walk(f, &packets[i], &w) < 0)
			return;
		if (w.decisive > w.n_steps ||
		    (w.outcome == WALK_ACCEPT) != (w.decisive == w.n_steps))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_free_ char *buf = malloc(size ? size : 1);
	const struct nlmsghdr *nlh;
	size_t at = 0;

	if (!buf)
		return 0;
	memcpy(buf, data, size);
	while ((nlh = message_next(buf, size, &at)))
		if (foreign_take(nlh, &f) > 0)
			abort();
	use_all(&f);
	foreign_sort(&f);
	write_down(&f);
	walk_through(&f);
	return 0;
}
