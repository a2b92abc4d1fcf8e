/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every single change to the table must be found and named.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>

#include <libnftnl/expr.h>

#include "nft/compare.h"
#include "tests/net/golden.h"

/* What a change may work on. */
struct change {
	const char *name;  /* of the test */
	const char *names; /* what the sentence must contain */
	void (*apply)(struct ruleset *rs, const struct change *c);
	size_t rule, expr;
	uint16_t attr;
	uint64_t value;
};

static void table_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_table_set_u32(rs->table, c->attr, (uint32_t)c->value);
}

static void chain_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_chain_set_u32(rs->chain, c->attr, (uint32_t)c->value);
}

static void chain_type(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_chain_set_str(rs->chain, NFTNL_CHAIN_TYPE, "route");
}

static void pool_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_set_set_u32(rs->pool, c->attr, (uint32_t)c->value);
}

static void strays_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_set_set_u32(rs->strays, c->attr, (uint32_t)c->value);
}

static void strays_u64(struct ruleset *rs, const struct change *c)
{
	nftnl_set_set_u64(rs->strays, c->attr, c->value);
}

static struct nftnl_expr *expr_at(struct nftnl_rule *rule, size_t index)
{
	struct nftnl_expr_iter *it = nftnl_expr_iter_create(rule);
	struct nftnl_expr *x;

	assert_non_null(it);
	for (x = nftnl_expr_iter_next(it); x && index > 0; index--)
		x = nftnl_expr_iter_next(it);
	nftnl_expr_iter_destroy(it);
	assert_non_null(x);
	return x;
}

static void expr_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u32(expr_at(rs->rules[c->rule], c->expr), c->attr, (uint32_t)c->value);
}

static void expr_u64(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u64(expr_at(rs->rules[c->rule], c->expr), c->attr, c->value);
}

static void expr_data(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set(expr_at(rs->rules[c->rule], c->expr), c->attr, &c->value, sizeof(c->value));
}

static void expr_set_name(struct ruleset *rs, const struct change *c)
{
	/* Setting it anew would leak the old one (libnftnl 1.2.4). */
	char *name = (char *)(uintptr_t)nftnl_expr_get_str(expr_at(rs->rules[c->rule], c->expr),
							   c->attr);

	name[0] = 'X';
}

static void expr_removed(struct ruleset *rs, const struct change *c)
{
	struct nftnl_expr *x = expr_at(rs->rules[c->rule], c->expr);

	nftnl_rule_del_expr(x);
	nftnl_expr_free(x);
}

static void expr_added(struct ruleset *rs, const struct change *c)
{
	nftnl_rule_add_expr(rs->rules[c->rule], nftnl_expr_alloc("notrack"));
}

static void dynset_inner(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_add_expr(expr_at(rs->rules[c->rule], c->expr), NFTNL_EXPR_DYNSET_EXPR,
			    nftnl_expr_alloc("limit"));
}

static void pool_expr(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_set_add_expr(rs->pool, nftnl_expr_alloc("quota"));
}

static void strays_expr(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_set_add_expr(rs->strays, nftnl_expr_alloc("limit"));
}

static void rules_swapped(struct ruleset *rs, const struct change *c)
{
	struct nftnl_rule *other = rs->rules[0];

	rs->rules[0] = rs->rules[c->rule];
	rs->rules[c->rule] = other;
}

static void last_rule_removed(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_rule_free(rs->rules[--rs->n_rules]);
	rs->rules[rs->n_rules] = NULL;
}

static void rule_added(struct ruleset *rs, const struct change *c)
{
	(void)c;
	rs->rules[rs->n_rules] = nftnl_rule_alloc();
	nftnl_rule_set_str(rs->rules[rs->n_rules++], NFTNL_RULE_CHAIN, CHAIN_OUTPUT);
}

static void unreadable_rule_added(struct ruleset *rs, const struct change *c)
{
	(void)c;
	rs->rules[rs->n_rules++] = NULL;
}

static void many_rules_added(struct ruleset *rs, const struct change *c)
{
	rs->n_rules += c->value;
}

static void rule_elsewhere(struct ruleset *rs, const struct change *c)
{
	nftnl_rule_set_str(rs->rules[c->rule], NFTNL_RULE_CHAIN, "elsewhere");
}

static void no_chain(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_chain_free(rs->chain);
	rs->chain = NULL;
}

static void no_pool(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_set_free(rs->pool);
	rs->pool = NULL;
}

static void no_strays(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_set_free(rs->strays);
	rs->strays = NULL;
}

static void no_table(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_table_free(rs->table);
	rs->table = NULL;
}

static void first_uids_removed(struct ruleset *rs, const struct change *c)
{
	rs->n_uids -= c->value;
	memmove(rs->uids, rs->uids + c->value, rs->n_uids * sizeof(*rs->uids));
}

static void last_uids_removed(struct ruleset *rs, const struct change *c)
{
	rs->n_uids -= c->value;
}

static void uid_added(struct ruleset *rs, const struct change *c)
{
	rs->uids = reallocarray(rs->uids, rs->n_uids + 1, sizeof(*rs->uids));
	assert_non_null(rs->uids);
	rs->uids[rs->n_uids++] = (uint32_t)c->value;
}

static void uid_changed(struct ruleset *rs, const struct change *c)
{
	rs->uids[c->rule] = (uint32_t)c->value;
}

#define C(n, s, f)                                                                                 \
	{                                                                                          \
		.name = n, .names = s, .apply = f                                                  \
	}
#define CV(n, s, f, a, v)                                                                          \
	{                                                                                          \
		.name = n, .names = s, .apply = f, .attr = a, .value = v                           \
	}
#define CX(n, s, f, r, x, a, v)                                                                    \
	{                                                                                          \
		n, s, f, r, x, a, v                                                                \
	}

static const struct change changes[] = {
	C("no table", "there is no table inet harpe_gov", no_table),
	CV("dormant", "flags 0x3", table_u32, NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER | 1),
	CV("not owned", "flags 0,", table_u32, NFTNL_TABLE_FLAGS, 0),
	CV("persistent", "flags 0x6", table_u32, NFTNL_TABLE_FLAGS, 6),
	CV("another owner", "owner 8", table_u32, NFTNL_TABLE_OWNER, 8),
	CV("another chain or set", "objects 4", table_u32, NFTNL_TABLE_USE, 4),

	C("no chain", "no chain output", no_chain),
	C("chain type", "type route", chain_type),
	CV("hook", "hook 1", chain_u32, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_IN),
	CV("priority later", "priority 10", chain_u32, NFTNL_CHAIN_PRIO, 10),
	CV("priority earlier", "priority -11", chain_u32, NFTNL_CHAIN_PRIO, (uint32_t)-11),
	CV("policy", "policy 0", chain_u32, NFTNL_CHAIN_POLICY, NF_DROP),
	CV("chain flags", "flags 0x3", chain_u32, NFTNL_CHAIN_FLAGS, 3),

	C("no pool", "no pool", no_pool),
	CV("pool flags", "flags 0x4", pool_u32, NFTNL_SET_FLAGS, NFT_SET_INTERVAL),
	CV("pool key length", "length 8", pool_u32, NFTNL_SET_KEY_LEN, 8),
	CV("pool key type", "type 25", pool_u32, NFTNL_SET_KEY_TYPE, 25),
	CV("pool size", "size 4", pool_u32, NFTNL_SET_DESC_SIZE, 4),
	CV("pool is a map", "data 0xffffff00", pool_u32, NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT),
	C("pool expression", "set pool: quota", pool_expr),

	C("no strays", "no strays", no_strays),
	CV("strays static", "flags 0x10", strays_u32, NFTNL_SET_FLAGS, NFT_SET_TIMEOUT),
	CV("strays key length", "length 4", strays_u32, NFTNL_SET_KEY_LEN, 4),
	CV("strays key type", "type 24", strays_u32, NFTNL_SET_KEY_TYPE, 24),
	CV("strays size", "size 1", strays_u32, NFTNL_SET_DESC_SIZE, 1),
	CV("strays timeout", "timeout 1000", strays_u64, NFTNL_SET_TIMEOUT, 1000),
	C("strays expression", "set strays: limit", strays_expr),

	CX("meta key", "rule 1: meta key 11", expr_u32, 0, 0, NFTNL_EXPR_META_KEY, NFT_META_SKGID),
	CX("meta register", "to 2", expr_u32, 0, 0, NFTNL_EXPR_META_DREG, NFT_REG_2),
	CX("lookup register", "from 2", expr_u32, 0, 1, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_2),
	CX("lookup inverted", "flags 0x1", expr_u32, 0, 1, NFTNL_EXPR_LOOKUP_FLAGS,
	   NFT_LOOKUP_F_INV),
	CX("lookup set", "set Xool", expr_set_name, 0, 1, NFTNL_EXPR_LOOKUP_SET, 0),
	CX("accept", "rule 1: immediate to 0, data -, verdict 1", expr_u32, 0, 2,
	   NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT),
	CX("return", "verdict -5", expr_u32, 0, 2, NFTNL_EXPR_IMM_VERDICT, (uint32_t)NFT_RETURN),
	CX("verdict to a register", "to 1", expr_u32, 0, 2, NFTNL_EXPR_IMM_DREG, NFT_REG_1),
	CX("no verdict", "rule 2 in chain", expr_removed, 0, 2, 0, 0),
	CX("no match", "rule 1: lookup", expr_removed, 0, 0, 0, 0),
	CX("something behind", "rule 1: notrack", expr_added, 0, 0, 0, 0),

	CX("socket key", "key 0", expr_u32, 1, 0, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_TRANSPARENT),
	CX("slice level", "rule 2: socket key 3, level 2", expr_u32, 1, 0, NFTNL_EXPR_SOCKET_LEVEL,
	   2),
	CX("slice id", "data 0201010101010101", expr_data, 1, 1, NFTNL_EXPR_CMP_DATA,
	   GOLDEN_SLICE_ID + 1),
	CX("not the slice", "op 1", expr_u32, 1, 1, NFTNL_EXPR_CMP_OP, NFT_CMP_NEQ),
	CX("compare register", "from 2", expr_u32, 1, 1, NFTNL_EXPR_CMP_SREG, NFT_REG_2),
	CX("scope level", "level 2", expr_u32, 1, 2, NFTNL_EXPR_SOCKET_LEVEL, 2),
	CX("dynset set", "set Xtrays", expr_set_name, 1, 3, NFTNL_EXPR_DYNSET_SET_NAME, 0),
	CX("dynset operation", "op 2", expr_u32, 1, 3, NFTNL_EXPR_DYNSET_OP, 2),
	CX("dynset inverted", "flags 0x1", expr_u32, 1, 3, NFTNL_EXPR_DYNSET_FLAGS, 1),
	CX("dynset timeout", "timeout 5", expr_u64, 1, 3, NFTNL_EXPR_DYNSET_TIMEOUT, 5),
	CX("dynset expression", "with counter limit", dynset_inner, 1, 3, 0, 0),

	CX("slice level of the drop", "rule 3: socket key 3, level 3", expr_u32, 2, 0,
	   NFTNL_EXPR_SOCKET_LEVEL, 3),
	CX("slice id of the drop", "rule 3: cmp", expr_data, 2, 1, NFTNL_EXPR_CMP_DATA, 5),
	CX("no counter", "rule 3: immediate", expr_removed, 2, 2, 0, 0),
	CX("continue", "verdict -1", expr_u32, 2, 3, NFTNL_EXPR_IMM_VERDICT,
	   (uint32_t)NFT_CONTINUE),

	CX("rules swapped", "rule 1: socket", rules_swapped, 2, 0, 0, 0),
	C("a rule less", "2 rules", last_rule_removed),
	C("a rule more", "rule 4 in chain output", rule_added),
	C("a rule of unknown kind", "rule 4 in chain ?, unreadable", unreadable_rule_added),
	CV("rules beyond counting", "rule 4 in chain ?", many_rules_added, 0, 1000),
	CX("rule in another chain", "rule 2 in chain elsewhere", rule_elsewhere, 1, 0, 0, 0),

	CV("first uid missing", "uid 90000 is missing", first_uids_removed, 0, 1),
	CV("last uid missing", "uid 90002 is missing", last_uids_removed, 0, 1),
	CV("all uids missing", "uid 90000 is missing", last_uids_removed, 0, 3),
	CV("uid too much", "uid 90003 is in set pool and", uid_added, 0, 90003),
	CX("uid in the wrong byte order", "uid 90002 is missing", uid_changed, 2, 0, 0, 0x925f0100),
	CX("another uid first", "uid 1 is in set pool and", uid_changed, 0, 0, 0, 1),
};

static void every_change_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, live = RULESET_NULL;
		struct error e = ERROR_NULL;

		assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &wanted), 0);
		assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &live), 0);
		changes[i].apply(&live, &changes[i]);
		assert_int_equal(ruleset_compare(&wanted, &live, &e), -ESTALE);
		if (!strstr(e.text, changes[i].names))
			fail_msg("%s: \"%s\" does not say \"%s\"", changes[i].name, e.text,
				 changes[i].names);
		/* And the other way round, should it ever be asked so. */
		if (live.table)
			assert_int_equal(ruleset_compare(&live, &wanted, NULL), -ESTALE);
	}
}

static void what_changes_by_itself_does_not_matter(void **state)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, live = RULESET_NULL;
	struct nftnl_expr *counter;

	(void)state;
	assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &wanted), 0);
	assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &live), 0);
	nftnl_table_set_u64(live.table, NFTNL_TABLE_HANDLE, 12);
	nftnl_chain_set_u64(live.chain, NFTNL_CHAIN_HANDLE, 12);
	nftnl_rule_set_u64(live.rules[1], NFTNL_RULE_HANDLE, 12);
	nftnl_set_set_u64(live.pool, NFTNL_SET_HANDLE, 12);
	nftnl_set_set_u32(live.pool, NFTNL_SET_ID, 12);
	nftnl_expr_set_u32(expr_at(live.rules[0], 1), NFTNL_EXPR_LOOKUP_SET_ID, 12);
	counter = expr_at(live.rules[2], 2);
	nftnl_expr_set_u64(counter, NFTNL_EXPR_CTR_PACKETS, 1000);
	nftnl_expr_set_u64(counter, NFTNL_EXPR_CTR_BYTES, 100000);
	assert_int_equal(ruleset_compare(&wanted, &live, NULL), 0);
}

static void strange_names_do_not_reach_the_sentence(void **state)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, live = RULESET_NULL;
	char name[256];
	struct error e = ERROR_NULL;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(name, "a\nb\033[31m", 8);
	assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &wanted), 0);
	assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &live), 0);
	nftnl_rule_set_str(live.rules[0], NFTNL_RULE_CHAIN, name);
	assert_int_equal(ruleset_compare(&wanted, &live, &e), -ESTALE);
	assert_non_null(strstr(e.text, "chain a?b?[31m"));
	assert_non_null(strstr(e.text, "instead of \"rule 1 in chain output\""));
	assert_null(strchr(e.text, '\n'));
	assert_null(strchr(e.text, '\033'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_change_is_found),
		cmocka_unit_test(what_changes_by_itself_does_not_matter),
		cmocka_unit_test(strange_names_do_not_reach_the_sentence),
	};

	return cmocka_run_group_tests_name("nft/compare", tests, NULL, NULL);
}
