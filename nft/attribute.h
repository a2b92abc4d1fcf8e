/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Netlink attributes, read without trust: what is not there, too short or of another length is
 * simply absent. Nothing is copied; what is returned lives as long as the message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

/* A run of bytes: attributes one after the other, or the value of one. */
struct nest {
	const void *data; /* may be NULL when len is 0 */
	size_t len;
};

#define NEST_NULL ((struct nest){ .data = NULL })

/* What @attr contains; empty for NULL. */
struct nest nest_of(const struct nlattr *attr);

/* The attribute at the front of @rest, which moves behind it; NULL at the end. */
const struct nlattr *nest_next(struct nest *rest);

/* What the first attribute of @type contains; empty when there is none. */
struct nest nest_get(struct nest n, uint16_t type);

bool nest_has(struct nest n, uint16_t type);

/* Numbers in network byte order; @otherwise when there is none of that length. */
uint8_t nest_u8(struct nest n, uint16_t type, uint8_t otherwise);
uint16_t nest_u16(struct nest n, uint16_t type, uint16_t otherwise);
uint32_t nest_u32(struct nest n, uint16_t type, uint32_t otherwise);
uint64_t nest_u64(struct nest n, uint16_t type, uint64_t otherwise);

/* NULL unless it ends with NUL. */
const char *nest_string(struct nest n, uint16_t type);

/* The bytes in a struct nft_data: NFTA_DATA_VALUE in the attribute of @type. */
struct nest nest_value(struct nest n, uint16_t type);
