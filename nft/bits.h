/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes of which some bits are not known, and what can be said of them all the same. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ternary { ANSWER_NO, ANSWER_YES, ANSWER_MAYBE };

/* A bit of data counts where the same bit of known is set; elsewhere it is 0. */
struct bits {
	uint8_t *data, *known;
	size_t len;
};

/* A buffer for them. */
#define BITS_MAX 64
struct bits_buffer {
	uint8_t data[BITS_MAX], known[BITS_MAX];
};

/* The @len bytes from @offset on; empty when they are not all there. */
struct bits bits_part(const struct bits_buffer *b, size_t offset, size_t len);

bool bits_known(struct bits b);
void bits_forget(struct bits b);

/* @value is as long. */
void bits_set(struct bits b, const void *value);

/* Only what is the same stays known. */
void bits_join(struct bits b, const void *value);

/* Is it @value, which is as long? */
enum ternary bits_equal(struct bits b, const void *value);

/* Is it in first..last, byte by byte? All as long. */
enum ternary bits_within(struct bits b, const void *first, const void *last);

/* The least and the greatest that it can be. */
void bits_least(struct bits b, uint8_t *ret);
void bits_most(struct bits b, uint8_t *ret);

enum ternary answer_not(enum ternary a);

/* Both are needed. */
enum ternary answer_and(enum ternary a, enum ternary b);
