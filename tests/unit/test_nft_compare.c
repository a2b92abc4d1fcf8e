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

/* Where things are in the golden table. */
enum { POOL, STRAYS, LOGGED, PROFILES, IP4, IP6 };
enum { OUTPUT, GUESTS, DROP, WEB };

/* What a change may work on. */
struct change {
	const char *name;  /* of the test */
	const char *names; /* what the sentence must contain */
	void (*apply)(struct ruleset *rs, const struct change *c);
	size_t object, rule, expr; /* set or chain */
	uint16_t attr;
	uint64_t value;
};

static void table_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_table_set_u32(rs->table, c->attr, (uint32_t)c->value);
}

static void chain_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_chain_set_u32(rs->chains[c->object].chain, c->attr, (uint32_t)c->value);
}

static void chain_type(struct ruleset *rs, const struct change *c)
{
	nftnl_chain_set_str(rs->chains[c->object].chain, NFTNL_CHAIN_TYPE, "route");
}

static void set_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_set_set_u32(rs->sets[c->object].set, c->attr, (uint32_t)c->value);
}

static void set_u64(struct ruleset *rs, const struct change *c)
{
	nftnl_set_set_u64(rs->sets[c->object].set, c->attr, c->value);
}

static void set_parts(struct ruleset *rs, const struct change *c)
{
	static const uint8_t parts[] = { 1, 4, 4 };

	nftnl_set_set_data(rs->sets[c->object].set, NFTNL_SET_DESC_CONCAT, parts, sizeof(parts));
}

static void set_expr(struct ruleset *rs, const struct change *c)
{
	nftnl_set_add_expr(rs->sets[c->object].set, nftnl_expr_alloc("quota"));
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

static struct nftnl_expr *expr_of(struct ruleset *rs, const struct change *c)
{
	return expr_at(rs->chains[c->object].rules[c->rule], c->expr);
}

static void expr_u8(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u8(expr_of(rs, c), c->attr, (uint8_t)c->value);
}

static void expr_u16(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u16(expr_of(rs, c), c->attr, (uint16_t)c->value);
}

static void expr_u32(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u32(expr_of(rs, c), c->attr, (uint32_t)c->value);
}

static void expr_u64(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set_u64(expr_of(rs, c), c->attr, c->value);
}

static void expr_data(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set(expr_of(rs, c), c->attr, &c->value, sizeof(c->value));
}

static void expr_byte(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_set(expr_of(rs, c), c->attr, &c->value, 1);
}

static void expr_text(struct ruleset *rs, const struct change *c)
{
	/* Setting it anew would leak the old one (libnftnl 1.2.4). */
	char *text = (char *)(uintptr_t)nftnl_expr_get_str(expr_of(rs, c), c->attr);

	text[0] = 'X';
}

static void expr_removed(struct ruleset *rs, const struct change *c)
{
	struct nftnl_expr *x = expr_of(rs, c);

	nftnl_rule_del_expr(x);
	nftnl_expr_free(x);
}

static void expr_added(struct ruleset *rs, const struct change *c)
{
	nftnl_rule_add_expr(rs->chains[c->object].rules[c->rule], nftnl_expr_alloc("notrack"));
}

static void dynset_inner(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_add_expr(expr_of(rs, c), NFTNL_EXPR_DYNSET_EXPR, nftnl_expr_alloc("limit"));
}

static int change_inner(struct nftnl_expr *x, void *data)
{
	const struct change *c = data;

	nftnl_expr_set_u64(x, c->attr, c->value);
	return 0;
}

static void dynset_rate(struct ruleset *rs, const struct change *c)
{
	nftnl_expr_expr_foreach(expr_of(rs, c), change_inner, (void *)(uintptr_t)c);
}

static void first_rules_swapped(struct ruleset *rs, const struct change *c)
{
	struct ruleset_chain *chain = &rs->chains[c->object];
	struct nftnl_rule *other = chain->rules[0];

	chain->rules[0] = chain->rules[c->rule];
	chain->rules[c->rule] = other;
}

static void last_rule_removed(struct ruleset *rs, const struct change *c)
{
	struct ruleset_chain *chain = &rs->chains[c->object];

	nftnl_rule_free(chain->rules[--chain->n_rules]);
	chain->rules[chain->n_rules] = NULL;
}

static void rule_added(struct ruleset *rs, const struct change *c)
{
	struct ruleset_chain *chain = &rs->chains[c->object];

	chain->rules[chain->n_rules] = nftnl_rule_alloc();
	nftnl_rule_set_str(chain->rules[chain->n_rules++], NFTNL_RULE_CHAIN, chain->name);
}

static void unreadable_rule_added(struct ruleset *rs, const struct change *c)
{
	rs->chains[c->object].rules[rs->chains[c->object].n_rules++] = NULL;
}

static void many_rules_added(struct ruleset *rs, const struct change *c)
{
	rs->chains[c->object].n_rules += c->value;
}

static void rule_elsewhere(struct ruleset *rs, const struct change *c)
{
	nftnl_rule_set_str(rs->chains[c->object].rules[c->rule], NFTNL_RULE_CHAIN, "elsewhere");
}

static void no_chain(struct ruleset *rs, const struct change *c)
{
	nftnl_chain_free(rs->chains[c->object].chain);
	rs->chains[c->object].chain = NULL;
}

static void no_set(struct ruleset *rs, const struct change *c)
{
	nftnl_set_free(rs->sets[c->object].set);
	rs->sets[c->object].set = NULL;
}

static void no_table(struct ruleset *rs, const struct change *c)
{
	(void)c;
	nftnl_table_free(rs->table);
	rs->table = NULL;
}

static uint8_t *element_at(const struct elements *els, size_t index)
{
	return els->data + index * element_size(els->kind);
}

static void first_elements_removed(struct ruleset *rs, const struct change *c)
{
	struct elements *els = &rs->sets[c->object].elements;

	els->n -= c->value;
	memmove(els->data, element_at(els, c->value), els->n * element_size(els->kind));
}

static void last_elements_removed(struct ruleset *rs, const struct change *c)
{
	rs->sets[c->object].elements.n -= c->value;
}

static void uid_added(struct ruleset *rs, const struct change *c)
{
	struct elements *els = &rs->sets[POOL].elements;

	assert_int_equal(elements_reserve(els, 1), 0);
	element_of_uid((uint32_t)c->value, element_at(els, els->n++));
}

static void uid_changed(struct ruleset *rs, const struct change *c)
{
	element_of_uid((uint32_t)c->value, element_at(&rs->sets[POOL].elements, c->rule));
	elements_sort(&rs->sets[POOL].elements);
}

/* Byte @attr of element @rule. */
static void byte_changed(struct ruleset *rs, const struct change *c)
{
	element_at(&rs->sets[c->object].elements, c->rule)[c->attr] = (uint8_t)c->value;
	elements_sort(&rs->sets[c->object].elements);
}

static void foreign_element(struct ruleset *rs, const struct change *c)
{
	rs->sets[c->object].elements.foreign = true;
}

/* Of a set or chain; of an attribute of one; of an expression of a rule. */
#define C(n, s, f, o)                                                                              \
	{                                                                                          \
		n, s, f, o, 0, 0, 0, 0                                                             \
	}
#define CV(n, s, f, o, a, v)                                                                       \
	{                                                                                          \
		n, s, f, o, 0, 0, a, v                                                             \
	}
#define CX(n, s, f, o, r, x, a, v)                                                                 \
	{                                                                                          \
		n, s, f, o, r, x, a, v                                                             \
	}

static const struct change changes[] = {
	C("no table", "there is no table inet harpe_gov", no_table, 0),
	CV("dormant", "flags 0x3", table_u32, 0, NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER | 1),
	CV("not owned", "flags 0,", table_u32, 0, NFTNL_TABLE_FLAGS, 0),
	CV("persistent", "flags 0x6", table_u32, 0, NFTNL_TABLE_FLAGS, 6),
	CV("another owner", "owner 8", table_u32, 0, NFTNL_TABLE_OWNER, 8),
	CV("another chain or set", "objects 11", table_u32, 0, NFTNL_TABLE_USE, 11),

	C("no chain", "no chain output", no_chain, OUTPUT),
	C("chain type", "type route", chain_type, OUTPUT),
	CV("hook", "hook 1", chain_u32, OUTPUT, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_IN),
	CV("priority later", "priority 10", chain_u32, OUTPUT, NFTNL_CHAIN_PRIO, 10),
	CV("priority earlier", "priority -11", chain_u32, OUTPUT, NFTNL_CHAIN_PRIO, (uint32_t)-11),
	CV("policy", "policy 0", chain_u32, OUTPUT, NFTNL_CHAIN_POLICY, NF_DROP),
	CV("chain flags", "flags 0x3", chain_u32, OUTPUT, NFTNL_CHAIN_FLAGS, 3),
	C("no chain of guests", "no chain guests", no_chain, GUESTS),
	C("no chain of a profile", "no chain profile_web", no_chain, WEB),
	C("a profile's chain has a type", "type route", chain_type, WEB),

	C("no pool", "no set pool", no_set, POOL),
	CV("pool flags", "flags 0x4", set_u32, POOL, NFTNL_SET_FLAGS, NFT_SET_INTERVAL),
	CV("pool key length", "length 8", set_u32, POOL, NFTNL_SET_KEY_LEN, 8),
	CV("pool key type", "type 25", set_u32, POOL, NFTNL_SET_KEY_TYPE, 25),
	CV("pool size", "size 4", set_u32, POOL, NFTNL_SET_DESC_SIZE, 4),
	CV("pool is a map", "data 0xffffff00", set_u32, POOL, NFTNL_SET_DATA_TYPE,
	   NFT_DATA_VERDICT),
	C("pool expression", "set pool: quota", set_expr, POOL),

	C("no strays", "no set strays", no_set, STRAYS),
	CV("strays static", "flags 0x10", set_u32, STRAYS, NFTNL_SET_FLAGS, NFT_SET_TIMEOUT),
	CV("strays key length", "length 4", set_u32, STRAYS, NFTNL_SET_KEY_LEN, 4),
	CV("strays key type", "type 24", set_u32, STRAYS, NFTNL_SET_KEY_TYPE, 24),
	CV("strays size", "size 1", set_u32, STRAYS, NFTNL_SET_DESC_SIZE, 1),
	CV("strays timeout", "timeout 1000", set_u64, STRAYS, NFTNL_SET_TIMEOUT, 1000),
	C("strays expression", "set strays: quota", set_expr, STRAYS),

	C("no set of those logged", "no set logged", no_set, LOGGED),
	CV("logged size", "size 1", set_u32, LOGGED, NFTNL_SET_DESC_SIZE, 1),
	C("no map of profiles", "no set profiles", no_set, PROFILES),
	CV("profiles lead nowhere", "flags 0", set_u32, PROFILES, NFTNL_SET_FLAGS, 0),
	C("no set of destinations", "no set web_ip4", no_set, IP4),
	CV("destinations are exact", "flags 0x80", set_u32, IP4, NFTNL_SET_FLAGS, NFT_SET_CONCAT),
	C("parts of destinations", "parts 010404", set_parts, IP4),
	C("destinations expression", "set web_ip6: quota", set_expr, IP6),

	CX("slice level", "rule 1 in chain output: socket key 3, level 2", expr_u32, OUTPUT, 0, 0,
	   NFTNL_EXPR_SOCKET_LEVEL, 2),
	CX("slice id", "data 0201010101010101", expr_data, OUTPUT, 0, 1, NFTNL_EXPR_CMP_DATA,
	   GOLDEN_SLICE_ID + 1),
	CX("not the slice", "op 1", expr_u32, OUTPUT, 0, 1, NFTNL_EXPR_CMP_OP, NFT_CMP_NEQ),
	CX("compare register", "from 2", expr_u32, OUTPUT, 0, 1, NFTNL_EXPR_CMP_SREG, NFT_REG_2),
	CX("jump elsewhere", "chain Xuests", expr_text, OUTPUT, 0, 2, NFTNL_EXPR_IMM_CHAIN, 0),
	CX("goto", "verdict -4", expr_u32, OUTPUT, 0, 2, NFTNL_EXPR_IMM_VERDICT,
	   (uint32_t)NFT_GOTO),

	CX("meta key", "rule 2 in chain output: meta key 11", expr_u32, OUTPUT, 1, 0,
	   NFTNL_EXPR_META_KEY, NFT_META_SKGID),
	CX("meta register", "to 2", expr_u32, OUTPUT, 1, 0, NFTNL_EXPR_META_DREG, NFT_REG_2),
	CX("lookup register", "from 2", expr_u32, OUTPUT, 1, 1, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_2),
	CX("lookup inverted", "flags 0x1", expr_u32, OUTPUT, 1, 1, NFTNL_EXPR_LOOKUP_FLAGS,
	   NFT_LOOKUP_F_INV),
	CX("lookup set", "set Xool", expr_text, OUTPUT, 1, 1, NFTNL_EXPR_LOOKUP_SET, 0),
	CX("accept", "rule 2 in chain output: immediate to 0, data -, verdict 1", expr_u32, OUTPUT,
	   1, 2, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT),
	CX("return", "verdict -5", expr_u32, OUTPUT, 1, 2, NFTNL_EXPR_IMM_VERDICT,
	   (uint32_t)NFT_RETURN),
	CX("verdict to a register", "to 1", expr_u32, OUTPUT, 1, 2, NFTNL_EXPR_IMM_DREG, NFT_REG_1),
	CX("no verdict", "it has \"2 rules in chain output\"", expr_removed, OUTPUT, 1, 2, 0, 0),
	CX("no match", "rule 2 in chain output: lookup", expr_removed, OUTPUT, 1, 0, 0, 0),
	CX("something behind", "rule 2 in chain output: notrack", expr_added, OUTPUT, 1, 0, 0, 0),

	CX("socket key", "key 0", expr_u32, GUESTS, 0, 0, NFTNL_EXPR_SOCKET_KEY,
	   NFT_SOCKET_TRANSPARENT),
	CX("profile level", "level 1", expr_u32, GUESTS, 0, 0, NFTNL_EXPR_SOCKET_LEVEL, 1),
	CX("another map", "set Xrofiles", expr_text, GUESTS, 0, 1, NFTNL_EXPR_LOOKUP_SET, 0),
	CX("map to a register", "to 1", expr_u32, GUESTS, 0, 1, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_1),
	CX("scope level", "level 2", expr_u32, GUESTS, 2, 0, NFTNL_EXPR_SOCKET_LEVEL, 2),
	CX("child scope level", "level 3", expr_u32, GUESTS, 3, 0, NFTNL_EXPR_SOCKET_LEVEL, 3),
	CX("dynset set", "set Xtrays", expr_text, GUESTS, 2, 1, NFTNL_EXPR_DYNSET_SET_NAME, 0),
	CX("dynset operation", "op 2", expr_u32, GUESTS, 2, 1, NFTNL_EXPR_DYNSET_OP, 2),
	CX("dynset inverted", "flags 0x1", expr_u32, GUESTS, 2, 1, NFTNL_EXPR_DYNSET_FLAGS, 1),
	CX("dynset timeout", "timeout 5", expr_u64, GUESTS, 2, 1, NFTNL_EXPR_DYNSET_TIMEOUT, 5),
	CX("dynset expression", "with counter limit", dynset_inner, GUESTS, 2, 1, 0, 0),
	CX("no counter", "rule 5 in chain guests: immediate", expr_removed, GUESTS, 4, 0, 0, 0),
	CX("continue", "verdict -1", expr_u32, GUESTS, 4, 1, NFTNL_EXPR_IMM_VERDICT,
	   (uint32_t)NFT_CONTINUE),

	CX("others are guests",
	   "rule 1 in chain profile_drop: lookup from 1, to 0, set pool, "
	   "flags 0\"",
	   expr_u32, DROP, 0, 1, NFTNL_EXPR_LOOKUP_FLAGS, 0),
	CX("a profile without entries accepts", "verdict 1", expr_u32, DROP, 0, 2,
	   NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT),
	CX("another family", "data 0a", expr_byte, WEB, 1, 1, NFTNL_EXPR_CMP_DATA, NFPROTO_IPV6),
	CX("options are not looked at", "and 00", expr_byte, WEB, 1, 3, NFTNL_EXPR_BITWISE_MASK, 0),
	CX("options are allowed", "data 06", expr_byte, WEB, 1, 4, NFTNL_EXPR_CMP_DATA, 6),
	CX("the source counts", "offset 12", expr_u32, WEB, 1, 6, NFTNL_EXPR_PAYLOAD_OFFSET, 12),
	CX("the source port counts", "base 2, offset 0", expr_u32, WEB, 1, 7,
	   NFTNL_EXPR_PAYLOAD_OFFSET, 0),
	CX("another header", "base 1, offset 2", expr_u32, WEB, 1, 7, NFTNL_EXPR_PAYLOAD_BASE,
	   NFT_PAYLOAD_NETWORK_HEADER),
	CX("fewer bytes", "length 8", expr_u32, WEB, 2, 3, NFTNL_EXPR_PAYLOAD_LEN, 8),
	CX("another register", "to 12", expr_u32, WEB, 2, 4, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG32_04),
	CX("another profile's set", "set Xeb_ip6", expr_text, WEB, 2, 5, NFTNL_EXPR_LOOKUP_SET, 0),
	CX("all but what is allowed", "set web_ip6, flags 0x1", expr_u32, WEB, 2, 5,
	   NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV),
	CX("rate of the log", "rate 1,", dynset_rate, WEB, 3, 1, NFTNL_EXPR_LIMIT_RATE, 1),
	CX("prefix of the log", "prefix Xarpe-gov", expr_text, WEB, 3, 2, NFTNL_EXPR_LOG_PREFIX, 0),
	CX("group of the log", "group 6", expr_u16, WEB, 3, 2, NFTNL_EXPR_LOG_GROUP, 6),
	CX("to the kernel log", "level 4", expr_u32, WEB, 3, 2, NFTNL_EXPR_LOG_LEVEL, 4),
	CX("reject by the other means", "reject type 1", expr_u32, WEB, 4, 2,
	   NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_TCP_RST),
	CX("reject code", "code 3", expr_u8, WEB, 4, 2, NFTNL_EXPR_REJECT_CODE,
	   NFT_REJECT_ICMPX_ADMIN_PROHIBITED),

	CX("rules swapped", "rule 1 in chain output: meta", first_rules_swapped, OUTPUT, 1, 0, 0,
	   0),
	CX("rules of guests swapped", "rule 1 in chain guests: counter", first_rules_swapped,
	   GUESTS, 4, 0, 0, 0),
	C("a rule less", "1 rules in chain output", last_rule_removed, OUTPUT),
	C("a rule of guests less", "4 rules in chain guests", last_rule_removed, GUESTS),
	C("a rule of a profile less", "4 rules in chain profile_web", last_rule_removed, WEB),
	C("a rule more", "rule 3 in chain output", rule_added, OUTPUT),
	C("a rule of a profile more", "rule 2 in chain profile_drop", rule_added, DROP),
	C("a rule of unknown kind", "rule 3 in chain output, unreadable", unreadable_rule_added,
	  OUTPUT),
	CV("rules beyond counting", "rule 3 in chain output", many_rules_added, OUTPUT, 0, 1000),
	CX("rule in another chain", "rule 2 in chain elsewhere", rule_elsewhere, OUTPUT, 1, 0, 0,
	   0),

	CV("first uid missing", "uid 90000 is missing", first_elements_removed, POOL, 0, 1),
	CV("last uid missing", "uid 90002 is missing", last_elements_removed, POOL, 0, 1),
	CV("all uids missing", "uid 90000 is missing", last_elements_removed, POOL, 0, 3),
	CV("uid too much", "uid 90003 is in set pool and", uid_added, POOL, 0, 90003),
	CX("uid in the wrong byte order", "uid 90002 is missing", uid_changed, POOL, 2, 0, 0,
	   0x925f0100),
	CX("another uid first", "uid 1 is in set pool and", uid_changed, POOL, 0, 0, 0, 1),

	CV("profile missing",
	   "cgroup 217020518514230019 to chain profile_web is missing in set "
	   "profiles",
	   last_elements_removed, PROFILES, 0, 1),
	CX("profile leads elsewhere", "to chain profile_drop is missing", byte_changed, PROFILES, 0,
	   0, 8, 'q'),
	CX("another slice",
	   "cgroup 144680345676153345 to chain profile_drop is in set profiles "
	   "and should not be",
	   byte_changed, PROFILES, 0, 0, 0, 1),
	CV("destination missing", "icmp 192.0.2.1-192.0.2.1 0-65535 is missing in set web_ip4",
	   first_elements_removed, IP4, 0, 1),
	CX("another protocol", "tcp 192.0.2.10-192.0.2.10 443-443 is missing", byte_changed, IP4, 1,
	   0, 0, 0x11),
	CX("another address", "tcp 192.0.2.10-192.0.2.10 443-443 is missing", byte_changed, IP4, 1,
	   0, 7, 11),
	CX("a wider range", "tcp 192.0.2.10-192.0.2.10 443-443 is missing", byte_changed, IP4, 1, 0,
	   12 + 8, 2),
	CX("another network", "8000-8100 is missing in set web_ip6", byte_changed, IP6, 0, 0,
	   24 + 4, 0xff),
	C("anything", "set web_ip4 has an element of a kind that is not ours", foreign_element,
	  IP4),
};

/* One part alone differs, and says of the live table what the whole comparison says. Without a
 * table all do. */
static void assert_one_part(const struct ruleset *wanted, const struct ruleset *live,
			    const char *sentence)
{
	const char *instead = strstr(sentence, " instead of ");
	size_t said = instead ? (size_t)(instead - sentence) : strlen(sentence), n = 0;

	for (int i = 0; i < FIREWALL_PART_COUNT; i++) {
		struct error e = ERROR_NULL;

		if (ruleset_compare_part(wanted, live, (enum firewall_part)i, &e) == 0)
			continue;
		if (strncmp(e.text, sentence, said) != 0)
			fail_msg("\"%s\" is not \"%s\"", e.text, sentence);
		n++;
	}
	assert_int_equal(n, live->table ? 1 : FIREWALL_PART_COUNT);
}

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
		assert_one_part(&wanted, &live, e.text);
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
	nftnl_chain_set_u64(live.chains[OUTPUT].chain, NFTNL_CHAIN_HANDLE, 12);
	nftnl_rule_set_u64(live.chains[GUESTS].rules[1], NFTNL_RULE_HANDLE, 12);
	nftnl_set_set_u64(live.sets[POOL].set, NFTNL_SET_HANDLE, 12);
	nftnl_set_set_u32(live.sets[POOL].set, NFTNL_SET_ID, 12);
	nftnl_expr_set_u32(expr_at(live.chains[OUTPUT].rules[1], 1), NFTNL_EXPR_LOOKUP_SET_ID, 12);
	counter = expr_at(live.chains[GUESTS].rules[4], 0);
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
	nftnl_rule_set_str(live.chains[OUTPUT].rules[0], NFTNL_RULE_CHAIN, name);
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
