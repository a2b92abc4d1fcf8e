/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table is asked for by name, object by object: other tables, of which a host may have
 * thousands, are never dumped. That there is nothing more in ours follows from the kernel's own
 * count of its objects (NFTA_TABLE_USE), which compare.c looks at.
 */
#include "nft/live.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/gen.h>

#include "common/fd.h"
#include "nft/refusal.h"

#define QUESTION_SIZE 512 /* two names and a key */

#define LIVE_UIDS_MAX (1u << 20) /* more are no pool of ours, whatever they are */

/* Messages -> objects */

static int take_table(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	if (!rs->table)
		rs->table = nftnl_table_alloc();
	if (!rs->table)
		return -ENOMEM;
	return nftnl_table_nlmsg_parse(nlh, rs->table) < 0 ? -EBADMSG : 0;
}

static int take_chain(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	if (!rs->chain)
		rs->chain = nftnl_chain_alloc();
	if (!rs->chain)
		return -ENOMEM;
	return nftnl_chain_nlmsg_parse(nlh, rs->chain) < 0 ? -EBADMSG : 0;
}

static int take_set(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_set *set = nftnl_set_alloc(), **place;
	const char *name;

	if (!set)
		return -ENOMEM;
	if (nftnl_set_nlmsg_parse(nlh, set) < 0) {
		nftnl_set_free(set);
		return -EBADMSG;
	}
	name = nftnl_set_get_str(set, NFTNL_SET_NAME);
	place = name && strcmp(name, SET_POOL) == 0 ? &rs->pool : &rs->strays;
	if (*place)
		nftnl_set_free(*place);
	*place = set;
	return 0;
}

/* A rule that libnftnl cannot read is a rule all the same, and none of ours. */
static int take_rule(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_rule *rule;

	if (rs->n_rules >= RULESET_RULES_MAX) {
		rs->n_rules++;
		return 0;
	}
	rule = nftnl_rule_alloc();
	if (!rule)
		return -ENOMEM;
	if (nftnl_rule_nlmsg_parse(nlh, rule) < 0) {
		nftnl_rule_free(rule);
		rule = NULL;
	}
	rs->rules[rs->n_rules++] = rule;
	return 0;
}

static int take_uid(struct ruleset *rs, uint32_t uid)
{
	uint32_t *p;

	if (rs->n_uids >= LIVE_UIDS_MAX)
		return -E2BIG;
	/* Doubles at powers of two. */
	if ((rs->n_uids & (rs->n_uids - 1)) == 0) {
		p = reallocarray(rs->uids, rs->n_uids ? 2 * rs->n_uids : 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		rs->uids = p;
	}
	rs->uids[rs->n_uids++] = uid;
	return 0;
}

static int take_element(struct nftnl_set_elem *element, void *data)
{
	uint32_t len = 0, uid;
	const void *key = nftnl_set_elem_get(element, NFTNL_SET_ELEM_KEY, &len);

	if (!key || len != sizeof(uid))
		return -EBADMSG;
	memcpy(&uid, key, sizeof(uid));
	return take_uid(data, uid);
}

static int take_elements(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_set *part = nftnl_set_alloc();
	int r;

	if (!part)
		return -ENOMEM;
	if (nftnl_set_elems_nlmsg_parse(nlh, part) < 0)
		r = -EBADMSG;
	else
		r = nftnl_set_elem_foreach(part, take_element, rs);
	nftnl_set_free(part);
	return r;
}

static const struct {
	uint16_t type;
	int (*take)(const struct nlmsghdr *, struct ruleset *);
} takers[] = {
	{ NFT_MSG_NEWTABLE, take_table },      { NFT_MSG_NEWCHAIN, take_chain },
	{ NFT_MSG_NEWSET, take_set },	       { NFT_MSG_NEWRULE, take_rule },
	{ NFT_MSG_NEWSETELEM, take_elements },
};

int live_take(const struct nlmsghdr *nlh, void *rs)
{
	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)) ||
	    NFNL_SUBSYS_ID(nlh->nlmsg_type) != NFNL_SUBSYS_NFTABLES)
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (NFNL_MSG_TYPE(nlh->nlmsg_type) == takers[i].type)
			return takers[i].take(nlh, rs);
	return -EBADMSG;
}

/* Questions */

static struct nlmsghdr *question(struct channel *ch, char *buf, uint16_t type, uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(buf, type, NFPROTO_INET, flags, channel_next_seq(ch));
}

/* What there is to be read, in this order; every kind of message names the table and at most one
 * object in it. */
static const struct step {
	uint16_t type, flags;
	uint16_t table_attr, name_attr;
	const char *name, *what;
} steps[] = {
	{ NFT_MSG_GETTABLE, 0, NFTA_TABLE_NAME, 0, NULL, "table inet " FIREWALL_TABLE },
	{ NFT_MSG_GETCHAIN, 0, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, CHAIN_OUTPUT,
	  "chain " CHAIN_OUTPUT },
	{ NFT_MSG_GETSET, 0, NFTA_SET_TABLE, NFTA_SET_NAME, SET_POOL, "set " SET_POOL },
	{ NFT_MSG_GETSET, 0, NFTA_SET_TABLE, NFTA_SET_NAME, SET_STRAYS, "set " SET_STRAYS },
	{ NFT_MSG_GETRULE, NLM_F_DUMP, NFTA_RULE_TABLE, 0, NULL, "the rules" },
	{ NFT_MSG_GETSETELEM, NLM_F_DUMP, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET,
	  SET_POOL, "the elements of set " SET_POOL },
};

static int ask(struct channel *ch, const struct step *step, struct ruleset *rs)
{
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = question(ch, buf, step->type, step->flags);

	mnl_attr_put_strz(nlh, step->table_attr, FIREWALL_TABLE);
	if (step->name)
		mnl_attr_put_strz(nlh, step->name_attr, step->name);
	return channel_request(ch, nlh, live_take, rs);
}

static int compare_uids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int live_read(struct channel *ch, struct ruleset *ret, struct error *e)
{
	struct ruleset rs = RULESET_NULL;
	int torn = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int r = ask(ch, &steps[i], &rs);

		if (r == -ENOENT)
			continue;
		if (r < 0) {
			ruleset_free(&rs);
			return refusal_set(e, r, OBJECT_REQUEST, steps[i].what);
		}
		torn |= r;
	}
	if (rs.n_uids > 0)
		qsort(rs.uids, rs.n_uids, sizeof(*rs.uids), compare_uids);
	*ret = rs;
	return torn;
}

int live_owner(struct channel *ch, uint32_t *ret, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	int r = ask(ch, &steps[0], &rs);

	if (r < 0 && r != -ENOENT)
		return refusal_set(e, r, OBJECT_REQUEST, steps[0].what);
	*ret = rs.table ? nftnl_table_get_u32(rs.table, NFTNL_TABLE_OWNER) : 0;
	return 0;
}

int live_set_exists(struct channel *ch, const char *set, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = question(ch, buf, NFT_MSG_GETSET, 0);
	int r;

	mnl_attr_put_strz(nlh, NFTA_SET_TABLE, FIREWALL_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_NAME, set);
	r = channel_request(ch, nlh, live_take, &rs);
	if (r == -ENOENT)
		return error_set(e, r, "there is no set %s in table inet %s", set, FIREWALL_TABLE);
	if (r < 0)
		return refusal_set(e, r, OBJECT_REQUEST, "a set");
	return 0;
}

static int take_generation(const struct nlmsghdr *nlh, void *data)
{
	struct nftnl_gen *gen;
	int r = -EBADMSG;

	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)))
		return r;
	gen = nftnl_gen_alloc();
	if (!gen)
		return -ENOMEM;
	if (nftnl_gen_nlmsg_parse(nlh, gen) == 0 && nftnl_gen_is_set(gen, NFTNL_GEN_ID)) {
		*(uint32_t *)data = nftnl_gen_get_u32(gen, NFTNL_GEN_ID);
		r = 0;
	}
	nftnl_gen_free(gen);
	return r;
}

int live_generation(struct channel *ch, uint32_t *ret, struct error *e)
{
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh =
		nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETGEN, NFPROTO_UNSPEC, 0, channel_next_seq(ch));
	uint32_t generation = 0;
	int r = channel_request(ch, nlh, take_generation, &generation);

	if (r < 0)
		return refusal_set(e, r, OBJECT_REQUEST, "the generation of the ruleset");
	*ret = generation;
	return 0;
}

static int find_counter(struct nftnl_expr *x, void *data)
{
	const char *name = nftnl_expr_get_str(x, NFTNL_EXPR_NAME);

	if (name && strcmp(name, "counter") == 0)
		*(uint64_t *)data = nftnl_expr_get_u64(x, NFTNL_EXPR_CTR_PACKETS);
	return 0;
}

static int counter_of_element(struct nftnl_set_elem *element, void *data)
{
	return nftnl_set_elem_expr_foreach(element, find_counter, data);
}

static int take_counter(const struct nlmsghdr *nlh, void *data)
{
	struct nftnl_set *part;
	int r = -EBADMSG;

	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)))
		return r;
	part = nftnl_set_alloc();
	if (!part)
		return -ENOMEM;
	if (nftnl_set_elems_nlmsg_parse(nlh, part) == 0)
		r = nftnl_set_elem_foreach(part, counter_of_element, data);
	nftnl_set_free(part);
	return r;
}

int live_element_packets(struct channel *ch, const char *set, const void *key, uint32_t key_len,
			 uint64_t *ret, struct error *e)
{
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = question(ch, buf, NFT_MSG_GETSETELEM, 0);
	struct nlattr *list, *element, *value;
	uint64_t packets = FIREWALL_UNKNOWN;
	int r;

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
	value = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_KEY);
	mnl_attr_put(nlh, NFTA_DATA_VALUE, key_len, key);
	mnl_attr_nest_end(nlh, value);
	mnl_attr_nest_end(nlh, element);
	mnl_attr_nest_end(nlh, list);
	r = channel_request(ch, nlh, take_counter, &packets);
	if (r == 0 && packets == FIREWALL_UNKNOWN)
		r = -ENODATA;
	if (r == -ENOENT)
		return error_set(e, r, "no such element in set %s of table inet %s", set,
				 FIREWALL_TABLE);
	if (r < 0)
		return refusal_set(e, r, OBJECT_REQUEST, "a counter");
	*ret = packets;
	return 0;
}
