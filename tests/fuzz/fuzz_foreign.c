/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ruleset of the host, as messages: whatever is in them is taken in or refused, and what was
 * taken in can be looked at.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/netfilter/nf_tables.h>

#include "common/fd.h"
#include "nft/channel.h"
#include "nft/foreign.h"

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
	return 0;
}
