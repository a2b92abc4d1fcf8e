/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the audit makes of other people's tables.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <stdio.h>

#include "governor/audit.h"

enum { COPIES, REWRITES, OTHERS, N_CHECKS };

#define OUTPUT(priority, rule)                                                                     \
	"chain o { type filter hook output priority " priority "; policy accept;\n" rule "\n}\n"
#define NAT(rule)                                                                                  \
	"table ip n {\nchain o { type nat hook output priority -100;\n" rule                       \
	"\n}\nchain p { type "                                                                     \
	"nat hook postrouting priority 100;\nmasquerade\n}\n}\n"

static const struct {
	const char *name, *nft;
	bool allows; /* is there a profile with an allow-list? */
	enum audit_result want[N_CHECKS];
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
	  { [COPIES] = AUDIT_FAIL },
	  "chain ip t o" },
	{ "copies at the same place",
	  "table ip6 t {\n" OUTPUT("-10", "dup to 2001:db8::1") "}\n",
	  false,
	  { [COPIES] = AUDIT_FAIL },
	  "chain ip6 t o" },
	{ "copies behind",
	  "table ip t {\n" OUTPUT("0", "dup to 192.0.2.1") "}\n",
	  false,
	  { 0 },
	  "no other table does" },
	{ "copies in a chain that is jumped to",
	  "table ip t {\nchain c {\ndup to 192.0.2.1\n}\n" OUTPUT("-300", "jump c") "}\n",
	  false,
	  { [COPIES] = AUDIT_FAIL },
	  "chain ip t c" },
	{ "a local proxy",
	  NAT("tcp dport 80 redirect to :3128"),
	  false,
	  { 0 },
	  "no profile has an allow-list" },
	{ "a local proxy and an allow-list",
	  NAT("tcp dport 80 redirect to :3128"),
	  true,
	  { [REWRITES] = AUDIT_UNKNOWN },
	  "chain ip n o" },
	{ "another destination and an allow-list",
	  NAT("tcp dport 80 dnat to 192.0.2.1:80"),
	  true,
	  { [REWRITES] = AUDIT_UNKNOWN },
	  "chain ip n o" },
	{ "another source and an allow-list", NAT("accept"), true, { 0 }, "nothing rewrites" },
};

static void assert_host(size_t i)
{
	struct audit a = { 0 };
	struct finding f[N_CHECKS] = { 0 };
	struct error e = ERROR_NULL;
	bool named = false;

	a.wanted.policy.n_profiles = 1;
	a.wanted.profiles[0].n_entries = hosts[i].allows;
	assert_ok(foreign_read(&a.foreign, &e), &e);
	for (int c = 0; c < N_CHECKS; c++) {
		audit_foreign_checks[c].look(&a, &f[c]);
		if (finding_result(&f[c]) != hosts[i].want[c])
			fail_msg("%s: %s is %s: %s", hosts[i].name, audit_foreign_checks[c].id,
				 audit_result_names[finding_result(&f[c])], f[c].said[0].text);
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
		assert_int_equal(finding_result(&f), AUDIT_UNKNOWN);
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
