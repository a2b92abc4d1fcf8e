/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Policy -> objects: the table, its sets and the chains that all guests pass. What a profile adds
 * is in nft/profile.c. Each object's text in nft's language stands above its encoder;
 * tests/unit/test_nft_table.c and tests/net hold both together.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include <libnftnl/udata.h>

#include "nft/build.h"
#include "nft/expression.h"

#define UDATA_HOST_ENDIAN 1 /* nft's; the kernel only hands it back */

#define STRAYS_SIZE	  65535
#define STRAYS_TIMEOUT_MS (UINT64_C(24) * 60 * 60 * 1000)

/* table inet harpe_gov { flags owner; }; nft/firewall.c adds persist.
 * Owner and use are no part of the message: they are what the kernel will answer. */
static bool build_table(struct ruleset *rs, uint32_t owner)
{
	rs->table = nftnl_table_alloc();
	if (!rs->table || nftnl_table_set_str(rs->table, NFTNL_TABLE_NAME, FIREWALL_TABLE) < 0)
		return false;
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_FLAGS, owner ? NFT_TABLE_F_OWNER : 0);
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_OWNER, owner);
	return true;
}

/* Sets */

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

struct ruleset_set *build_set(struct ruleset *rs, const char *name, uint32_t flags,
			      uint32_t key_type, uint32_t key_len, size_t size)
{
	struct ruleset_set *s = ruleset_add_set(rs, name);

	if (!s)
		return NULL;
	s->set = nftnl_set_alloc();
	if (!s->set || nftnl_set_set_str(s->set, NFTNL_SET_TABLE, FIREWALL_TABLE) < 0 ||
	    nftnl_set_set_str(s->set, NFTNL_SET_NAME, name) < 0)
		return NULL;
	nftnl_set_set_u32(s->set, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(s->set, NFTNL_SET_ID, (uint32_t)rs->n_sets);
	nftnl_set_set_u32(s->set, NFTNL_SET_KEY_TYPE, key_type);
	nftnl_set_set_u32(s->set, NFTNL_SET_KEY_LEN, key_len);
	nftnl_set_set_u32(s->set, NFTNL_SET_DESC_SIZE, (uint32_t)size);
	nftnl_set_set_u32(s->set, NFTNL_SET_FLAGS, flags);
	return s;
}

/* elements = { FIRST, FIRST + 1, ... } */
static bool build_uids(struct elements *els, const struct firewall_policy *p)
{
	if (elements_reserve(els, p->uid_count) < 0)
		return false;
	for (; els->n < p->uid_count; els->n++)
		element_of_uid(p->first_uid + (uint32_t)els->n,
			       els->data + els->n * element_size(els->kind));
	return true;
}

/* set pool { type uid; size COUNT; counter; }
 * The size makes the kernel choose its hash of fixed size, which is the faster one and cannot be
 * in the middle of growing while it is dumped. */
static bool build_pool(struct ruleset *rs, const struct firewall_policy *p)
{
	struct ruleset_set *s = build_set(rs, SET_POOL, 0, NFT_TYPE_UID, 4, p->uid_count);
	struct nftnl_expr *counter;

	if (!s || !mark_host_endian(s->set))
		return false;
	counter = expr_counter();
	if (!counter)
		return false;
	nftnl_set_add_expr(s->set, counter);
	return build_uids(&s->elements, p);
}

/* set strays { type cgroupsv2; size 65535; flags dynamic,timeout; timeout 1d; } */
static bool build_strays(struct ruleset *rs)
{
	struct ruleset_set *s = build_set(rs, SET_STRAYS, NFT_SET_EVAL | NFT_SET_TIMEOUT,
					  NFT_TYPE_CGROUPSV2, 8, STRAYS_SIZE);

	if (!s || !mark_host_endian(s->set))
		return false;
	nftnl_set_set_u64(s->set, NFTNL_SET_TIMEOUT, STRAYS_TIMEOUT_MS);
	return true;
}

/* set logged { type uid; size COUNT; flags dynamic; }
 * As many as there are uids, so that it is never full. */
static bool build_logged(struct ruleset *rs, const struct firewall_policy *p)
{
	struct ruleset_set *s =
		build_set(rs, SET_LOGGED, NFT_SET_EVAL, NFT_TYPE_UID, 4, p->uid_count);

	return s && mark_host_endian(s->set);
}

/* map profiles { type cgroupsv2 : verdict; size 128; elements = { SLICE : jump profile_NAME } } */
static bool build_profile_map(struct ruleset *rs, const struct firewall_policy *p)
{
	struct ruleset_set *s = build_set(rs, SET_PROFILES, NFT_SET_MAP, NFT_TYPE_CGROUPSV2, 8,
					  FIREWALL_PROFILES_MAX);
	char chain[OBJECT_NAME_MAX];

	if (!s || !mark_host_endian(s->set))
		return false;
	nftnl_set_set_u32(s->set, NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT);
	nftnl_set_set_u32(s->set, NFTNL_SET_DATA_LEN, 0);
	if (p->n_profiles && elements_reserve(&s->elements, p->n_profiles) < 0)
		return false;
	for (size_t i = 0; i < p->n_profiles; i++, s->elements.n++)
		element_of_slice(p->profiles[i].slice_id, profile_chain(&p->profiles[i], chain),
				 s->elements.data + i * element_size(s->elements.kind));
	elements_sort(&s->elements);
	return true;
}

/* Chains and rules */

struct ruleset_chain *build_chain(struct ruleset *rs, const char *name)
{
	struct ruleset_chain *c = ruleset_add_chain(rs, name);

	if (!c)
		return NULL;
	c->chain = nftnl_chain_alloc();
	if (!c->chain || nftnl_chain_set_str(c->chain, NFTNL_CHAIN_TABLE, FIREWALL_TABLE) < 0 ||
	    nftnl_chain_set_str(c->chain, NFTNL_CHAIN_NAME, name) < 0)
		return NULL;
	nftnl_chain_set_u32(c->chain, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	return c;
}

static bool name_rule(struct nftnl_rule *rule, const char *chain)
{
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	return nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, FIREWALL_TABLE) == 0 &&
	       nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, chain) == 0;
}

bool build_rule(struct ruleset_chain *c, struct nftnl_expr **parts, size_t n)
{
	struct nftnl_rule *rule = c->rules[c->n_rules++] = nftnl_rule_alloc();
	bool ok = rule && name_rule(rule, c->name);

	for (size_t i = 0; i < n; i++)
		ok &= parts[i] != NULL;
	for (size_t i = 0; i < n; i++)
		if (ok)
			nftnl_rule_add_expr(rule, parts[i]);
		else if (parts[i])
			nftnl_expr_free(parts[i]);
	return ok;
}

/* Within a transaction the kernel finds sets by number; ours are counted from 1. */
static uint32_t set_id(const struct ruleset *rs, const char *name)
{
	return nftnl_set_get_u32(ruleset_find_set(rs, name)->set, NFTNL_SET_ID);
}

struct nftnl_expr *in_set(const struct ruleset *rs, const char *set)
{
	return expr_lookup(set, set_id(rs, set), 0);
}

struct nftnl_expr *not_in_set(const struct ruleset *rs, const char *set)
{
	return expr_lookup(set, set_id(rs, set), NFT_LOOKUP_F_INV);
}

struct nftnl_expr *update_set(const struct ruleset *rs, const char *set, struct nftnl_expr *with)
{
	return expr_update(set, set_id(rs, set), with);
}

/* chain output { type filter hook output priority -10; policy accept;
 *	socket cgroupv2 level 1 "harpe.slice" jump guests
 *	meta skuid @pool drop
 * }
 * The cgroup is looked at first because that is cheap for those who are none of it. */
static bool build_output(struct ruleset *rs, const struct firewall_policy *p)
{
	struct ruleset_chain *c = build_chain(rs, CHAIN_OUTPUT);

	if (!c || nftnl_chain_set_str(c->chain, NFTNL_CHAIN_TYPE, "filter") < 0)
		return false;
	nftnl_chain_set_u32(c->chain, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(c->chain, NFTNL_CHAIN_PRIO, FIREWALL_PRIORITY);
	nftnl_chain_set_u32(c->chain, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	nftnl_chain_set_u32(c->chain, NFTNL_CHAIN_FLAGS, NFT_CHAIN_BASE);
	return BUILD_RULE(c, expr_socket_cgroup(p->slice_level),
			  expr_equal(&p->slice_id, sizeof(p->slice_id)),
			  expr_verdict(NFT_JUMP, CHAIN_GUESTS)) &&
	       BUILD_RULE(c, expr_meta(NFT_META_SKUID), in_set(rs, SET_POOL),
			  expr_verdict(NF_DROP, NULL));
}

static bool build_strays_rule(const struct ruleset *rs, struct ruleset_chain *c, uint32_t level)
{
	return BUILD_RULE(c, expr_socket_cgroup(level), update_set(rs, SET_STRAYS, expr_counter()));
}

/* chain guests {
 *	socket cgroupv2 level 2 vmap @profiles
 *	meta skuid @pool drop
 *	update @strays { socket cgroupv2 level 3 counter }
 *	update @strays { socket cgroupv2 level 4 counter }
 *	counter drop
 * }
 * Strays have rules of their own, since a full set, or a socket above the scopes' level, ends the
 * rule: that must not save a packet. Two, since of what lies at either level only one is a scope:
 * the other is a child slice, or a group of the scope's, and nobody asks for its count. */
static bool build_guests(struct ruleset *rs, const struct firewall_policy *p)
{
	struct ruleset_chain *c = build_chain(rs, CHAIN_GUESTS);

	return c &&
	       BUILD_RULE(c, expr_socket_cgroup(p->profile_level),
			  expr_lookup_verdict(SET_PROFILES, set_id(rs, SET_PROFILES))) &&
	       BUILD_RULE(c, expr_meta(NFT_META_SKUID), in_set(rs, SET_POOL),
			  expr_verdict(NF_DROP, NULL)) &&
	       build_strays_rule(rs, c, p->scope_level) &&
	       build_strays_rule(rs, c, p->scope_level + 1) &&
	       BUILD_RULE(c, expr_counter(), expr_verdict(NF_DROP, NULL));
}

static bool build_profiles(struct ruleset *rs, const struct firewall_policy *p,
			   int (*build)(struct ruleset *, const struct firewall_profile *))
{
	for (size_t i = 0; i < p->n_profiles; i++)
		if (build(rs, &p->profiles[i]) < 0)
			return false;
	return true;
}

static bool build_all(struct ruleset *rs, const struct firewall_policy *p, uint32_t owner)
{
	if (!build_table(rs, owner) || !build_pool(rs, p) || !build_strays(rs) ||
	    !build_logged(rs, p) || !build_profile_map(rs, p) ||
	    !build_profiles(rs, p, build_profile_sets) || !build_output(rs, p) ||
	    !build_guests(rs, p) || !build_profiles(rs, p, build_profile_chain))
		return false;
	nftnl_table_set_u32(rs->table, NFTNL_TABLE_USE, (uint32_t)(rs->n_sets + rs->n_chains));
	return true;
}

int ruleset_build(const struct firewall_policy *policy, uint32_t owner, struct ruleset *ret)
{
	struct ruleset rs = RULESET_NULL;

	if (!build_all(&rs, policy, owner)) {
		ruleset_free(&rs);
		return -ENOMEM;
	}
	*ret = rs;
	return 0;
}
