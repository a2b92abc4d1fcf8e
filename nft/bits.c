/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/bits.h"

#include <string.h>

struct bits bits_part(const struct bits_buffer *b, size_t offset, size_t len)
{
	if (offset > BITS_MAX || len > BITS_MAX - offset)
		return (struct bits){ .data = NULL };
	return (struct bits){ (uint8_t *)(uintptr_t)b->data + offset,
			      (uint8_t *)(uintptr_t)b->known + offset, len };
}

bool bits_known(struct bits b)
{
	for (size_t i = 0; i < b.len; i++)
		if (b.known[i] != 0xff)
			return false;
	return true;
}

void bits_forget(struct bits b)
{
	if (b.len == 0)
		return;
	memset(b.data, 0, b.len);
	memset(b.known, 0, b.len);
}

void bits_set(struct bits b, const void *value)
{
	if (b.len == 0)
		return;
	memcpy(b.data, value, b.len);
	memset(b.known, 0xff, b.len);
}

void bits_join(struct bits b, const void *value)
{
	for (size_t i = 0; i < b.len; i++) {
		b.known[i] &= (uint8_t) ~(b.data[i] ^ ((const uint8_t *)value)[i]);
		b.data[i] &= b.known[i];
	}
}

enum ternary bits_equal(struct bits b, const void *value)
{
	for (size_t i = 0; i < b.len; i++)
		if ((b.data[i] ^ ((const uint8_t *)value)[i]) & b.known[i])
			return ANSWER_NO;
	return bits_known(b) ? ANSWER_YES : ANSWER_MAYBE;
}

void bits_least(struct bits b, uint8_t *ret)
{
	for (size_t i = 0; i < b.len; i++)
		ret[i] = b.data[i];
}

void bits_most(struct bits b, uint8_t *ret)
{
	for (size_t i = 0; i < b.len; i++)
		ret[i] = b.data[i] | (uint8_t)~b.known[i];
}

enum ternary bits_within(struct bits b, const void *first, const void *last)
{
	uint8_t least[BITS_MAX] = { 0 }, most[BITS_MAX] = { 0 };

	bits_least(b, least);
	bits_most(b, most);
	if (memcmp(most, first, b.len) < 0 || memcmp(least, last, b.len) > 0)
		return ANSWER_NO;
	return memcmp(least, first, b.len) >= 0 && memcmp(most, last, b.len) <= 0 ? ANSWER_YES
										  : ANSWER_MAYBE;
}

enum ternary answer_not(enum ternary a)
{
	return a == ANSWER_MAYBE ? a : a == ANSWER_NO ? ANSWER_YES : ANSWER_NO;
}

enum ternary answer_and(enum ternary a, enum ternary b)
{
	if (a == ANSWER_NO || b == ANSWER_NO)
		return ANSWER_NO;
	return a == ANSWER_YES ? b : a;
}
