/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/commit.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <string.h>

#include <libnftnl/expr.h>

#include "common/fd.h"

/* A nested attribute's length has 16 bits, and libnftnl does not look: beyond some 4000 elements
 * the kernel takes a part of them and says ok. */
#define ELEMENTS_PER_MESSAGE 1000
#define ELEMENTS_SPACE	     (TRANSACTION_MESSAGE_MAX - 512) /* but for headers and names */

#define TRIES 5

/* A name and nothing else: an existing table of any kind accepts that as an `add table`. */
static int add_table_name(struct transaction *t, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh =
		transaction_add(t, type, flags, OBJECT_OLD_TABLE, "table inet %s", FIREWALL_TABLE);

	if (!nlh)
		return -ENOMEM;
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, FIREWALL_TABLE);
	return 0;
}

static int add_table(struct transaction *t, const struct ruleset *rs)
{
	struct nlmsghdr *nlh = transaction_add(t, NFT_MSG_NEWTABLE, NLM_F_CREATE, OBJECT_TABLE,
					       "table inet %s", FIREWALL_TABLE);

	if (!nlh)
		return -ENOMEM;
	nftnl_table_nlmsg_build_payload(nlh, rs->table);
	return 0;
}

static int add_set(struct transaction *t, const struct ruleset_set *s)
{
	struct nlmsghdr *nlh =
		transaction_add(t, NFT_MSG_NEWSET, NLM_F_CREATE, OBJECT_SET, "set %s", s->name);

	if (!nlh)
		return -ENOMEM;
	nftnl_set_nlmsg_build_payload(nlh, s->set);
	return 0;
}

/* Elements take their counter from the set. */
static int add_elements(struct transaction *t, const struct ruleset_set *s, size_t from, size_t n)
{
	struct nlmsghdr *nlh =
		transaction_add(t, NFT_MSG_NEWSETELEM, NLM_F_CREATE, OBJECT_ELEMENTS,
				"elements %zu to %zu of set %s", from + 1, from + n, s->name);
	const uint8_t *element = s->elements.data + from * element_size(s->elements.kind);
	struct nlattr *list;

	if (!nlh)
		return -ENOMEM;
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, s->name);
	list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (; n > 0; n--, element += element_size(s->elements.kind))
		element_put(nlh, s->elements.kind, element);
	mnl_attr_nest_end(nlh, list);
	return 0;
}

static int add_all_elements(struct transaction *t, const struct ruleset_set *s)
{
	size_t n, most = ELEMENTS_SPACE / element_message_size(s->elements.kind);
	int r = 0;

	if (most > ELEMENTS_PER_MESSAGE)
		most = ELEMENTS_PER_MESSAGE;
	for (size_t i = 0; i < s->elements.n && r == 0; i += n) {
		n = s->elements.n - i;
		if (n > most)
			n = most;
		r = add_elements(t, s, i, n);
	}
	return r;
}

static int add_chain(struct transaction *t, const struct ruleset_chain *c)
{
	struct nlmsghdr *nlh = transaction_add(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE, OBJECT_CHAIN,
					       "chain %s", c->name);

	if (!nlh)
		return -ENOMEM;
	nftnl_chain_nlmsg_build_payload(nlh, c->chain);
	return 0;
}

static int note_kind(struct nftnl_expr *x, void *data)
{
	static const struct {
		const char *name;
		enum object_kind kind;
	} kinds[] = {
		{ "socket", OBJECT_SLICE_RULE },
		{ "log", OBJECT_LOG_RULE },
		{ "reject", OBJECT_REJECT_RULE },
	};
	const char *name = nftnl_expr_get_str(x, NFTNL_EXPR_NAME);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(name, kinds[i].name) == 0)
			*(enum object_kind *)data = kinds[i].kind;
	return 0;
}

/* By what in it needs a module. */
static enum object_kind rule_kind(struct nftnl_rule *rule)
{
	enum object_kind kind = OBJECT_RULE;

	nftnl_expr_foreach(rule, note_kind, &kind);
	return kind;
}

static int add_rules(struct transaction *t, const struct ruleset_chain *c)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		struct nlmsghdr *nlh = transaction_add(
			t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, rule_kind(c->rules[i]),
			"rule %zu of chain %s", i + 1, c->name);

		if (!nlh)
			return -ENOMEM;
		nftnl_rule_nlmsg_build_payload(nlh, c->rules[i]);
	}
	return 0;
}

static int add_sets_and_chains(struct transaction *t, const struct ruleset *rs)
{
	int r = 0;

	for (size_t i = 0; i < rs->n_sets && r == 0; i++)
		r = add_set(t, &rs->sets[i]);
	for (size_t i = 0; i < rs->n_chains && r == 0; i++)
		r = add_chain(t, &rs->chains[i]);
	return r;
}

/* Elements jump to chains, rules look up in sets. */
static int add_contents(struct transaction *t, const struct ruleset *rs)
{
	int r = 0;

	for (size_t i = 0; i < rs->n_sets && r == 0; i++)
		r = add_all_elements(t, &rs->sets[i]);
	for (size_t i = 0; i < rs->n_chains && r == 0; i++)
		r = add_rules(t, &rs->chains[i]);
	return r;
}

/* Adding before deleting makes it right whether there is a table or not. */
int commit_build_replace(struct transaction *t, const struct ruleset *rs)
{
	if (add_table_name(t, NFT_MSG_NEWTABLE, NLM_F_CREATE) < 0 ||
	    add_table_name(t, NFT_MSG_DELTABLE, 0) < 0 || add_table(t, rs) < 0 ||
	    add_sets_and_chains(t, rs) < 0 || add_contents(t, rs) < 0)
		return -ENOMEM;
	return 0;
}

static int build_remove(struct transaction *t, const struct ruleset *rs)
{
	(void)rs;
	if (add_table_name(t, NFT_MSG_NEWTABLE, NLM_F_CREATE) < 0 ||
	    add_table_name(t, NFT_MSG_DELTABLE, 0) < 0)
		return -ENOMEM;
	return 0;
}

/* All of them may be done twice without harm, so a doubtful one simply is. */
static int commit(struct channel *ch, int (*build)(struct transaction *, const struct ruleset *),
		  int (*send)(struct transaction *, enum object_kind *, struct error *),
		  const struct ruleset *rs, enum object_kind *ret_kind, struct error *e)
{
	int r = -EAGAIN;

	for (unsigned int tries = 0; r == -EAGAIN && tries < TRIES; tries++) {
		_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;

		r = transaction_begin(&t, ch, "table inet " FIREWALL_TABLE);
		if (r == 0)
			r = build(&t, rs);
		if (r < 0)
			return error_errno(e, r, "cannot build the firewall transaction");
		r = send(&t, ret_kind, e);
	}
	return r;
}

int commit_replace(struct channel *ch, const struct ruleset *wanted, enum object_kind *ret_kind,
		   struct error *e)
{
	return commit(ch, commit_build_replace, transaction_commit, wanted, ret_kind, e);
}

int commit_remove(struct channel *ch, enum object_kind *ret_kind, struct error *e)
{
	return commit(ch, build_remove, transaction_commit, NULL, ret_kind, e);
}

/* A name that nobody has: one table cannot be turned into another kind. */
#define TRIED_TABLE FIREWALL_TABLE "_tried"

int commit_try_table(struct channel *ch, uint32_t flags, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	enum object_kind refused = OBJECT_BATCH;
	int r;

	rs.table = nftnl_table_alloc();
	if (!rs.table || nftnl_table_set_str(rs.table, NFTNL_TABLE_NAME, TRIED_TABLE) < 0)
		return error_errno(e, -ENOMEM, "cannot build the firewall transaction");
	nftnl_table_set_u32(rs.table, NFTNL_TABLE_FLAGS, flags);
	r = commit(ch, add_table, transaction_check, &rs, &refused, e);
	if ((r == -EOPNOTSUPP || r == -EINVAL) && refused == OBJECT_TABLE)
		return 0;
	return r < 0 ? r : 1;
}
