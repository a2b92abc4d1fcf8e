/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose table it is: owned, taken over, given back, handed on.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <libmnl/libmnl.h>
#include <libnftnl/common.h>

#include "nft/channel.h"
#include "tests/net/golden.h"

static uint32_t port_of(int fd)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(addr);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	return addr.nl_pid;
}

static void nobody_else_changes_an_owned_table(void **state)
{
	static const char *const attempts[] = {
		"delete table inet harpe_gov",
		"flush table inet harpe_gov",
		"add table inet harpe_gov",
		"add table inet harpe_gov '{ flags dormant; }'",
		"flush chain inet harpe_gov output",
		"insert rule inet harpe_gov output accept",
		"add chain inet harpe_gov output '{ policy drop; }'",
		"delete element inet harpe_gov pool '{ 90000 }'",
		"flush set inet harpe_gov pool",
		"flush set inet harpe_gov strays",
		"add set inet harpe_gov other '{ type uid; }'",
	};
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		assert_int_not_equal(nft(NULL, 0, "%s", attempts[i]), 0);
		assert_ok(firewall_check(fw, &e), &e);
	}
	firewall_free(fw);
}

static void it_survives_a_flush_of_everything(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;
	char listed[512];

	(void)state;
	assert_int_equal(nft_input("table inet other {\nchain c { accept; }\n}\n"), 0);
	assert_ok(firewall_check(fw, &e), &e);
	assert_int_equal(nft(NULL, 0, "flush ruleset"), 0);
	assert_ok(firewall_check(fw, &e), &e);
	nft(listed, sizeof(listed), "list tables");
	assert_string_equal(listed, "table inet harpe_gov\n");
	firewall_free(fw);
}

static void another_socket_is_refused_and_told_whose_it_is(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true), *other;
	struct error e = ERROR_NULL;
	uint32_t owner = 0;
	char port[32];

	(void)state;
	snprintf(port, sizeof(port), "port %u ", port_of(firewall_fd(fw)));
	assert_ok(firewall_open(&other, &e), &e);
	assert_int_equal(firewall_load(other, &golden_policy, true, &e), -EBUSY);
	assert_non_null(strstr(e.text, port));
	assert_int_equal(firewall_load(other, &golden_policy, false, &e), -EBUSY);
	assert_int_equal(firewall_remove(other, &e), -EBUSY);
	assert_non_null(strstr(e.text, port));
	/* Looking is free. */
	assert_ok(firewall_inspect(other, &golden_policy, &owner, &e), &e);
	assert_int_equal(owner, port_of(firewall_fd(fw)));
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(other);
	firewall_free(fw);
}

/* The one place where a version counts: the library finds out by trying, and this is to notice when
 * it no longer does. */
static bool kernel_keeps_tables(void)
{
	struct utsname u;
	int major = 0, minor = 0;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 9);
}

static struct firewall_survey survey(void)
{
	struct firewall_survey found;
	struct error e = ERROR_NULL;
	struct firewall *looker;

	assert_ok(firewall_open(&looker, &e), &e);
	assert_ok(firewall_survey(looker, &golden_policy, &found, &e), &e);
	firewall_free(looker);
	return found;
}

static void assert_whole(const struct firewall_survey *found)
{
	for (int i = 0; i < FIREWALL_PART_COUNT; i++)
		assert_ok(found->part[i], &found->differs[i]);
}

/* Nobody closes a table that its owner has left: everything in it stays as it was, and the next one
 * takes it over. Where the kernel cannot do that, it is gone. */
static void when_the_last_copy_of_the_socket_is_closed(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	int copy = fcntl(firewall_fd(fw), F_DUPFD_CLOEXEC, 0);
	struct error e = ERROR_NULL;
	struct firewall_survey left;

	(void)state;
	firewall_free(fw);
	left = survey();
	assert_whole(&left);
	assert_int_equal(left.owner, port_of(copy));
	assert_int_equal(left.persists, kernel_keeps_tables());
	close(copy);

	left = survey();
	assert_int_equal(left.owner, 0);
	assert_int_equal(left.persists, kernel_keeps_tables());
	if (kernel_keeps_tables())
		assert_whole(&left);
	else
		assert_int_not_equal(nft(NULL, 0, "list table inet harpe_gov"), 0);

	fw = load_new(&golden_policy, true);
	left = survey();
	assert_whole(&left);
	assert_int_equal(left.owner, port_of(firewall_fd(fw)));
	assert_int_not_equal(nft(NULL, 0, "delete table inet harpe_gov"), 0);
	assert_ok(firewall_remove(fw, &e), &e);
	firewall_free(fw);
}

/* One that was given back is anybody's to delete, and nothing in it says otherwise. */
static void given_back_it_does_not_persist(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;
	struct firewall_survey left;

	(void)state;
	assert_ok(firewall_load(fw, &golden_policy, false, &e), &e);
	firewall_free(fw);
	left = survey();
	assert_whole(&left);
	assert_false(left.persists);
	assert_int_equal(left.owner, 0);
}

/* Finding out what the kernel can do shows nobody anything. */
static void trying_leaves_nothing(void **state)
{
	struct firewall *fw;
	struct error e = ERROR_NULL;
	uint32_t before, after;
	char listed[512];

	(void)state;
	assert_ok(firewall_open(&fw, &e), &e);
	assert_ok(firewall_generation(fw, &before, &e), &e);
	assert_ok(firewall_load(fw, &golden_policy, true, &e), &e);
	assert_ok(firewall_generation(fw, &after, &e), &e);
	assert_int_equal(after, before + 1);
	nft(listed, sizeof(listed), "list tables");
	assert_string_equal(listed, "table inet harpe_gov\n");
	firewall_free(fw);
}

/* What the oneshot at boot leaves, the daemon takes over and gives back. */
static void taken_over_and_given_back(void **state)
{
	struct firewall *fw = load_new(&golden_policy, false);
	struct error e = ERROR_NULL;
	uint32_t owner = 1;
	char listed[512];

	(void)state;
	firewall_free(fw);
	assert_ok(firewall_open(&fw, &e), &e);
	assert_ok(firewall_inspect(fw, &golden_policy, &owner, &e), &e);
	assert_int_equal(owner, 0);
	assert_ok(firewall_load(fw, &golden_policy, true, &e), &e);
	assert_int_not_equal(nft(NULL, 0, "delete table inet harpe_gov"), 0);
	assert_ok(firewall_load(fw, &golden_policy, false, &e), &e);
	firewall_free(fw);
	nft(listed, sizeof(listed), "list tables");
	assert_string_equal(listed, "table inet harpe_gov\n");
	assert_int_equal(nft(NULL, 0, "delete table inet harpe_gov"), 0);
}

static void whatever_was_there_is_replaced(void **state)
{
	static const char *const before[] = {
		"table inet harpe_gov { }\n",
		"table inet harpe_gov {\nflags dormant\nchain output { accept; }\n}\n",
		"table inet harpe_gov {\n"
		"map pool { type uid : verdict; }\n"
		"chain y { }\n"
		"chain x { jump y; }\n"
		"chain output { meta skuid vmap @pool; jump x; }\n"
		"}\n",
	};
	struct firewall *fw;
	struct error e = ERROR_NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		assert_int_equal(nft_input(before[i]), 0);
		fw = load_new(&golden_policy, i % 2);
		assert_ok(firewall_check(fw, &e), &e);
		assert_ok(firewall_remove(fw, &e), &e);
		firewall_free(fw);
	}
}

static void an_adopted_socket_goes_on(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	int copy = dup(firewall_fd(fw)); /* without O_CLOEXEC */
	uint32_t port = port_of(copy), owner = 0;
	struct error e = ERROR_NULL;

	(void)state;
	firewall_free(fw);
	fcntl(copy, F_SETFL, O_NONBLOCK); /* as the service manager may leave it */
	assert_ok(firewall_adopt(copy, &fw, &e), &e);
	assert_int_equal(firewall_fd(fw), copy);
	assert_int_equal(fcntl(copy, F_GETFD), FD_CLOEXEC);
	assert_ok(firewall_inspect(fw, &golden_policy, &owner, &e), &e);
	assert_int_equal(owner, port);
	assert_int_equal(firewall_check(fw, &e), -EINVAL); /* it does not know what to expect */
	assert_ok(firewall_load(fw, &golden_policy, true, &e), &e);
	assert_ok(firewall_check(fw, &e), &e);
	assert_int_not_equal(nft(NULL, 0, "delete table inet harpe_gov"), 0);
	firewall_free(fw);
}

/* Asks and does not wait for the answer. */
static void ask(int fd, uint16_t type, uint16_t flags, const char *set)
{
	char buf[512];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, type, NFPROTO_INET, flags, 1);

	if (set) {
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	}
	assert_true(send(fd, nlh, nlh->nlmsg_len, 0) > 0);
}

/* The earlier process died in the middle of something. */
static void old_answers_do_not_confuse(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	int copy, group = NFNLGRP_NFTABLES;
	uint32_t owner;
	char part[32768];

	(void)state;
	policy.uid_count = 20000;
	fw = load_new(&policy, true);
	copy = dup(firewall_fd(fw));
	firewall_free(fw);
	setsockopt(copy, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	for (unsigned int i = 0; i < 100; i++)
		ask(copy, NFT_MSG_GETGEN, NLM_F_ACK, NULL);
	ask(copy, NFT_MSG_GETSETELEM, NLM_F_DUMP, "pool");
	assert_true(recv(copy, part, sizeof(part), 0) > 0);
	assert_int_equal(nft_input("table inet other {\nchain c { accept; }\n}\n"), 0);

	assert_ok(firewall_adopt(copy, &fw, &e), &e);
	assert_ok(firewall_inspect(fw, &policy, &owner, &e), &e);
	for (unsigned int i = 0; i < 3; i++) {
		assert_ok(firewall_load(fw, &policy, true, &e), &e);
		assert_int_equal(nft(NULL, 0, "add table inet other%u", i), 0);
		assert_ok(firewall_check(fw, &e), &e);
	}
	firewall_free(fw);
}

/* The owner itself can change it, in whatever process its socket is. */
static void another_copy_of_the_socket_is_noticed(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw = load_new(&golden_policy, true), *copy;
	struct error e = ERROR_NULL;

	(void)state;
	policy.uid_count--;
	assert_ok(firewall_adopt(dup(firewall_fd(fw)), &copy, &e), &e);
	assert_ok(firewall_load(copy, &policy, true, &e), &e);
	assert_int_equal(firewall_check(fw, &e), -ESTALE);
	assert_non_null(strstr(e.text, "size 2"));
	assert_ok(firewall_load(copy, &golden_policy, true, &e), &e);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(copy);
	firewall_free(fw);
}

static void anything_else_is_not_adopted(void **state)
{
	int pair[2], before = open_fds();
	struct firewall *fw = NULL;
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(firewall_adopt(pair[0], &fw, &e), -EINVAL);
	assert_int_equal(firewall_adopt(pair[1], &fw, &e), -EINVAL);
	assert_int_equal(firewall_adopt(socket(AF_UNIX, SOCK_STREAM, 0), &fw, &e), -EINVAL);
	assert_int_equal(firewall_adopt(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), &fw, &e),
			 -EINVAL);
	assert_int_equal(firewall_adopt(open("/dev/null", O_RDONLY), &fw, &e), -EINVAL);
	assert_int_equal(firewall_adopt(12345, &fw, &e), -EBADF);
	assert_null(fw);
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(nobody_else_changes_an_owned_table),
		net_test(it_survives_a_flush_of_everything),
		net_test(another_socket_is_refused_and_told_whose_it_is),
		net_test(when_the_last_copy_of_the_socket_is_closed),
		net_test(given_back_it_does_not_persist),
		net_test(trying_leaves_nothing),
		net_test(taken_over_and_given_back),
		net_test(whatever_was_there_is_replaced),
		net_test(an_adopted_socket_goes_on),
		net_test(old_answers_do_not_confuse),
		net_test(another_copy_of_the_socket_is_noticed),
		net_test(anything_else_is_not_adopted),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
