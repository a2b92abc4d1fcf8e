/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/lookup.h"

#include <linux/netfilter/nf_tables.h>
#include <string.h>

#define WORD 4 /* every part of a concatenation fills whole registers */

/* What is found while nothing certain is. */
struct search {
	enum ternary answer;
	const struct foreign_element *element;
};

static void note(struct search *s, enum ternary a, const struct foreign_element *element)
{
	if (a == ANSWER_NO || s->answer == ANSWER_YES)
		return;
	*s = (struct search){ a, element };
}

/* How many elements are not behind @key. */
static size_t count_up_to(const struct foreign_set *s, struct nest key)
{
	size_t low = 0, high = s->n_elements;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (foreign_compare_keys(s, s->elements[middle].key, key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_same(struct nest a, struct nest b)
{
	return a.len == b.len && a.len > 0 && memcmp(a.data, b.data, a.len) == 0;
}

/* ---- plain sets ---- */

static enum ternary lookup_plain(const struct foreign_set *s, struct bits value, struct nest never,
				 struct search *found)
{
	struct nest key = { value.data, value.len };
	size_t n;

	if (bits_known(value)) {
		n = count_up_to(s, key);
		if (n > 0 && is_same(s->elements[n - 1].key, key))
			note(found, ANSWER_YES, &s->elements[n - 1]);
		return found->answer;
	}
	for (size_t i = 0; i < s->n_elements; i++) {
		const struct foreign_element *element = &s->elements[i];

		if (element->key.len == value.len && !is_same(element->key, never))
			note(found, bits_equal(value, element->key.data), element);
	}
	return found->answer;
}

/* ---- intervals: starts and ends in ascending order ---- */

static const struct foreign_element *start_before(const struct foreign_set *s, size_t n)
{
	const struct foreign_element *element = n > 0 ? &s->elements[n - 1] : NULL;

	return element && element->key.len > 0 && !(element->flags & NFT_SET_ELEM_INTERVAL_END)
		       ? element
		       : NULL;
}

static enum ternary lookup_interval(const struct foreign_set *s, struct bits value,
				    struct search *found)
{
	uint8_t least[BITS_MAX], most[BITS_MAX];
	const struct foreign_element *element;
	size_t from, to;

	bits_least(value, least);
	bits_most(value, most);
	from = count_up_to(s, (struct nest){ least, value.len });
	to = count_up_to(s, (struct nest){ most, value.len });
	element = start_before(s, from);
	if (from != to)
		note(found, ANSWER_MAYBE, NULL);
	else if (element)
		note(found, ANSWER_YES, element);
	return found->answer;
}

/* ---- concatenations of intervals ---- */

static enum ternary part_within(struct bits value, const struct foreign_element *element, size_t at,
				size_t len)
{
	struct nest end = element->key_end.len ? element->key_end : element->key;
	struct bits part = { value.data + at, value.known + at, len };

	return bits_within(part, (const uint8_t *)element->key.data + at,
			   (const uint8_t *)end.data + at);
}

/* The lengths of the parts; the whole as one where there are none. */
static enum ternary is_inside(struct bits value, const struct foreign_element *element,
			      struct nest lengths)
{
	enum ternary a = ANSWER_YES;
	const struct nlattr *attr;
	size_t at = 0;

	if (element->key.len != value.len ||
	    (element->key_end.len && element->key_end.len != value.len))
		return element->flags & NFT_SET_ELEM_CATCHALL ? ANSWER_NO : ANSWER_MAYBE;
	while ((attr = nest_next(&lengths)) && a != ANSWER_NO) {
		size_t len = nest_u32(nest_of(attr), NFTA_SET_FIELD_LEN, 0);

		if (len == 0 || len > value.len || at > value.len - len)
			return ANSWER_MAYBE;
		a = answer_and(a, part_within(value, element, at, len));
		at += (len + WORD - 1) / WORD * WORD;
	}
	return at ? a : part_within(value, element, 0, value.len);
}

static enum ternary lookup_boxes(const struct foreign_set *s, struct bits value,
				 struct nest lengths, struct search *found)
{
	for (size_t i = 0; i < s->n_elements && found->answer != ANSWER_YES; i++)
		note(found, is_inside(value, &s->elements[i], lengths), &s->elements[i]);
	return found->answer;
}

/* ---- all of them ---- */

/* What nothing else contains. It has no key, so it comes first. */
static void lookup_catchall(const struct foreign_set *s, struct search *found)
{
	if (found->answer == ANSWER_NO && s->n_elements > 0 &&
	    (s->elements[0].flags & NFT_SET_ELEM_CATCHALL))
		note(found, ANSWER_YES, &s->elements[0]);
}

enum ternary lookup(const struct foreign_set *s, struct bits value, struct nest never,
		    const struct foreign_element **ret_element)
{
	struct nest lengths = nest_get(nest_get(s->raw, NFTA_SET_DESC), NFTA_SET_DESC_CONCAT);
	struct search found = { ANSWER_NO, NULL };

	if (value.len == 0)
		return ANSWER_MAYBE;
	if (!(s->flags & NFT_SET_INTERVAL))
		lookup_plain(s, value, never, &found);
	else if (lengths.len > 0)
		lookup_boxes(s, value, lengths, &found);
	else
		lookup_interval(s, value, &found);
	lookup_catchall(s, &found);
	if (found.answer == ANSWER_YES)
		*ret_element = found.element;
	return found.answer;
}
