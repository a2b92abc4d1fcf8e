/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two prefixes are either disjoint or one contains the other. So the entries, sorted, are a tree
 * that is walked with a stack of the prefixes that contain the present one; each level knows the
 * ports that are allowed at it and above. A prefix gives boxes for those of its ports that no level
 * above has.
 */
#include "nft/cover.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"

#define PORTS	   65536
#define WORD_BITS  64
#define LEVELS_MAX 130 /* prefixes of 0 to 128 bits, and nothing above them */

typedef uint64_t port_map[PORTS / WORD_BITS];

struct level {
	const struct allow *prefix;
	port_map ports;
};

struct cover {
	struct box *boxes;
	size_t n, room, max;
	struct level *levels; /* of LEVELS_MAX; the first contains everything and allows nothing */
	size_t depth;	      /* index of the present one */
};

static const struct allow loopbacks[] = {
	{ .family = AF_INET, .prefix = 8, .address = { 127 } },
	{ .family = AF_INET6, .prefix = 128, .address = { [15] = 1 } },
};

static bool contains(const struct allow *outer, const struct allow *inner)
{
	unsigned int bytes = outer->prefix / 8, bits = outer->prefix % 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits);

	if (outer->family != inner->family || outer->prefix > inner->prefix ||
	    memcmp(outer->address, inner->address, bytes) != 0)
		return false;
	return bits == 0 || ((outer->address[bytes] ^ inner->address[bytes]) & mask) == 0;
}

static bool is_loopback(const struct allow *a)
{
	return contains(&loopbacks[0], a) || contains(&loopbacks[1], a);
}

/* Trees are apart: of a family, of a protocol, loopback and the rest. */
static int compare_trees(const struct allow *a, const struct allow *b)
{
	if (a->family != b->family)
		return a->family == AF_INET ? -1 : 1;
	if (a->protocol != b->protocol)
		return a->protocol < b->protocol ? -1 : 1;
	return (int)is_loopback(a) - (int)is_loopback(b);
}

/* Within a tree what contains comes first. */
static int compare_entries(const void *x, const void *y)
{
	const struct allow *a = x, *b = y;
	int r = compare_trees(a, b);

	if (r == 0)
		r = memcmp(a->address, b->address, sizeof(a->address));
	return r ? r : (int)a->prefix - (int)b->prefix;
}

/* Maps of ports */

static void set_ports(uint64_t *map, unsigned int first, unsigned int last)
{
	while (first <= last) {
		unsigned int word = first / WORD_BITS, bit = first % WORD_BITS;
		unsigned int n = WORD_BITS - bit;

		if (n > last - first + 1)
			n = last - first + 1;
		map[word] |= (n == WORD_BITS ? UINT64_MAX : (UINT64_C(1) << n) - 1) << bit;
		first += n;
	}
}

/* The first port from @from on that is (not) in @map, PORTS when there is none. */
static unsigned int next_port(const uint64_t *map, bool in, unsigned int from)
{
	while (from < PORTS) {
		uint64_t word =
			(in ? map[from / WORD_BITS] : ~map[from / WORD_BITS]) >> from % WORD_BITS;

		if (word)
			return from + (unsigned int)__builtin_ctzll(word);
		from += WORD_BITS - from % WORD_BITS;
	}
	return PORTS;
}

/* Boxes */

static int add_box(struct cover *c, const struct box *box)
{
	struct box *p;

	if (c->n == c->max)
		return -E2BIG;
	if (c->n == c->room) {
		p = reallocarray(c->boxes, c->room ? 2 * c->room : 16, sizeof(*p));
		if (!p)
			return -ENOMEM;
		c->boxes = p;
		c->room = c->room ? 2 * c->room : 16;
	}
	c->boxes[c->n++] = *box;
	return 0;
}

static void last_address(const struct allow *a, uint8_t *ret)
{
	unsigned int bits = a->family == AF_INET ? 32 : 128;

	memcpy(ret, a->address, ALLOW_ADDRESS_MAX);
	for (unsigned int bit = a->prefix; bit < bits; bit++)
		ret[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

/* The address before (@step -1) or behind (1). */
static void step_address(uint8_t *address, uint8_t family, int step)
{
	for (int i = family == AF_INET ? 3 : 15; i >= 0; i--) {
		address[i] = (uint8_t)(address[i] + step);
		if (address[i] != (step > 0 ? 0 : 0xff))
			return;
	}
}

/* All of @whole but @hole, which lies in it. */
static int add_around(struct cover *c, const struct box *whole, const struct allow *hole)
{
	struct box before = *whole, behind = *whole;
	int r = 0;

	memcpy(before.last, hole->address, sizeof(before.last));
	step_address(before.last, hole->family, -1);
	last_address(hole, behind.first);
	step_address(behind.first, hole->family, 1);
	if (memcmp(whole->first, hole->address, sizeof(whole->first)) < 0)
		r = add_box(c, &before);
	if (r == 0 && memcmp(behind.first, whole->last, sizeof(whole->last)) <= 0)
		r = add_box(c, &behind);
	return r;
}

static int add_ports(struct cover *c, const struct allow *a, unsigned int first, unsigned int last)
{
	struct box box = {
		.family = a->family,
		.protocol = a->protocol,
		.first_port = (uint16_t)first,
		.last_port = (uint16_t)last,
	};

	memcpy(box.first, a->address, sizeof(box.first));
	last_address(a, box.last);
	for (size_t i = 0; i < ARRAY_SIZE(loopbacks); i++)
		if (contains(a, &loopbacks[i]) && !is_loopback(a))
			return add_around(c, &box, &loopbacks[i]);
	return add_box(c, &box);
}

/* The tree */

static void find_level(struct cover *c, const struct allow *a)
{
	struct level *level;

	while (c->depth > 0 && (compare_trees(c->levels[c->depth].prefix, a) != 0 ||
				!contains(c->levels[c->depth].prefix, a)))
		c->depth--;
	level = &c->levels[c->depth + 1];
	level->prefix = a;
	memcpy(level->ports, c->levels[c->depth].ports, sizeof(level->ports));
	c->depth++;
}

/* @n entries with the same prefix. */
static int cover_prefix(struct cover *c, const struct allow *a, size_t n)
{
	const uint64_t *above;
	port_map own = { 0 };
	unsigned int first, last;
	int r = 0;

	find_level(c, a);
	above = c->levels[c->depth - 1].ports;
	for (size_t i = 0; i < n; i++) {
		set_ports(own, a[i].first_port, a[i].last_port);
		set_ports(c->levels[c->depth].ports, a[i].first_port, a[i].last_port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		own[i] &= ~above[i];
	for (first = next_port(own, true, 0); first < PORTS && r == 0;
	     first = next_port(own, true, last)) {
		last = next_port(own, false, first);
		r = add_ports(c, a, first, last - 1);
	}
	return r;
}

static int cover_all(struct cover *c, const struct allow *a, size_t n)
{
	size_t same;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i += same) {
		for (same = 1; i + same < n && compare_entries(&a[i], &a[i + same]) == 0; same++)
			;
		r = cover_prefix(c, &a[i], same);
	}
	return r;
}

int cover(const struct allow *allow, size_t n, size_t max, struct box **ret, size_t *ret_n)
{
	_cleanup_free_ struct level *levels = calloc(LEVELS_MAX, sizeof(*levels));
	_cleanup_free_ struct allow *sorted = calloc(n ? n : 1, sizeof(*sorted));
	struct cover c = { .levels = levels, .max = max };
	int r = -ENOMEM;

	if (levels && sorted) {
		if (n)
			memcpy(sorted, allow, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), compare_entries);
		r = cover_all(&c, sorted, n);
	}
	if (r < 0) {
		free(c.boxes);
		return r;
	}
	*ret = c.boxes;
	*ret_n = c.n;
	return 0;
}
