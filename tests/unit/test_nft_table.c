/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>

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
	char wanted[16384];

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

/* What is compared byte by byte is as in the packet, in every byte order. */
static const uint8_t golden_ip4[][2 * 12] = {
	{ 1, 0, 0, 0, 192, 0, 2, 1, 0,	 0,   0, 0, /* */
	  1, 0, 0, 0, 192, 0, 2, 1, 255, 255, 0, 0 },
	{ 6, 0, 0, 0, 192, 0, 2, 10, 443 >> 8, 443 & 255, 0, 0, /* */
	  6, 0, 0, 0, 192, 0, 2, 10, 443 >> 8, 443 & 255, 0, 0 },
};

static const uint8_t golden_ip6[2 * 24] = {
	6,    0,    0,	  0,	0x20,	   0x01,       0x0d, 0xb8, /* */
	0,    0,    0,	  0,	0,	   0,	       0,    0,	   /* */
	0,    0,    0,	  0,	8000 >> 8, 8000 & 255, 0,    0,	   /* */
	6,    0,    0,	  0,	0x20,	   0x01,       0x0d, 0xb8, /* */
	0xff, 0xff, 0xff, 0xff, 0xff,	   0xff,       0xff, 0xff, /* */
	0xff, 0xff, 0xff, 0xff, 8100 >> 8, 8100 & 255, 0,    0,
};

static void assert_elements(const struct ruleset *rs)
{
	const struct elements *pool = &ruleset_find_set(rs, SET_POOL)->elements;
	const struct elements *map = &ruleset_find_set(rs, SET_PROFILES)->elements;
	const struct elements *ip4 = &ruleset_find_set(rs, "web_ip4")->elements;
	const struct elements *ip6 = &ruleset_find_set(rs, "web_ip6")->elements;
	char text[ELEMENT_TEXT_MAX];

	assert_int_equal(pool->n, 3);
	for (uint32_t uid = 90000; uid < 90003; uid++)
		assert_memory_equal(pool->data + (uid - 90000) * sizeof(uid), &uid, sizeof(uid));
	assert_int_equal(map->n, 2);
	assert_string_equal(element_text(ELEMENT_SLICE, map->data, text),
			    "cgroup 144680345676153346 to chain profile_drop");
	assert_int_equal(ip4->n, 2);
	assert_memory_equal(ip4->data, golden_ip4, sizeof(golden_ip4));
	assert_int_equal(ip6->n, 1);
	assert_memory_equal(ip6->data, golden_ip6, sizeof(golden_ip6));
	assert_int_equal(ruleset_find_set(rs, SET_LOGGED)->elements.n, 0);
}

static void messages_say_what_objects_say(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = CHANNEL_NULL;
	_cleanup_free_ char *text = NULL;
	char wanted[16384];

	(void)state;
	build_transaction(&golden_policy, GOLDEN_OWNER, &ch, &t);
	read_messages(&t, &rs);
	/* The kernel's own additions. */
	nftnl_table_set_u32(rs.table, NFTNL_TABLE_OWNER, GOLDEN_OWNER);
	nftnl_table_set_u32(rs.table, NFTNL_TABLE_USE, GOLDEN_OBJECTS);
	text = ruleset_describe(&rs);
	golden_listing(wanted, sizeof(wanted));
	assert_string_equal(text, wanted);
	assert_elements(&rs);
}

static void one_transaction_in_order(void **state)
{
	static const uint16_t types[] = {
		NFT_MSG_NEWTABLE,   NFT_MSG_DELTABLE,	NFT_MSG_NEWTABLE,   NFT_MSG_NEWSET,
		NFT_MSG_NEWSET,	    NFT_MSG_NEWSET,	NFT_MSG_NEWSET,	    NFT_MSG_NEWSET,
		NFT_MSG_NEWSET,	    NFT_MSG_NEWCHAIN,	NFT_MSG_NEWCHAIN,   NFT_MSG_NEWCHAIN,
		NFT_MSG_NEWCHAIN,   NFT_MSG_NEWSETELEM, NFT_MSG_NEWSETELEM, NFT_MSG_NEWSETELEM,
		NFT_MSG_NEWSETELEM, NFT_MSG_NEWRULE,	NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,
		NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,	NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,
		NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,	NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,
		NFT_MSG_NEWRULE,    NFT_MSG_NEWRULE,
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
	assert_string_equal(t.items[14].name, "elements 1 to 3 of set pool");
	assert_string_equal(t.items[30].name, "rule 5 of chain profile_web");
	assert_int_equal(t.items[18].kind, OBJECT_SLICE_RULE);
	assert_int_equal(t.items[19].kind, OBJECT_RULE);
	assert_int_equal(t.items[29].kind, OBJECT_LOG_RULE);
	assert_int_equal(t.items[30].kind, OBJECT_REJECT_RULE);
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
	struct firewall_policy policy = golden_policy;
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = CHANNEL_NULL;
	const struct elements *pool;

	(void)state;
	policy.first_uid = 100000;
	policy.uid_count = RULESET_UIDS_MAX;
	build_transaction(&policy, 0, &ch, &t);
	read_messages(&t, &rs);
	pool = &ruleset_find_set(&rs, SET_POOL)->elements;
	assert_int_equal(pool->n, policy.uid_count);
	for (uint32_t i = 0; i < policy.uid_count; i++) {
		uint32_t uid;

		memcpy(&uid, pool->data + i * sizeof(uid), sizeof(uid));
		assert_int_equal(uid, policy.first_uid + i);
	}
}

/* Beyond 64 KiB of elements libnftnl would lose some without a word. */
static void every_entry_of_the_largest_profile_is_sent(void **state)
{
	struct firewall_profile profile = { .name = "all", .slice_id = 1 };
	struct firewall_policy policy = golden_policy;
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, rs = RULESET_NULL;
	_cleanup_free_ struct allow *entries = calloc(FIREWALL_ENTRIES_MAX, sizeof(*entries));
	struct channel ch = CHANNEL_NULL;

	(void)state;
	for (uint32_t i = 0; i < FIREWALL_ENTRIES_MAX; i++)
		entries[i] =
			(struct allow){ AF_INET6, IPPROTO_UDP,
					128,	  { 0x20, [14] = (uint8_t)(i >> 8), (uint8_t)i },
					53,	  53 };
	profile.entries = entries;
	profile.n_entries = FIREWALL_ENTRIES_MAX;
	policy.profiles = &profile;
	policy.n_profiles = 1;
	assert_int_equal(ruleset_build(&policy, 0, &wanted), 0);
	build_transaction(&policy, 0, &ch, &t);
	read_messages(&t, &rs);
	assert_int_equal(ruleset_find_set(&rs, "all_ip6")->elements.n, FIREWALL_ENTRIES_MAX);
	assert_memory_equal(ruleset_find_set(&rs, "all_ip6")->elements.data,
			    ruleset_find_set(&wanted, "all_ip6")->elements.data,
			    FIREWALL_ENTRIES_MAX * element_size(ELEMENT_IP6));
}

static void sequence_numbers_may_wrap(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct channel ch = { .fd = -1, .seq = UINT32_MAX - 3 };

	(void)state;
	build_transaction(&golden_policy, 0, &ch, &t);
	read_messages(&t, &rs);
	assert_int_equal(ruleset_find_chain(&rs, "profile_web")->n_rules, 5);
}

static struct firewall_policy policy_of(uint32_t first_uid, uint32_t uid_count, uint64_t slice_id,
					uint32_t slice, uint32_t profile, uint32_t scope)
{
	return (struct firewall_policy){
		.first_uid = first_uid,
		.uid_count = uid_count,
		.slice_id = slice_id,
		.slice_level = slice,
		.profile_level = profile,
		.scope_level = scope,
	};
}

static void nonsense_is_refused(void **state)
{
	const struct firewall_policy bad[] = {
		policy_of(90000, 0, 1, 1, 2, 3),
		policy_of(90000, RULESET_UIDS_MAX + 1, 1, 1, 2, 3),
		policy_of(0, 1, 1, 1, 2, 3),
		policy_of(UINT32_MAX, 1, 1, 1, 2, 3),
		policy_of(UINT32_MAX - 1, 2, 1, 1, 2, 3),
		policy_of(90000, 1, 0, 1, 2, 3),
		policy_of(90000, 1, 1, 0, 2, 3),
		policy_of(90000, 1, 1, 4, 4, 3),
		policy_of(90000, 1, 1, 1, 0, 3),
		policy_of(90000, 1, 1, 1, 4, 3),
		policy_of(90000, 1, 1, 1, 2, 255),
	};
	const struct firewall_policy good[] = {
		policy_of(1, 1, 1, 1, 1, 1),
		policy_of(UINT32_MAX - 2, 1, UINT64_MAX, 1, 2, 254),
		policy_of(65536, RULESET_UIDS_MAX, 1, 1, 2, 3),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error e = ERROR_NULL;

		assert_int_equal(firewall_policy_check(&bad[i], &e), -EINVAL);
		assert_true(strlen(e.text) > 10);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(firewall_policy_check(&good[i], NULL), 0);
}

static void refused(const struct firewall_profile *profiles, size_t n, const char *names)
{
	struct firewall_policy policy = golden_policy;
	struct error e = ERROR_NULL;

	policy.profiles = profiles;
	policy.n_profiles = n;
	assert_int_equal(firewall_policy_check(&policy, &e), -EINVAL);
	if (!strstr(e.text, names))
		fail_msg("\"%s\" does not say \"%s\"", e.text, names);
}

static void nonsense_in_profiles_is_refused(void **state)
{
	static struct firewall_profile many[FIREWALL_PROFILES_MAX + 1];
	struct firewall_profile two[] = { { .name = "a", .slice_id = 1 },
					  { .name = "b", .slice_id = 2 } };
	static const char *const names[] = { "", "Web", "a-b", "a_b", "a b", "caf\xc3\xa9" };
	_cleanup_free_ struct allow *entries = calloc(FIREWALL_ENTRIES_MAX + 1, sizeof(*entries));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(two[1].name, sizeof(two[1].name), "%s", names[i]);
		refused(two, 2, "is no name of a profile: 1 to 31 of a-z and 0-9 are");
	}
	memset(two[1].name, 'x', sizeof(two[1].name));
	refused(two, 2, "is no name of a profile");
	strcpy(two[1].name, "a");
	refused(two, 2, "two profiles a");
	strcpy(two[1].name, "b");
	two[1].slice_id = 1;
	refused(two, 2, "profiles a and b have the same slice, cgroup 1");
	two[1].slice_id = 0;
	refused(two, 2, "profile b: the cgroup id of its slice is not known");
	two[1].slice_id = 2;
	two[1].on_deny = 7;
	refused(two, 2, "profile b: on_deny");
	two[1].on_deny = FIREWALL_DROP;
	two[1].entries = entries;
	two[1].n_entries = FIREWALL_ENTRIES_MAX + 1;
	refused(two, 2, "profile b: with its 32769 entries");
	refused(many, ARRAY_SIZE(many), "129 profiles: 128 are possible");
}

/* Every second port in a network, and hosts in it with all ports: each takes some 10000 boxes. */
static void entries_that_take_too_many_boxes_are_refused(void **state)
{
	struct firewall_profile p = { .name = "comb", .slice_id = 1, .n_entries = 10001 };
	_cleanup_free_ struct allow *entries = calloc(p.n_entries, sizeof(*entries));

	(void)state;
	for (uint16_t i = 0; i < 10000; i++)
		entries[i] =
			(struct allow){ AF_INET, IPPROTO_TCP,		8,
					{ 10 },	 (uint16_t)(2 * i + 1), (uint16_t)(2 * i + 1) };
	for (uint8_t i = 0; i < 4; i++)
		entries[9997 + i] =
			(struct allow){ AF_INET, IPPROTO_TCP, 32, { 10, 0, 0, i }, 1, 65535 };
	p.entries = entries;
	refused(&p, 1, "profile comb: its entries overlap in so many ways");
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
		cmocka_unit_test(every_entry_of_the_largest_profile_is_sent),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(nonsense_in_profiles_is_refused),
		cmocka_unit_test(entries_that_take_too_many_boxes_are_refused),
	};

	return cmocka_run_group_tests_name("nft/table", tests, NULL, NULL);
}
