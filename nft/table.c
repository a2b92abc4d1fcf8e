/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Policy -> objects. Each object's text in nft's language stands above its encoder;
 * tests/unit/test_nft_table.c and tests/net hold both together.
 *
 * Keys are in host byte order: `meta skuid` and `socket cgroupv2` load host words, and a hash set
 * compares for equality. The sets' user data tells nft so; the kernel does not read it.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libnftnl/expr.h>
#include <libnftnl/udata.h>

#include "nft/ruleset.h"

/* nft's numbers for what a key is; the kernel only hands them back. */
#define NFT_TYPE_UID	   24
#define NFT_TYPE_CGROUPSV2 46

#define UDATA_HOST_ENDIAN 1

#define STRAYS_SIZE	  65535
#define STRAYS_TIMEOUT_MS (UINT64_C(24) * 60 * 60 * 1000)

#define LEVEL_MAX 255 /* the kernel's */

int policy_check(const struct firewall_policy *p, struct error *e)
{
	if (p->uid_count < 1 || p->uid_count > RULESET_UIDS_MAX)
		return error_set(e, -EINVAL, "a pool of %u uids: 1 to %u are possible",
				 p->uid_count, RULESET_UIDS_MAX);
	if (p->first_uid < 1 || p->first_uid >= UINT32_MAX - p->uid_count)
		return error_set(e, -EINVAL,
				 "%u uids from %u on: uid 0 and %u cannot be among them",
				 p->uid_count, p->first_uid, UINT32_MAX);
	if (p->slice_id == 0)
		return error_set(e, -EINVAL, "the cgroup id of the slice is not known");
	if (p->slice_level < 1 || p->scope_level < p->slice_level || p->scope_level > LEVEL_MAX)
		return error_set(e, -EINVAL, "cgroup levels %u (slice) and %u (scope) cannot be",
				 p->slice_level, p->scope_level);
	return 0;
}

void ruleset_free(struct ruleset *rs)
{
	if (rs->table)
		nftnl_table_free(rs->table);
	if (rs->chain)
		nftnl_chain_free(rs->chain);
	if (rs->pool)
		nftnl_set_free(rs->pool);
	if (rs->strays)
		nftnl_set_free(rs->strays);
	for (size_t i = 0; i < RULESET_RULES_MAX; i++)
		if (rs->rules[i])
			nftnl_rule_free(rs->rules[i]);
	free(rs->uids);
	*rs = RULESET_NULL;
}

/* table inet harpe_gov { flags owner; }
 * Owner and use are no part of the message: they are what the kernel will answer. */
static bool build_table(struct ruleset *rs, uint32_t owner)
{
	rs->table = nftnl_table_alloc();
	if (!rs->table || nftnl_table_set_str(rs->table, NFTNL_TABLE_NAME, FIREWALL_TABLE) < 0)
		return false;
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_FLAGS, owner ? NFT_TABLE_F_OWNER : 0);
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_OWNER, owner);
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_USE, 3); /* a chain and two sets */
	return true;
}

static bool mark_host_endian(struct nftnl_set *set)
{
	struct nftnl_udata_buf *udata = nftnl_udata_buf_alloc(64);
	bool ok;

	if (!udata)
		return false;
	ok = nftnl_udata_put_u32(udata, NFTNL_UDATA_SET_KEYBYTEORDER, UDATA_HOST_ENDIAN) &&
	     nftnl_set_set_data(set, NFTNL_SET_USERDATA, nftnl_udata_buf_data(udata),
				nftnl_udata_buf_len(udata)) == 0;
	nftnl_udata_buf_free(udata);
	return ok;
}

static struct nftnl_set *new_set(const char *name, uint32_t id, uint32_t key_type, uint32_t key_len,
				 uint32_t size)
{
	struct nftnl_set *set = nftnl_set_alloc();

	if (!set)
		return NULL;
	if (nftnl_set_set_str(set, NFTNL_SET_TABLE, FIREWALL_TABLE) < 0 ||
	    nftnl_set_set_str(set, NFTNL_SET_NAME, name) < 0 || !mark_host_endian(set)) {
		nftnl_set_free(set);
		return NULL;
	}
	nftnl_set_set_u32(set, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(set, NFTNL_SET_ID, id);
	nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, key_type);
	nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, key_len);
	nftnl_set_set_u32(set, NFTNL_SET_DESC_SIZE, size);
	nftnl_set_set_u32(set, NFTNL_SET_FLAGS, 0);
	return set;
}

/* set pool { type uid; size COUNT; counter; }
 * The size makes the kernel choose its hash of fixed size, which is the faster one and cannot be
 * in the middle of growing while it is dumped. */
static bool build_pool(struct ruleset *rs, const struct firewall_policy *p)
{
	struct nftnl_expr *counter;

	rs->pool = new_set(SET_POOL, 1, NFT_TYPE_UID, sizeof(uint32_t), p->uid_count);
	counter = rs->pool ? nftnl_expr_alloc("counter") : NULL;
	if (!counter)
		return false;
	nftnl_set_add_expr(rs->pool, counter);
	return true;
}

/* set strays { type cgroupsv2; size 65535; flags dynamic,timeout; timeout 1d; } */
static bool build_strays(struct ruleset *rs)
{
	rs->strays = new_set(SET_STRAYS, 2, NFT_TYPE_CGROUPSV2, sizeof(uint64_t), STRAYS_SIZE);
	if (!rs->strays)
		return false;
	nftnl_set_set_u32(rs->strays, NFTNL_SET_FLAGS, NFT_SET_EVAL | NFT_SET_TIMEOUT);
	nftnl_set_set_u64(rs->strays, NFTNL_SET_TIMEOUT, STRAYS_TIMEOUT_MS);
	return true;
}

/* elements = { FIRST, FIRST + 1, ... } */
static bool build_uids(struct ruleset *rs, const struct firewall_policy *p)
{
	rs->uids = calloc(p->uid_count, sizeof(*rs->uids));
	if (!rs->uids)
		return false;
	for (; rs->n_uids < p->uid_count; rs->n_uids++)
		rs->uids[rs->n_uids] = p->first_uid + (uint32_t)rs->n_uids;
	return true;
}

/* chain output { type filter hook output priority -10; policy accept; } */
static bool build_chain(struct ruleset *rs)
{
	rs->chain = nftnl_chain_alloc();
	if (!rs->chain || nftnl_chain_set_str(rs->chain, NFTNL_CHAIN_TABLE, FIREWALL_TABLE) < 0 ||
	    nftnl_chain_set_str(rs->chain, NFTNL_CHAIN_NAME, CHAIN_OUTPUT) < 0 ||
	    nftnl_chain_set_str(rs->chain, NFTNL_CHAIN_TYPE, "filter") < 0)
		return false;
	nftnl_chain_set_u32(rs->chain, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_u32(rs->chain, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(rs->chain, NFTNL_CHAIN_PRIO, FIREWALL_PRIORITY);
	nftnl_chain_set_u32(rs->chain, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	nftnl_chain_set_u32(rs->chain, NFTNL_CHAIN_FLAGS, NFT_CHAIN_BASE);
	return true;
}

/* Expressions. Everything passes through register 1. */

static struct nftnl_expr *meta_skuid(void)
{
	struct nftnl_expr *x = nftnl_expr_alloc("meta");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_META_KEY, NFT_META_SKUID);
	nftnl_expr_set_u32(x, NFTNL_EXPR_META_DREG, NFT_REG_1);
	return x;
}

static struct nftnl_expr *lookup(const char *set, uint32_t id)
{
	struct nftnl_expr *x = nftnl_expr_alloc("lookup");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(x, NFTNL_EXPR_LOOKUP_SET, set);
	nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_SET_ID, id);
	return x;
}

static struct nftnl_expr *socket_cgroup(uint32_t level)
{
	struct nftnl_expr *x = nftnl_expr_alloc("socket");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2);
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_LEVEL, level);
	nftnl_expr_set_u32(x, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
	return x;
}

static struct nftnl_expr *equal_u64(uint64_t value)
{
	struct nftnl_expr *x = nftnl_expr_alloc("cmp");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(x, NFTNL_EXPR_CMP_DATA, &value, sizeof(value));
	return x;
}

static struct nftnl_expr *update_counter(const char *set, uint32_t id)
{
	struct nftnl_expr *x = nftnl_expr_alloc("dynset"), *counter;

	if (!x)
		return NULL;
	counter = nftnl_expr_alloc("counter");
	if (!counter) {
		nftnl_expr_free(x);
		return NULL;
	}
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_SREG_KEY, NFT_REG_1);
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
	nftnl_expr_set_str(x, NFTNL_EXPR_DYNSET_SET_NAME, set);
	nftnl_expr_set_u32(x, NFTNL_EXPR_DYNSET_SET_ID, id);
	nftnl_expr_add_expr(x, NFTNL_EXPR_DYNSET_EXPR, counter);
	return x;
}

static struct nftnl_expr *drop(void)
{
	struct nftnl_expr *x = nftnl_expr_alloc("immediate");

	if (!x)
		return NULL;
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_VERDICT, NF_DROP);
	return x;
}

static bool add(struct nftnl_rule *rule, struct nftnl_expr *x)
{
	if (!x)
		return false;
	nftnl_rule_add_expr(rule, x);
	return true;
}

/* meta skuid @pool drop */
static bool rule_pool(struct nftnl_rule *r, const struct firewall_policy *p)
{
	(void)p;
	return add(r, meta_skuid()) && add(r, lookup(SET_POOL, 1)) && add(r, drop());
}

/* socket cgroupv2 level 1 "harpe.slice" update @strays { socket cgroupv2 level 3 counter }
 * A rule of its own, since a full set ends the rule: that must not save a packet. */
static bool rule_strays(struct nftnl_rule *r, const struct firewall_policy *p)
{
	return add(r, socket_cgroup(p->slice_level)) && add(r, equal_u64(p->slice_id)) &&
	       add(r, socket_cgroup(p->scope_level)) && add(r, update_counter(SET_STRAYS, 2));
}

/* socket cgroupv2 level 1 "harpe.slice" counter drop */
static bool rule_slice(struct nftnl_rule *r, const struct firewall_policy *p)
{
	return add(r, socket_cgroup(p->slice_level)) && add(r, equal_u64(p->slice_id)) &&
	       add(r, nftnl_expr_alloc("counter")) && add(r, drop());
}

static bool (*const rule_builders[RULESET_RULES])(struct nftnl_rule *,
						  const struct firewall_policy *) = {
	rule_pool,
	rule_strays,
	rule_slice,
};

static bool build_rules(struct ruleset *rs, const struct firewall_policy *p)
{
	struct nftnl_rule *rule;

	while (rs->n_rules < RULESET_RULES) {
		rule = rs->rules[rs->n_rules] = nftnl_rule_alloc();
		if (!rule || nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, FIREWALL_TABLE) < 0 ||
		    nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, CHAIN_OUTPUT) < 0)
			return false;
		nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
		if (!rule_builders[rs->n_rules++](rule, p))
			return false;
	}
	return true;
}

int ruleset_build(const struct firewall_policy *policy, uint32_t owner, struct ruleset *ret)
{
	struct ruleset rs = RULESET_NULL;

	if (!build_table(&rs, owner) || !build_pool(&rs, policy) || !build_strays(&rs) ||
	    !build_uids(&rs, policy) || !build_chain(&rs) || !build_rules(&rs, policy)) {
		ruleset_free(&rs);
		return -ENOMEM;
	}
	*ret = rs;
	return 0;
}
