/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "nft/commit.h"
#include "nft/compare.h"
#include "nft/live.h"
#include "tests/net/golden.h"

static void golden_listing(char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(golden); i++)
		used += (size_t)snprintf(buf + used, size - used, "%s", golden[i].listing);
	assert_true(used < size);
}

static void objects_are_as_written_down(void **state)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	_cleanup_free_ char *text = NULL;
	char wanted[4096];

	(void)state;
	assert_int_equal(ruleset_build(&golden_policy, GOLDEN_OWNER, &rs), 0);
	text = ruleset_describe(&rs);
	assert_non_null(text);
	golden_listing(wanted, sizeof(wanted));
	assert_string_equal(text, wanted);
}

/* The bytes that go to the kernel, read as if they came from there. */
static void read_messages(const struct transaction *t, struct ruleset *rs)
{
	for (size_t i = 1; i < t->n_items; i++) {
		const struct nlmsghdr *nlh = (const void *)(t->buf + t->items[i].offset);

		assert_int_equal(NFNL_SUBSYS_ID(nlh->nlmsg_type), NFNL_SUBSYS_NFTABLES);
		assert_int_equal(nlh->nlmsg_seq, t->first_seq + (uint32_t)i);
		assert_true(nlh->nlmsg_len <= TRANSACTION_MESSAGE_MAX);
		if (NFNL_MSG_TYPE(nlh->nlmsg_type) == NFT_MSG_DELTABLE)
			continue;
		assert_int_equal(live_take(nlh, rs), 0);
	}
}

static void build_transaction(const struct firewall_policy *policy, uint32_t owner,
			      struct channel *ch, struct transaction *t)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;

	assert_int_equal(ruleset_build(policy, owner, &rs), 0);
	assert_int_equal(transaction_begin(t, ch, "test"), 0);
	assert_int_equal(commit_build_replace(t, &rs), 0);
}

static void messages_say_what_objects_say(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = CHANNEL_NULL;
	_cleanup_free_ char *text = NULL;
	char wanted[4096];

	(void)state;
	build_transaction(&golden_policy, GOLDEN_OWNER, &ch, &t);
	read_messages(&t, &rs);
	/* The kernel's own additions. */
	nftnl_table_set_u32(rs.table, NFTNL_TABLE_OWNER, GOLDEN_OWNER);
	nftnl_table_set_u32(rs.table, NFTNL_TABLE_USE, 3);
	text = ruleset_describe(&rs);
	golden_listing(wanted, sizeof(wanted));
	assert_string_equal(text, wanted);
	assert_int_equal(rs.n_uids, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rs.uids[i], 90000 + i);
}

static void one_transaction_in_order(void **state)
{
	static const uint16_t types[] = {
		NFT_MSG_NEWTABLE, NFT_MSG_DELTABLE,   NFT_MSG_NEWTABLE, NFT_MSG_NEWSET,
		NFT_MSG_NEWSET,	  NFT_MSG_NEWSETELEM, NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE,
		NFT_MSG_NEWRULE,  NFT_MSG_NEWRULE,
	};
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;

	(void)state;
	build_transaction(&golden_policy, 0, &ch, &t);
	assert_int_equal(t.n_items, 1 + ARRAY_SIZE(types));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct nlmsghdr *nlh = (const void *)(t.buf + t.items[i + 1].offset);

		assert_int_equal(NFNL_MSG_TYPE(nlh->nlmsg_type), types[i]);
	}
	assert_string_equal(t.items[6].name, "elements 90000 to 90002 of set pool");
}

static int find_flags(const struct nlattr *attr, void *data)
{
	if (mnl_attr_get_type(attr) == NFTA_TABLE_FLAGS)
		*(bool *)data = true;
	return MNL_CB_OK;
}

/* With flags, an existing table of other flags would refuse the first message. */
static void making_room_names_no_flags(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;
	bool flags = false;

	(void)state;
	build_transaction(&golden_policy, GOLDEN_OWNER, &ch, &t);
	for (size_t i = 1; i <= 2; i++) {
		const struct nlmsghdr *nlh = (const void *)(t.buf + t.items[i].offset);

		mnl_attr_parse(nlh, sizeof(struct nfgenmsg), find_flags, &flags);
		assert_false(flags);
	}
}

static void every_uid_of_the_largest_pool_is_sent(void **state)
{
	const struct firewall_policy policy = {
		.first_uid = 100000,
		.uid_count = RULESET_UIDS_MAX,
		.slice_id = 1,
		.slice_level = 1,
		.scope_level = 3,
	};
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = CHANNEL_NULL;

	(void)state;
	build_transaction(&policy, 0, &ch, &t);
	read_messages(&t, &rs);
	assert_int_equal(rs.n_uids, policy.uid_count);
	for (uint32_t i = 0; i < policy.uid_count; i++)
		assert_int_equal(rs.uids[i], policy.first_uid + i);
}

static void sequence_numbers_may_wrap(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = { .fd = -1, .seq = UINT32_MAX - 3 };

	(void)state;
	build_transaction(&golden_policy, 0, &ch, &t);
	read_messages(&t, &rs);
	assert_int_equal(rs.n_rules, RULESET_RULES);
}

static void nonsense_is_refused(void **state)
{
	static const struct firewall_policy bad[] = {
		{ 90000, 0, 1, 1, 3 },
		{ 90000, RULESET_UIDS_MAX + 1, 1, 1, 3 },
		{ 0, 1, 1, 1, 3 },
		{ UINT32_MAX, 1, 1, 1, 3 },
		{ UINT32_MAX - 1, 2, 1, 1, 3 },
		{ 90000, 1, 0, 1, 3 },
		{ 90000, 1, 1, 0, 3 },
		{ 90000, 1, 1, 4, 3 },
		{ 90000, 1, 1, 1, 256 },
	};
	static const struct firewall_policy good[] = {
		{ 1, 1, 1, 1, 1 },
		{ UINT32_MAX - 2, 1, UINT64_MAX, 1, 255 },
		{ 65536, RULESET_UIDS_MAX, 1, 1, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error e = ERROR_NULL;

		assert_int_equal(policy_check(&bad[i], &e), -EINVAL);
		assert_true(strlen(e.text) > 10);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(policy_check(&good[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_as_written_down),
		cmocka_unit_test(messages_say_what_objects_say),
		cmocka_unit_test(one_transaction_in_order),
		cmocka_unit_test(making_room_names_no_flags),
		cmocka_unit_test(every_uid_of_the_largest_pool_is_sent),
		cmocka_unit_test(sequence_numbers_may_wrap),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("nft/table", tests, NULL, NULL);
}
