/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slice's rules. No profile is loaded.
 */
#include "tests/net/tree.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "nft/channel.h"
#include "nft/live.h"
#include "nft/transaction.h"

#define OTHER_UID 12345 /* of no pool */
#define POOL_UID  90001
#define SENT	  5

/* A sender: where it goes, whether it has its socket before that, who it then is. */
struct sender {
	const char *cgroup;
	bool early_socket;
	uid_t uid;
	uint16_t port;
};

static unsigned int send_from(void *data)
{
	const struct sender *s = data;
	int sock = s->early_socket ? socket(AF_INET, SOCK_DGRAM, 0) : -1;

	if (s->cgroup && tree_enter(s->cgroup) < 0)
		return 100;
	if (setresuid(s->uid, s->uid, s->uid) < 0)
		return 100;
	if (!s->early_socket)
		sock = socket(AF_INET, SOCK_DGRAM, 0);
	return udp_send(sock, s->port, SENT);
}

static void any_uid_inside_is_dropped_and_counted(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .cgroup = tree.b, .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(strays(fw, tree.b_id), 0);
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(strays(fw, tree.b_id), SENT);
	s.uid = 0;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(strays(fw, tree.b_id), 2 * SENT);
	assert_int_equal(strays(fw, tree.c_id), 0);
	s.cgroup = tree.c;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(strays(fw, tree.c_id), SENT);
	assert_int_equal(udp_received(receiver), 0);
	firewall_free(fw);
}

/* Of a scope in a child slice of the profile's, too. */
static void one_level_below_it_is_counted(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .cgroup = tree.f, .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(strays(fw, tree.f_id), SENT);
	assert_int_equal(strays(fw, tree.b_id), 0);
	s.uid = POOL_UID;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(strays(fw, tree.f_id), SENT);
	assert_int_equal(drops(fw, POOL_UID), SENT);
	assert_int_equal(udp_received(receiver), 0);
	firewall_free(fw);
}

static void the_uid_comes_first(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .cgroup = tree.b, .uid = POOL_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(drops(fw, POOL_UID), SENT);
	assert_int_equal(strays(fw, tree.b_id), 0);
	/* Inherited, or made by somebody else for it: only the cgroup tells. */
	s.early_socket = true;
	assert_int_equal(in_child(send_from, &s), 0);
	assert_int_equal(udp_received(receiver), SENT); /* made outside: none of both tells */
	firewall_free(fw);
}

static void outside_nothing_is_touched(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(in_child(send_from, &s), 0);
	s.uid = 0;
	assert_int_equal(in_child(send_from, &s), 0);
	s.cgroup = tree.b;
	s.early_socket = true; /* the socket counts, not who uses it */
	assert_int_equal(in_child(send_from, &s), 0);
	assert_int_equal(udp_received(receiver), 3 * SENT);
	assert_int_equal(strays(fw, tree.b_id), 0);
	firewall_free(fw);
}

/* Above the scopes' level there is nothing to count by, but it is dropped all the same. */
static void the_slice_itself_is_dropped(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .cgroup = tree.slice, .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(udp_received(receiver), 0);
	firewall_free(fw);
}

static uint32_t generation(void)
{
	struct channel ch = CHANNEL_NULL;
	struct error e = ERROR_NULL;
	uint32_t g = 0;

	assert_ok(channel_open(&ch, &e), &e);
	assert_ok(live_generation(&ch, &g, &e), &e);
	channel_close(&ch);
	return g;
}

static void counting_is_no_commit(void **state)
{
	struct firewall *fw = load_new(&tree.policy, true);
	struct sender s = { .cgroup = tree.b, .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);
	uint32_t before = generation();
	struct error e = ERROR_NULL;

	(void)state;
	in_child(send_from, &s);
	assert_int_equal(udp_received(receiver), 0);
	assert_int_equal(strays(fw, tree.b_id), SENT);
	assert_int_equal(generation(), before);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

/* Fills the set from outside, up to its size. */
#define STRAYS_SIZE 65535
static void fill_strays(void)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;
	struct error e = ERROR_NULL;
	enum object_kind kind;
	uint64_t key = UINT64_C(1) << 40;

	assert_ok(channel_open(&ch, &e), &e);
	assert_ok(transaction_begin(&t, &ch, "test"), &e);
	for (unsigned int left = STRAYS_SIZE; left > 0;) {
		struct nlmsghdr *nlh = transaction_add(&t, NFT_MSG_NEWSETELEM, NLM_F_CREATE,
						       OBJECT_ELEMENTS, "strays");
		struct nlattr *list, *element, *value;

		assert_non_null(nlh);
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, "strays");
		list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
		for (unsigned int i = 0; i < 1000 && left > 0; i++, left--, key++) {
			element = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
			value = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_KEY);
			mnl_attr_put(nlh, NFTA_DATA_VALUE, sizeof(key), &key);
			mnl_attr_nest_end(nlh, value);
			mnl_attr_nest_end(nlh, element);
		}
		mnl_attr_nest_end(nlh, list);
	}
	assert_ok(transaction_commit(&t, &kind, &e), &e);
	channel_close(&ch);
}

static void a_full_set_saves_no_packet(void **state)
{
	struct firewall *fw = load_new(&tree.policy, false);
	struct sender s = { .cgroup = tree.b, .uid = OTHER_UID };
	_cleanup_close_ int receiver = udp_receiver(&s.port);
	struct error e = ERROR_NULL;

	(void)state;
	fill_strays();
	assert_int_equal(in_child(send_from, &s), SENT);
	assert_int_equal(udp_received(receiver), 0);
	assert_int_equal(strays(fw, tree.b_id), 0);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

/* The table in nft's own words is what we make of the policy. */
static void nft_makes_the_same_of_it(void **state)
{
	const char *path = tree.slice + strlen("/sys/fs/cgroup/");
	struct firewall *fw;
	struct error e = ERROR_NULL;
	uint32_t owner = 1;
	char text[2048];

	(void)state;
	snprintf(text, sizeof(text),
		 "table inet harpe_gov {\n"
		 "set pool { type uid; size 3; counter; elements = { 90000, 90001, 90002 } }\n"
		 "set strays { type cgroupsv2; size 65535; flags dynamic,timeout; timeout 1d; }\n"
		 "set logged { type uid; size 3; flags dynamic; }\n"
		 "map profiles { type cgroupsv2 : verdict; size 128; }\n"
		 "chain output { type filter hook output priority -10; policy accept;\n"
		 "socket cgroupv2 level 1 \"%s\" jump guests\n"
		 "meta skuid @pool drop\n"
		 "}\n"
		 "chain guests {\n"
		 "socket cgroupv2 level 2 vmap @profiles\n"
		 "meta skuid @pool drop\n"
		 "update @strays { socket cgroupv2 level 3 counter }\n"
		 "update @strays { socket cgroupv2 level 4 counter }\n"
		 "counter drop\n"
		 "}\n}\n",
		 path);
	assert_int_equal(nft_input(text), 0);
	assert_ok(firewall_open(&fw, &e), &e);
	assert_ok(firewall_inspect(fw, &tree.policy, &owner, &e), &e);
	assert_int_equal(owner, 0);
	firewall_free(fw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(any_uid_inside_is_dropped_and_counted),
		net_test(one_level_below_it_is_counted),
		net_test(the_uid_comes_first),
		net_test(outside_nothing_is_touched),
		net_test(the_slice_itself_is_dropped),
		net_test(counting_is_no_commit),
		net_test(a_full_set_saves_no_packet),
		net_test(nft_makes_the_same_of_it),
	};
	int r = net_possible();

	if (r)
		return r;
	if (tree_make() < 0)
		r = net_skip("no cgroup v2 directory can be made");
	else
		r = cmocka_run_group_tests_name("strays", tests, NULL, NULL);
	tree_remove();
	return r;
}
