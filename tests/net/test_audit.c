/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the audit makes of other people's tables.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <stdio.h>

#include "governor/audit/audit.h"

enum { COPIES, REWRITES, OTHERS, N_CHECKS };

#define OUTPUT(priority, rule)                                                                     \
	"chain o { type filter hook output priority " priority "; policy accept;\n" rule "\n}\n"
#define NAT(rule)                                                                                  \
	"table ip n {\nchain o { type nat hook output priority -100;\n" rule                       \
	"\n}\nchain p { type "                                                                     \
	"nat hook postrouting priority 100;\nmasquerade\n}\n}\n"

#define NAT_INET(rule)                                                                             \
	"table inet n {\nchain o { type nat hook output priority -100;\n" rule "\n}\n}\n"

static const char *const allow_list[] = {
	"tcp 192.0.2.1:80-90",
	"tcp 127.0.0.1:3128",
	"udp [2001:db8::/64]:53",
	"tcp 198.51.100.0/24:443",
};

static const struct {
	const char *name, *nft;
	bool allows; /* is there a profile with the allow-list below? */
	enum verdict want[N_CHECKS];
	const char *names;
} hosts[] = {
	{ "nothing", "", true, { 0 }, "0 other chains" },
	{ "accept before",
	  "table inet t {\n" OUTPUT("-300", "accept") "}\n",
	  true,
	  { 0 },
	  "1 other chain at output" },
	{ "accept behind",
	  "table ip6 t {\n" OUTPUT("300", "accept") "}\n",
	  true,
	  { 0 },
	  "1 other chain at output" },
	{ "our name elsewhere",
	  "table ip harpe_gov {\n" OUTPUT("-10", "accept") "}\n",
	  true,
	  { 0 },
	  "1 table of another family" },
	{ "copies",
	  "table ip t {\n" OUTPUT("-300", "ip daddr 192.0.2.9 dup to 192.0.2.1") "}\n",
	  false,
	  { [COPIES] = VERDICT_FAIL },
	  "chain ip t o" },
	{ "copies at the same place",
	  "table ip6 t {\n" OUTPUT("-10", "dup to 2001:db8::1") "}\n",
	  false,
	  { [COPIES] = VERDICT_FAIL },
	  "chain ip6 t o" },
	{ "copies behind",
	  "table ip t {\n" OUTPUT("0", "dup to 192.0.2.1") "}\n",
	  false,
	  { 0 },
	  "no other table does" },
	{ "copies in a chain that is jumped to",
	  "table ip t {\nchain c {\ndup to 192.0.2.1\n}\n" OUTPUT("-300", "jump c") "}\n",
	  false,
	  { [COPIES] = VERDICT_FAIL },
	  "chain ip t c" },
	{ "a local proxy",
	  NAT("tcp dport 80 redirect to :3128"),
	  false,
	  { 0 },
	  "1 rule before ours" },
	{ "a local proxy and an allow-list",
	  NAT("tcp dport 80 redirect to :3128"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "chain ip n o" },
	{ "to what is allowed",
	  NAT("tcp dport 80 dnat to 192.0.2.1:80"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to one of what is allowed",
	  NAT("tcp dport 80 dnat to 192.0.2.0-192.0.2.9:70-80"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to an allowed address, with its port",
	  NAT("tcp dport 80 dnat to 192.0.2.1"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to an allowed port",
	  NAT("tcp dport 80 dnat to :443"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to a network",
	  NAT("dnat prefix to ip daddr map { 203.0.113.0/24 : 198.51.100.0/24 }"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to what a map says",
	  NAT("dnat to tcp dport map { 80 : 192.0.2.77 }"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to a register that something else wrote",
	  NAT("dnat to numgen inc mod 2 map { 0 : 192.0.2.77, 1 : 192.0.2.78 }"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to IPv6",
	  NAT_INET("udp dport 53 dnat ip6 to [2001:db8::9]:53"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to loopback",
	  NAT("tcp dport 80 redirect to :3100-3200"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to loopback, with its port",
	  NAT("redirect"),
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "written",
	  "table ip t {\n" OUTPUT("-300", "ip daddr set 192.0.2.77") "}\n",
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "a port written",
	  "table ip6 t {\n" OUTPUT("-300", "udp dport set 53") "}\n",
	  true,
	  { [REWRITES] = VERDICT_UNKNOWN },
	  "can turn a destination" },
	{ "to another address",
	  NAT("tcp dport 80 dnat to 192.0.2.2:80"),
	  true,
	  { 0 },
	  "none of which" },
	{ "to another port",
	  NAT("tcp dport 80 counter dnat to 192.0.2.1:91"),
	  true,
	  { 0 },
	  "none of which" },
	{ "to addresses around",
	  NAT("tcp dport 80 dnat to 198.51.101.0-198.51.101.255"),
	  true,
	  { 0 },
	  "none of which" },
	{ "to another address of IPv6",
	  NAT_INET("udp dport 53 dnat ip6 to [2001:db8:0:1::9]:53"),
	  true,
	  { 0 },
	  "none of which" },
	{ "to another local proxy",
	  NAT_INET("tcp dport 80 redirect to :3129"),
	  true,
	  { 0 },
	  "none of which" },
	{ "a mark written",
	  "table ip t {\n" OUTPUT("-300", "ip dscp set cs1") "}\n",
	  true,
	  { 0 },
	  "none of which" },
	{ "another source and an allow-list", NAT("accept"), true, { 0 }, "0 rules before ours" },
};

static void parse_allow_list(struct allow list[ARRAY_SIZE(allow_list)])
{
	struct error e = ERROR_NULL;

	for (size_t i = 0; i < ARRAY_SIZE(allow_list); i++)
		assert_ok(allow_parse(allow_list[i], &list[i], &e), &e);
}

static void assert_host(size_t i)
{
	struct allow list[ARRAY_SIZE(allow_list)];
	const struct firewall_profile profile = {
		.entries = list,
		.n_entries = hosts[i].allows ? ARRAY_SIZE(allow_list) : 0,
	};
	struct audit a = { 0 };
	struct finding f[N_CHECKS] = { 0 };
	struct error e = ERROR_NULL;
	bool named = false;

	parse_allow_list(list);
	a.wanted.policy.profiles = &profile;
	a.wanted.policy.n_profiles = 1;
	assert_ok(foreign_read(&a.foreign, &e), &e);
	for (int c = 0; c < N_CHECKS; c++) {
		audit_foreign_checks[c].look(&a, &f[c]);
		if (finding_result(&f[c]) != hosts[i].want[c])
			fail_msg("%s: %s is %s: %s", hosts[i].name, audit_foreign_checks[c].id,
				 verdict_names[finding_result(&f[c])], f[c].said[0].text);
		named |= strstr(f[c].said[0].text, hosts[i].names) != NULL;
	}
	if (!named)
		fail_msg("%s: nobody says \"%s\"", hosts[i].name, hosts[i].names);
	foreign_free(&a.foreign);
}

static void judges_other_tables(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		net_fresh(state);
		assert_int_equal(nft_input(hosts[i].nft), 0);
		assert_host(i);
	}
}

static void what_was_not_read_is_unknown(void **state)
{
	struct audit a = { 0 };

	(void)state;
	a.others.r = -EAGAIN;
	for (int c = 0; c < N_CHECKS; c++) {
		struct finding f = { 0 };

		audit_foreign_checks[c].look(&a, &f);
		assert_int_equal(finding_result(&f), VERDICT_UNKNOWN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(judges_other_tables),
		net_test(what_was_not_read_is_unknown),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
