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

/* Messages -> objects */

static int take_table(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	if (!rs->table)
		rs->table = nftnl_table_alloc();
	if (!rs->table)
		return -ENOMEM;
	return nftnl_table_nlmsg_parse(nlh, rs->table) < 0 ? -EBADMSG : 0;
}

/* What is asked for has an entry already; tests take messages in without having asked. */
static struct ruleset_chain *chain_entry(struct ruleset *rs, const char *name)
{
	struct ruleset_chain *c = ruleset_find_chain(rs, name);

	return c ? c : ruleset_add_chain(rs, name);
}

static struct ruleset_set *set_entry(struct ruleset *rs, const char *name)
{
	struct ruleset_set *s = ruleset_find_set(rs, name);

	return s ? s : ruleset_add_set(rs, name);
}

static int take_chain(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_chain *chain = nftnl_chain_alloc();
	struct ruleset_chain *c;

	if (!chain)
		return -ENOMEM;
	if (nftnl_chain_nlmsg_parse(nlh, chain) < 0 ||
	    !nftnl_chain_is_set(chain, NFTNL_CHAIN_NAME)) {
		nftnl_chain_free(chain);
		return -EBADMSG;
	}
	c = chain_entry(rs, nftnl_chain_get_str(chain, NFTNL_CHAIN_NAME));
	if (!c) {
		nftnl_chain_free(chain);
		return -ENOMEM;
	}
	if (c->chain)
		nftnl_chain_free(c->chain);
	c->chain = chain;
	return 0;
}

static int take_set(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_set *set = nftnl_set_alloc();
	struct ruleset_set *s;

	if (!set)
		return -ENOMEM;
	if (nftnl_set_nlmsg_parse(nlh, set) < 0 || !nftnl_set_is_set(set, NFTNL_SET_NAME)) {
		nftnl_set_free(set);
		return -EBADMSG;
	}
	s = set_entry(rs, nftnl_set_get_str(set, NFTNL_SET_NAME));
	if (!s) {
		nftnl_set_free(set);
		return -ENOMEM;
	}
	if (s->set)
		nftnl_set_free(s->set);
	s->set = set;
	return 0;
}

/* A rule that libnftnl cannot read is a rule all the same, and none of ours: of the chain that was
 * asked for last. */
static int take_rule(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();
	struct ruleset_chain *c = rs->n_chains ? &rs->chains[rs->n_chains - 1] : NULL;

	if (!rule)
		return -ENOMEM;
	if (nftnl_rule_nlmsg_parse(nlh, rule) < 0) {
		nftnl_rule_free(rule);
		rule = NULL;
	} else if (nftnl_rule_is_set(rule, NFTNL_RULE_CHAIN)) {
		c = chain_entry(rs, nftnl_rule_get_str(rule, NFTNL_RULE_CHAIN));
	}
	if (c && c->n_rules < RULESET_RULES_MAX)
		c->rules[c->n_rules] = rule;
	else if (rule)
		nftnl_rule_free(rule);
	if (!c)
		return -EBADMSG;
	c->n_rules++;
	return 0;
}

static int take_element(struct nftnl_set_elem *element, void *elements)
{
	return elements_take(elements, element);
}

static int take_elements(const struct nlmsghdr *nlh, struct ruleset *rs)
{
	struct nftnl_set *part = nftnl_set_alloc();
	struct ruleset_set *s = NULL;
	int r = -EBADMSG;

	if (!part)
		return -ENOMEM;
	if (nftnl_set_elems_nlmsg_parse(nlh, part) == 0 && nftnl_set_is_set(part, NFTNL_SET_NAME)) {
		s = set_entry(rs, nftnl_set_get_str(part, NFTNL_SET_NAME));
		r = s ? nftnl_set_elem_foreach(part, take_element, &s->elements) : -ENOMEM;
	}
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

/* What there is to be read: every kind of message names the table and at most one object in it. */
struct question {
	uint16_t type, flags;
	uint16_t table_attr, name_attr;
	const char *what;
};

static const struct question ask_table = { NFT_MSG_GETTABLE, 0, NFTA_TABLE_NAME, 0, "the table" };
static const struct question ask_set = { NFT_MSG_GETSET, 0, NFTA_SET_TABLE, NFTA_SET_NAME,
					 "a set" };
static const struct question ask_elements = { NFT_MSG_GETSETELEM, NLM_F_DUMP,
					      NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET,
					      "the elements of a set" };
static const struct question ask_chain = { NFT_MSG_GETCHAIN, 0, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME,
					   "a chain" };
static const struct question ask_rules = { NFT_MSG_GETRULE, NLM_F_DUMP, NFTA_RULE_TABLE,
					   NFTA_RULE_CHAIN, "the rules of a chain" };

/* 0, 1 when torn or -ENOENT when there is no such thing, else with a sentence. */
static int ask(struct channel *ch, const struct question *q, const char *name, struct ruleset *rs,
	       struct error *e)
{
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = question(ch, buf, q->type, q->flags);
	int r;

	mnl_attr_put_strz(nlh, q->table_attr, FIREWALL_TABLE);
	if (name)
		mnl_attr_put_strz(nlh, q->name_attr, name);
	r = channel_request(ch, nlh, live_take, rs);
	return r < 0 && r != -ENOENT ? refusal_set(e, r, OBJECT_REQUEST, q->what) : r;
}

/* The object, then what is in it. Absent objects have an entry without one. */
static int read_object(struct channel *ch, const char *name, const struct question *object,
		       const struct question *contents, struct ruleset *rs, struct error *e)
{
	int r = ask(ch, object, name, rs, e), torn = r;

	if (r >= 0 && contents) {
		r = ask(ch, contents, name, rs, e);
		torn |= r;
	}
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : torn;
}

static int read_sets(struct channel *ch, const struct ruleset *wanted, struct ruleset *rs,
		     struct error *e)
{
	int torn = 0;

	for (size_t i = 0; i < wanted->n_sets && torn >= 0; i++) {
		const struct ruleset_set *w = &wanted->sets[i];
		bool read = w->elements.kind != ELEMENT_NONE;
		int r = ruleset_add_set(rs, w->name)
				? read_object(ch, w->name, &ask_set, read ? &ask_elements : NULL,
					      rs, e)
				: error_errno(e, -ENOMEM, "cannot read set %s", w->name);

		torn = r < 0 ? r : torn | r;
	}
	return torn;
}

static int read_chains(struct channel *ch, const struct ruleset *wanted, struct ruleset *rs,
		       struct error *e)
{
	int torn = 0;

	for (size_t i = 0; i < wanted->n_chains && torn >= 0; i++) {
		const char *name = wanted->chains[i].name;
		int r = ruleset_add_chain(rs, name)
				? read_object(ch, name, &ask_chain, &ask_rules, rs, e)
				: error_errno(e, -ENOMEM, "cannot read chain %s", name);

		torn = r < 0 ? r : torn | r;
	}
	return torn;
}

int live_read(struct channel *ch, const struct ruleset *wanted, struct ruleset *ret,
	      struct error *e)
{
	struct ruleset rs = RULESET_NULL;
	int torn = ask(ch, &ask_table, NULL, &rs, e), r = 0;

	if (torn >= 0)
		r = read_sets(ch, wanted, &rs, e);
	if (torn >= 0 && r >= 0) {
		torn |= r;
		r = read_chains(ch, wanted, &rs, e);
	}
	if (r < 0 || (torn < 0 && torn != -ENOENT)) {
		ruleset_free(&rs);
		return r < 0 ? r : torn;
	}
	for (size_t i = 0; i < rs.n_sets; i++)
		elements_sort(&rs.sets[i].elements);
	*ret = rs;
	return torn < 0 ? 0 : torn | r;
}

int live_owner(struct channel *ch, uint32_t *ret, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	int r = ask(ch, &ask_table, NULL, &rs, e);

	if (r < 0 && r != -ENOENT)
		return r;
	*ret = rs.table ? nftnl_table_get_u32(rs.table, NFTNL_TABLE_OWNER) : 0;
	return 0;
}

int live_set_exists(struct channel *ch, const char *set, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	int r = ask(ch, &ask_set, set, &rs, e);

	if (r == -ENOENT)
		return error_set(e, r, "there is no set %s in table inet %s", set, FIREWALL_TABLE);
	return r < 0 ? r : 0;
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
