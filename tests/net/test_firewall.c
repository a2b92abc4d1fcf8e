/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading, reading back, checking, removing.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "nft/channel.h"
#include "nft/live.h"
#include "tests/net/golden.h"

#define LIST "-s list table inet " FIREWALL_TABLE

/* What differs between versions of nft: who loaded it, blanks and line breaks. */
static void normalize(char *text)
{
	char *to = text, *hash = strstr(text, " # progname");

	if (hash)
		memmove(hash, strchr(hash, '\n'), strlen(strchr(hash, '\n')) + 1);
	for (const char *from = text; *from; from++)
		if (!strchr(" \t\n", *from))
			*to++ = *from;
	*to = '\0';
}

static void nft_lists_it_as_written_down(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	char listed[8192], wanted[8192];
	size_t used = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++)
		used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s", golden[i].nft);
	assert_int_equal(nft(listed, sizeof(listed), LIST), 0);
	normalize(listed);
	normalize(wanted);
	assert_string_equal(listed, wanted);
	firewall_free(fw);
}

static void load_check_remove(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;

	(void)state;
	assert_ok(firewall_check(fw, &e), &e);
	assert_ok(firewall_remove(fw, &e), &e);
	assert_int_equal(nft(NULL, 0, LIST), 1);
	assert_ok(firewall_remove(fw, &e), &e); /* fine when there is none */
	assert_int_equal(firewall_check(fw, &e), -EINVAL);
	assert_ok(firewall_load(fw, &golden_policy, false, &e), &e);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

static void nothing_loaded_is_nothing_to_check(void **state)
{
	struct firewall *fw;
	struct error e = ERROR_NULL;
	uint32_t owner;
	uint64_t n;

	(void)state;
	assert_ok(firewall_open(&fw, &e), &e);
	assert_int_equal(firewall_check(fw, &e), -EINVAL);
	assert_int_equal(firewall_inspect(fw, &golden_policy, &owner, &e), -ESTALE);
	assert_non_null(strstr(e.text, "there is no table inet harpe_gov"));
	assert_int_equal(firewall_uid_drops(fw, 90000, &n, &e), -ENOENT);
	assert_int_equal(firewall_stray_drops(fw, 1, &n, &e), -ENOENT);
	firewall_free(fw);
}

static void a_second_policy_replaces_the_first(void **state)
{
	const struct firewall_policy other = {
		.first_uid = 70000,
		.uid_count = 300,
		.slice_id = 77,
		.slice_level = 2,
		.profile_level = 3,
		.scope_level = 4,
	};
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;
	uint32_t owner = 0;
	uint64_t n;

	(void)state;
	assert_ok(firewall_load(fw, &other, true, &e), &e);
	assert_ok(firewall_check(fw, &e), &e);
	assert_ok(firewall_inspect(fw, &other, &owner, &e), &e);
	assert_int_not_equal(owner, 0);
	assert_int_equal(firewall_inspect(fw, &golden_policy, &owner, &e), -ESTALE);
	assert_int_equal(firewall_uid_drops(fw, 90000, &n, &e), -ENOENT);
	assert_ok(firewall_uid_drops(fw, 70299, &n, &e), &e);
	assert_int_equal(n, 0);
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

static void loading_is_one_transaction(void **state)
{
	struct firewall *fw = load_new(&golden_policy, false);
	struct error e = ERROR_NULL;
	uint32_t before = generation();

	(void)state;
	assert_ok(firewall_load(fw, &golden_policy, true, &e), &e);
	assert_int_equal(generation(), before + 1);
	assert_ok(firewall_load(fw, &golden_policy, false, &e), &e);
	assert_int_equal(generation(), before + 2);
	assert_ok(firewall_check(fw, &e), &e);
	assert_int_equal(generation(), before + 2);
	firewall_free(fw);
}

static void a_refused_policy_changes_nothing(void **state)
{
	struct firewall_policy bad = golden_policy;
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;
	uint32_t before = generation();

	(void)state;
	bad.uid_count = 0;
	assert_int_equal(firewall_load(fw, &bad, true, &e), -EINVAL);
	assert_ok(firewall_check(fw, &e), &e);
	assert_int_equal(generation(), before);
	firewall_free(fw);
}

static void other_families_are_none_of_our_business(void **state)
{
	struct firewall *fw;
	struct error e = ERROR_NULL;
	char listed[512];

	(void)state;
	assert_int_equal(nft_input("table ip harpe_gov {\nchain output { accept; }\n}\n"
				   "table ip6 harpe_gov {\nset pool { type uid; }\n}\n"),
			 0);
	fw = load_new(&golden_policy, true);
	assert_ok(firewall_check(fw, &e), &e);
	assert_ok(firewall_remove(fw, &e), &e);
	assert_int_equal(nft(listed, sizeof(listed), "list tables"), 0);
	assert_string_equal(listed, "table ip harpe_gov\ntable ip6 harpe_gov\n");
	firewall_free(fw);
}

static void other_tables_stay(void **state)
{
	static const char text[] =
		"table inet other {\n"
		"	chain output {\n"
		"		type filter hook output priority 0; policy accept;\n"
		"		counter accept\n"
		"	}\n"
		"}\n";
	char before[1024], after[1024];
	struct firewall *fw;
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(nft_input(text), 0);
	nft(before, sizeof(before), "-a list ruleset");
	fw = load_new(&golden_policy, true);
	assert_ok(firewall_remove(fw, &e), &e);
	nft(after, sizeof(after), "-a list ruleset");
	assert_string_equal(before, after);
	firewall_free(fw);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void load_of(uint32_t uids, unsigned int *ret_listed)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	double start = now_ms(), loaded, checked;
	char listed[64];

	policy.first_uid = 100000;
	policy.uid_count = uids;
	fw = load_new(&policy, true);
	loaded = now_ms();
	assert_ok(firewall_check(fw, &e), &e);
	checked = now_ms();
	print_message("%u uids: loaded and read back in %.2f ms, checked in %.3f ms\n", uids,
		      loaded - start, checked - loaded);
	assert_int_equal(nft(listed, sizeof(listed),
			     "list set inet harpe_gov pool | grep -o '[0-9]* counter' | sort -u | "
			     "wc -l"),
			 0);
	*ret_listed = (unsigned int)strtoul(listed, NULL, 10);
	firewall_free(fw);
}

static void pools_of_any_size_are_complete(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 256, 999, 1000, 1001, 4096, 65535, 65536 };
	unsigned int listed = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		load_of(sizes[i], &listed);
		assert_int_equal(listed, sizes[i]);
	}
}

static unsigned int without_capabilities(void *data)
{
	struct firewall *fw = data, *own;
	struct error e = ERROR_NULL;
	uint32_t owner;

	if (setresuid(12345, 12345, 12345) < 0)
		return 1;
	if (firewall_open(&own, &e) < 0)
		return 2;
	if (firewall_load(own, &golden_policy, true, &e) != -EPERM ||
	    !strstr(e.text, "CAP_NET_ADMIN"))
		return 3;
	if (firewall_inspect(own, &golden_policy, &owner, &e) != -EPERM ||
	    !strstr(e.text, "CAP_NET_ADMIN"))
		return 4;
	if (firewall_remove(own, &e) != -EPERM || !strstr(e.text, "CAP_NET_ADMIN"))
		return 5;
	/* A socket that root opened does not help either. */
	if (firewall_load(fw, &golden_policy, true, &e) != -EPERM)
		return 6;
	return 0;
}

static void without_rights_it_says_so(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(in_child(without_capabilities, fw), 0);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

static void sockets_are_closed(void **state)
{
	int before = open_fds();
	struct firewall *fw = load_new(&golden_policy, true);

	(void)state;
	assert_int_equal(open_fds(), before + 1);
	assert_int_equal(fcntl(firewall_fd(fw), F_GETFD), FD_CLOEXEC);
	firewall_free(fw);
	firewall_free(NULL);
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(nft_lists_it_as_written_down),
		net_test(load_check_remove),
		net_test(nothing_loaded_is_nothing_to_check),
		net_test(a_second_policy_replaces_the_first),
		net_test(loading_is_one_transaction),
		net_test(a_refused_policy_changes_nothing),
		net_test(other_families_are_none_of_our_business),
		net_test(other_tables_stay),
		net_test(pools_of_any_size_are_complete),
		net_test(without_rights_it_says_so),
		net_test(sockets_are_closed),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("firewall", tests, NULL, NULL);
}
