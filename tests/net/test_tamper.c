/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Somebody changes an unowned table: the check says what.
 */
#include "tests/net/net.h"

#include <errno.h>

#include "tests/net/golden.h"

static const struct {
	const char *nft;
	const char *names; /* what the sentence must contain */
} tampering[] = {
	{ "flush ruleset", "there is no table inet harpe_gov" },
	{ "delete table inet harpe_gov", "there is no table inet harpe_gov" },
	{ "add table inet harpe_gov '{ flags dormant; }'", "flags 0x1" },
	{ "flush table inet harpe_gov", "0 rules" },
	{ "flush chain inet harpe_gov output", "0 rules" },
	{ "insert rule inet harpe_gov output accept", "rule 1: immediate" },
	{ "add rule inet harpe_gov output accept", "rule 4 in chain output" },
	{ "insert rule inet harpe_gov output meta skuid 90000 accept", "rule 1: cmp" },
	{ "delete rule inet harpe_gov output handle $(nft -a list chain inet harpe_gov output | "
	  "sed -n 's/.*skuid.*handle //p')",
	  "rule 1: socket" },
	{ "replace rule inet harpe_gov output handle $(nft -a list chain inet harpe_gov output | "
	  "sed -n 's/.*skuid.*handle //p') meta skuid != @pool drop",
	  "rule 1: lookup from 1, to 0, set pool, flags 0x1" },
	{ "replace rule inet harpe_gov output handle $(nft -a list chain inet harpe_gov output | "
	  "sed -n 's/.*skuid.*handle //p') meta skuid @pool counter drop",
	  "rule 1: counter" },
	{ "add chain inet harpe_gov output '{ policy drop; }'", "policy 0" },
	{ "add chain inet harpe_gov other", "objects 4" },
	{ "add chain inet harpe_gov early '{ type filter hook output priority -300; accept; }'",
	  "objects 4" },
	{ "add set inet harpe_gov other '{ type uid; }'", "objects 4" },
	{ "add counter inet harpe_gov other", "objects 4" },
	{ "delete element inet harpe_gov pool '{ 90001 }'", "uid 90001 is missing" },
	{ "flush set inet harpe_gov pool", "uid 90000 is missing" },
	{ "'delete element inet harpe_gov pool { 90001 };"
	  "add element inet harpe_gov pool { 80000 }'",
	  "uid 80000 is in set pool and should not be" },
	{ "'delete element inet harpe_gov pool { 90001 };"
	  "add element inet harpe_gov pool { 91000 }'",
	  "uid 90001 is missing" },
};

static void every_tampering_is_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(tampering); i++) {
		struct firewall *fw;
		struct error e = ERROR_NULL;
		char out[1024];

		net_fresh(state);
		fw = load_new(&golden_policy, false);
		if (nft(out, sizeof(out), "%s", tampering[i].nft) != 0)
			fail_msg("nft %s: %s", tampering[i].nft, out);
		assert_int_equal(firewall_check(fw, &e), -ESTALE);
		if (!strstr(e.text, tampering[i].names))
			fail_msg("nft %s: \"%s\" does not say \"%s\"", tampering[i].nft, e.text,
				 tampering[i].names);
		assert_int_equal(firewall_check(fw, &e), -ESTALE); /* and goes on saying so */
		assert_ok(firewall_load(fw, &golden_policy, true, &e), &e);
		assert_ok(firewall_check(fw, &e), &e);
		firewall_free(fw);
	}
}

static void undone_tampering_is_forgiven(void **state)
{
	struct firewall *fw = load_new(&golden_policy, false);
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(nft(NULL, 0, "delete element inet harpe_gov pool '{ 90001 }'"), 0);
	assert_int_equal(firewall_check(fw, &e), -ESTALE);
	assert_int_equal(nft(NULL, 0, "add element inet harpe_gov pool '{ 90001 }'"), 0);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

static void what_does_not_matter_is_ignored(void **state)
{
	struct firewall *fw = load_new(&golden_policy, false);
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(nft(NULL, 0, "add table inet other"), 0);
	assert_ok(firewall_check(fw, &e), &e);
	assert_int_equal(nft(NULL, 0, "reset counters >/dev/null"), 0);
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(every_tampering_is_named),
		net_test(undone_tampering_is_forgiven),
		net_test(what_does_not_matter_is_ignored),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("tamper", tests, NULL, NULL);
}
