/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/expression.h"

#include <linux/netfilter/nf_tables.h>
#include <stddef.h>

struct nftnl_expr *expr_meta(uint32_t key)
{
	struct nftnl_expr *x = nftnl_expr_alloc("meta");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(x, NFTNL_EXPR_META_DREG, NFT_REG_1);
	return x;
}

struct nftnl_expr *expr_socket_cgroup(uint32_t level)
{
	struct nftnl_expr *x = nftnl_expr_alloc("socket");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2);
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_LEVEL, level);
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
	return x;
}

struct nftnl_expr *expr_payload(uint32_t base, uint32_t offset, uint32_t len, uint32_t reg)
{
	struct nftnl_expr *x = nftnl_expr_alloc("payload");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_LEN, len);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_DREG, reg);
	return x;
}

struct nftnl_expr *expr_and_u8(uint8_t mask)
{
	struct nftnl_expr *x = nftnl_expr_alloc("bitwise");
	const uint8_t none = 0;

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_BITWISE_LEN, sizeof(mask));
	nftnl_expr_set(x, NFTNL_EXPR_BITWISE_MASK, &mask, sizeof(mask));
	nftnl_expr_set(x, NFTNL_EXPR_BITWISE_XOR, &none, sizeof(none));
	return x;
}

struct nftnl_expr *expr_equal(const void *value, uint32_t len)
{
	struct nftnl_expr *x = nftnl_expr_alloc("cmp");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(x, NFTNL_EXPR_CMP_DATA, value, len);
	return x;
}

struct nftnl_expr *expr_counter(void)
{
	return nftnl_expr_alloc("counter");
}

struct nftnl_expr *expr_lookup(const char *set, uint32_t id, uint32_t flags)
{
	struct nftnl_expr *x = nftnl_expr_alloc("lookup");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(x, NFTNL_EXPR_LOOKUP_SET, set);
	nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_SET_ID, id);
	if (flags)
		nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_FLAGS, flags);
	return x;
}

struct nftnl_expr *expr_lookup_verdict(const char *map, uint32_t id)
{
	struct nftnl_expr *x = expr_lookup(map, id, 0);

	if (x)
		nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
	return x;
}

struct nftnl_expr *expr_update(const char *set, uint32_t id, struct nftnl_expr *with)
{
	struct nftnl_expr *x = with ? nftnl_expr_alloc("dynset") : NULL;

	if (!x) {
		if (with)
			nftnl_expr_free(with);
		return NULL;
	}
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_SREG_KEY, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
	nftnl_expr_set_str(x, NFTNL_EXPR_DYNSET_SET_NAME, set);
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_SET_ID, id);
	nftnl_expr_add_expr(x, NFTNL_EXPR_DYNSET_EXPR, with);
	return x;
}

struct nftnl_expr *expr_limit(uint64_t rate, uint32_t burst)
{
	struct nftnl_expr *x = nftnl_expr_alloc("limit");

	if (!x)
		return NULL;
	nftnl_expr_set_u64(x, NFTNL_EXPR_LIMIT_RATE, rate);
	nftnl_expr_set_u64(x, NFTNL_EXPR_LIMIT_UNIT, 1); /* second */
	nftnl_expr_set_u32(x, NFTNL_EXPR_LIMIT_BURST, burst);
	nftnl_expr_set_u32(x, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
	nftnl_expr_set_u32(x, NFTNL_EXPR_LIMIT_FLAGS, 0);
	return x;
}

struct nftnl_expr *expr_log(const char *prefix, uint16_t group)
{
	struct nftnl_expr *x = nftnl_expr_alloc("log");

	if (!x)
		return NULL;
	nftnl_expr_set_str(x, NFTNL_EXPR_LOG_PREFIX, prefix);
	nftnl_expr_set_u16(x, NFTNL_EXPR_LOG_GROUP, group);
	return x;
}

struct nftnl_expr *expr_reject(uint32_t type, uint8_t code)
{
	struct nftnl_expr *x = nftnl_expr_alloc("reject");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(x, NFTNL_EXPR_REJECT_CODE, code);
	return x;
}

struct nftnl_expr *expr_verdict(int verdict, const char *chain)
{
	struct nftnl_expr *x = nftnl_expr_alloc("immediate");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain)
		nftnl_expr_set_str(x, NFTNL_EXPR_IMM_CHAIN, chain);
	return x;
}
