/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ruleset of the host, taken in from messages that are whole, cut or spoilt.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>

#include "nft/commit.h"
#include "nft/foreign.h"
#include "tests/net/golden.h"

static void what_is_wanted_has_the_same_shape(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	struct foreign_chain *c;
	struct foreign_set *s;
	struct foreign_expr x;
	struct nest rest;

	(void)state;
	assert_int_equal(foreign_put_wanted(&f, &golden_policy, NULL), 0);
	assert_int_equal(f.n_tables, 1);
	assert_int_equal(f.n_chains, 4);
	assert_int_equal(f.n_sets, 6);
	assert_int_equal(f.tables[0].family, NFPROTO_INET);
	assert_string_equal(f.tables[0].name, FIREWALL_TABLE);
	c = foreign_find_chain(&f, 0, CHAIN_OUTPUT);
	assert_non_null(c);
	assert_true(c->base);
	assert_string_equal(c->type, "filter");
	assert_int_equal(c->hook, NF_INET_LOCAL_OUT);
	assert_int_equal(c->priority, FIREWALL_PRIORITY);
	assert_int_equal(c->n_rules, 2);
	rest = c->rules[1].exprs;
	assert_true(foreign_next_expr(&rest, &x));
	assert_string_equal(x.name, "meta");
	assert_true(foreign_next_expr(&rest, &x));
	assert_string_equal(x.name, "lookup");
	assert_true(foreign_next_expr(&rest, &x));
	assert_string_equal(x.name, "immediate");
	assert_false(foreign_next_expr(&rest, &x));
	s = foreign_find_set(&f, 0, SET_POOL);
	assert_non_null(s);
	assert_int_equal(s->n_elements, 3);
	assert_int_equal(s->elements[2].key.len, 4);
	assert_null(foreign_find_set(&f, 0, "none"));
	assert_null(foreign_find_chain(&f, 1, CHAIN_OUTPUT));
}

/* ---- messages of others ---- */

struct buffer {
	_Alignas(NLMSG_ALIGNTO) char data[1024];
};

static struct nlmsghdr *message(struct buffer *b, uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(b->data);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = NFPROTO_IPV4;
	return nlh;
}

static void put_table(struct foreign *f, const char *name)
{
	struct buffer b;
	struct nlmsghdr *nlh = message(&b, NFT_MSG_NEWTABLE);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, name);
	assert_int_equal(foreign_take(nlh, f), 0);
}

static void put_chain(struct foreign *f, const char *table, const char *name, int r)
{
	struct buffer b;
	struct nlmsghdr *nlh = message(&b, NFT_MSG_NEWCHAIN);

	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, name);
	assert_int_equal(foreign_take(nlh, f), r);
}

static void unknown_expressions_stay(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	struct buffer b;
	struct nlmsghdr *nlh = message(&b, NFT_MSG_NEWRULE);
	struct nlattr *list, *one;
	struct foreign_expr x;
	struct nest rest;

	(void)state;
	put_table(&f, "t");
	put_chain(&f, "t", "c", 0);
	mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, "t");
	mnl_attr_put_strz(nlh, NFTA_RULE_CHAIN, "c");
	list = mnl_attr_nest_start(nlh, NFTA_RULE_EXPRESSIONS);
	one = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
	mnl_attr_put_strz(nlh, NFTA_EXPR_NAME, "future");
	mnl_attr_put_u32(nlh, NFTA_EXPR_DATA, 1);
	mnl_attr_nest_end(nlh, one);
	one = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
	mnl_attr_put(nlh, NFTA_EXPR_NAME, 3, "abc"); /* no NUL */
	mnl_attr_nest_end(nlh, one);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(foreign_take(nlh, &f), 0);
	rest = f.chains[0].rules[0].exprs;
	assert_true(foreign_next_expr(&rest, &x));
	assert_string_equal(x.name, "future");
	assert_int_equal(x.data.len, 4);
	assert_true(foreign_next_expr(&rest, &x));
	assert_string_equal(x.name, "?");
	assert_false(foreign_next_expr(&rest, &x));
}

/* A table of another family is another table. */
static void what_belongs_to_nothing_is_refused(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	struct buffer b;
	struct nlmsghdr *nlh;

	(void)state;
	put_chain(&f, "t", "c", -EBADMSG);
	put_table(&f, "t");
	put_table(&f, "t"); /* told anew */
	assert_int_equal(f.n_tables, 1);
	put_chain(&f, "u", "c", -EBADMSG);
	nlh = message(&b, NFT_MSG_NEWCHAIN);
	((struct nfgenmsg *)mnl_nlmsg_get_payload(nlh))->nfgen_family = NFPROTO_IPV6;
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, "t");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "c");
	assert_int_equal(foreign_take(nlh, &f), -EBADMSG);
	assert_int_equal(foreign_take(message(&b, NFT_MSG_NEWTABLE), &f), -EBADMSG);
	assert_int_equal(foreign_take(message(&b, NFT_MSG_NEWGEN), &f), -EBADMSG);
	nlh = message(&b, NFT_MSG_NEWTABLE);
	nlh->nlmsg_len = NLMSG_HDRLEN;
	assert_int_equal(foreign_take(nlh, &f), -EBADMSG);
}

/* ---- spoilt ---- */

static void read_all(const char *buf, size_t len)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	const struct nlmsghdr *nlh;
	size_t at = 0;

	while ((nlh = message_next(buf, len, &at)))
		assert_true(foreign_take(nlh, &f) <= 0);
	for (size_t i = 0; i < f.n_chains; i++)
		for (size_t j = 0; j < f.chains[i].n_rules; j++)
			foreign_packets(f.chains[i].rules[j].exprs);
}

/* Every byte of our own messages, one after the other. */
static void spoilt_messages_do_no_harm(void **state)
{
	static const unsigned char values[] = { 0, 1, 4, 0x7f, 0x80, 0xff };
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = CHANNEL_NULL;
	size_t len;

	(void)state;
	assert_int_equal(ruleset_build(&golden_policy, 1, &rs), 0);
	assert_int_equal(transaction_begin(&t, &ch, "test"), 0);
	assert_int_equal(commit_build_replace(&t, &rs), 0);
	len = t.items[t.n_items - 1].offset;
	for (size_t i = 0; i < len; i++)
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			char old = t.buf[i];

			t.buf[i] = (char)values[j];
			read_all(t.buf, len);
			t.buf[i] = old;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wanted_has_the_same_shape),
		cmocka_unit_test(unknown_expressions_stay),
		cmocka_unit_test(what_belongs_to_nothing_is_refused),
		cmocka_unit_test(spoilt_messages_do_no_harm),
	};

	return cmocka_run_group_tests_name("nft/foreign", tests, NULL, NULL);
}
