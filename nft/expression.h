/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The expressions that our rules are made of, each NULL when out of memory. They pass values on in
 * register 1; a concatenation goes on in the 4-byte registers behind it.
 */
#pragma once

#include <stdint.h>
#include <stdio.h> /* libnftnl's header needs FILE */

#include <libnftnl/expr.h>

/* Where a later part of a concatenated key goes, in words of 4 bytes from register 1 on. */
#define REGISTER_WORD(n) (NFT_REG32_00 + (n))

struct nftnl_expr *expr_meta(uint32_t key);
struct nftnl_expr *expr_socket_cgroup(uint32_t level);
struct nftnl_expr *expr_payload(uint32_t base, uint32_t offset, uint32_t len, uint32_t reg);
struct nftnl_expr *expr_and_u8(uint8_t mask);
struct nftnl_expr *expr_equal(const void *value, uint32_t len);
struct nftnl_expr *expr_counter(void);

/* The set's id only matters within the transaction. */
struct nftnl_expr *expr_lookup(const char *set, uint32_t id, uint32_t flags);
struct nftnl_expr *expr_lookup_verdict(const char *map, uint32_t id);

/* update @set { KEY @with }; takes @with over. */
struct nftnl_expr *expr_update(const char *set, uint32_t id, struct nftnl_expr *with);

/* limit rate @rate/second burst @burst packets */
struct nftnl_expr *expr_limit(uint64_t rate, uint32_t burst);

struct nftnl_expr *expr_log(const char *prefix, uint16_t group);

/* @code counts for NFT_REJECT_ICMPX_UNREACH. */
struct nftnl_expr *expr_reject(uint32_t type, uint8_t code);

/* @chain is for a jump, else NULL. */
struct nftnl_expr *expr_verdict(int verdict, const char *chain);
