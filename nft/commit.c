/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/commit.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <string.h>

#include "common/fd.h"

/* A nested attribute's length has 16 bits, and libnftnl does not look: beyond some 4000 elements
 * the kernel takes a part of them and says ok. */
#define ELEMENTS_PER_MESSAGE 1000

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

static int add_set(struct transaction *t, struct nftnl_set *set)
{
	struct nlmsghdr *nlh = transaction_add(t, NFT_MSG_NEWSET, NLM_F_CREATE, OBJECT_SET,
					       "set %s", nftnl_set_get_str(set, NFTNL_SET_NAME));

	if (!nlh)
		return -ENOMEM;
	nftnl_set_nlmsg_build_payload(nlh, set);
	return 0;
}

/* Elements take their counter from the set. */
static int add_uids(struct transaction *t, const uint32_t *uids, size_t n)
{
	struct nlmsghdr *nlh =
		transaction_add(t, NFT_MSG_NEWSETELEM, NLM_F_CREATE, OBJECT_ELEMENTS,
				"elements %u to %u of set %s", uids[0], uids[n - 1], SET_POOL);
	struct nlattr *list, *element, *key;

	if (!nlh)
		return -ENOMEM;
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, SET_POOL);
	list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < n; i++) {
		element = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
		key = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_KEY);
		mnl_attr_put_u32(nlh, NFTA_DATA_VALUE, uids[i]); /* host byte order: table.c */
		mnl_attr_nest_end(nlh, key);
		mnl_attr_nest_end(nlh, element);
	}
	mnl_attr_nest_end(nlh, list);
	return 0;
}

static int add_pool_elements(struct transaction *t, const struct ruleset *rs)
{
	size_t n;
	int r = 0;

	for (size_t i = 0; i < rs->n_uids && r == 0; i += n) {
		n = rs->n_uids - i;
		if (n > ELEMENTS_PER_MESSAGE)
			n = ELEMENTS_PER_MESSAGE;
		r = add_uids(t, rs->uids + i, n);
	}
	return r;
}

static int add_chain(struct transaction *t, const struct ruleset *rs)
{
	struct nlmsghdr *nlh = transaction_add(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE, OBJECT_CHAIN,
					       "chain %s", CHAIN_OUTPUT);

	if (!nlh)
		return -ENOMEM;
	nftnl_chain_nlmsg_build_payload(nlh, rs->chain);
	return 0;
}

static int add_rules(struct transaction *t, const struct ruleset *rs)
{
	for (size_t i = 0; i < rs->n_rules; i++) {
		struct nlmsghdr *nlh =
			transaction_add(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND,
					i == 0 ? OBJECT_POOL_RULE : OBJECT_SLICE_RULE,
					"rule %zu of chain %s", i + 1, CHAIN_OUTPUT);

		if (!nlh)
			return -ENOMEM;
		nftnl_rule_nlmsg_build_payload(nlh, rs->rules[i]);
	}
	return 0;
}

/* Adding before deleting makes it right whether there is a table or not. */
int commit_build_replace(struct transaction *t, const struct ruleset *rs)
{
	if (add_table_name(t, NFT_MSG_NEWTABLE, NLM_F_CREATE) < 0 ||
	    add_table_name(t, NFT_MSG_DELTABLE, 0) < 0 || add_table(t, rs) < 0 ||
	    add_set(t, rs->pool) < 0 || add_set(t, rs->strays) < 0 ||
	    add_pool_elements(t, rs) < 0 || add_chain(t, rs) < 0 || add_rules(t, rs) < 0)
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

/* Both transactions may be done twice without harm, so a doubtful one simply is. */
static int commit(struct channel *ch, int (*build)(struct transaction *, const struct ruleset *),
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
		r = transaction_commit(&t, ret_kind, e);
	}
	return r;
}

int commit_replace(struct channel *ch, const struct ruleset *wanted, enum object_kind *ret_kind,
		   struct error *e)
{
	return commit(ch, commit_build_replace, wanted, ret_kind, e);
}

int commit_remove(struct channel *ch, enum object_kind *ret_kind, struct error *e)
{
	return commit(ch, build_remove, NULL, ret_kind, e);
}
