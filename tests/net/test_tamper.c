/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Somebody changes an unowned table: the check says what.
 */
#include "tests/net/net.h"

#include <errno.h>

#include "tests/net/golden.h"

#define REPLACE(chain, like, by)                                                                   \
	"replace rule inet harpe_gov " chain " handle $(nft -a list chain inet harpe_gov " chain   \
	" | sed -n 's/.*" like ".*handle //p') " by

static const struct {
	const char *nft;
	const char *names; /* what the sentence must contain */
} tampering[] = {
	{ "flush ruleset", "there is no table inet harpe_gov" },
	{ "delete table inet harpe_gov", "there is no table inet harpe_gov" },
	{ "add table inet harpe_gov '{ flags dormant; }'", "flags 0x1" },
	{ "flush table inet harpe_gov", "0 rules in chain output" },
	{ "flush chain inet harpe_gov output", "0 rules in chain output" },
	{ "flush chain inet harpe_gov guests", "0 rules in chain guests" },
	{ "flush chain inet harpe_gov profile_drop", "0 rules in chain profile_drop" },
	{ "insert rule inet harpe_gov output accept", "rule 1 in chain output: immediate" },
	{ "add rule inet harpe_gov output accept", "rule 3 in chain output" },
	{ "insert rule inet harpe_gov output meta skuid 90000 accept",
	  "rule 1 in chain output: meta" },
	{ "insert rule inet harpe_gov profile_drop accept",
	  "rule 1 in chain profile_drop: immediate" },
	{ "add rule inet harpe_gov profile_web accept", "rule 6 in chain profile_web" },
	{ "delete rule inet harpe_gov output handle $(nft -a list chain inet harpe_gov output | "
	  "sed -n 's/.*skuid.*handle //p')",
	  "1 rules in chain output" },
	{ REPLACE("output", "skuid", "meta skuid != @pool drop"),
	  "rule 2 in chain output: lookup from 1, to 0, set pool, flags 0x1" },
	{ REPLACE("output", "skuid", "meta skuid @pool counter drop"),
	  "rule 2 in chain output: counter" },
	{ REPLACE("guests", "vmap", "accept"), "rule 1 in chain guests: immediate" },
	{ REPLACE("profile_web", "skuid !=", "meta skuid @pool return"),
	  "rule 1 in chain profile_web: lookup from 1, to 0, set pool, flags 0\"" },
	{ REPLACE("profile_web", "hdrlength", "ip protocol . ip daddr . th dport @web_ip4 accept"),
	  "rule 2 in chain profile_web: payload base 1, offset 9" },
	{ REPLACE("profile_web", "hdrlength",
		  "ip hdrlength 5 ip protocol . ip saddr . th dport @web_ip4 accept"),
	  "rule 2 in chain profile_web: payload base 1, offset 12" },
	{ REPLACE("profile_web", "limit",
		  "'update @logged { meta skuid limit rate 10/day burst 20 packets } log prefix "
		  "\"harpe-gov web: \" group 5'"),
	  "rate 10, per 86400" },
	{ "add chain inet harpe_gov output '{ policy drop; }'", "policy 0" },
	{ "add chain inet harpe_gov other", "objects 11" },
	{ "add chain inet harpe_gov early '{ type filter hook output priority -300; accept; }'",
	  "objects 11" },
	{ "add set inet harpe_gov other '{ type uid; }'", "objects 11" },
	{ "add counter inet harpe_gov other", "objects 11" },
	{ "delete element inet harpe_gov web_ip4 '{ tcp . 192.0.2.10 . 443 }'",
	  "tcp 192.0.2.10-192.0.2.10 443-443 is missing in set web_ip4" },
	{ "'delete element inet harpe_gov web_ip4 { tcp . 192.0.2.10 . 443 };"
	  "add element inet harpe_gov web_ip4 { tcp . 192.0.2.10-192.0.2.255 . 443 }'",
	  "tcp 192.0.2.10-192.0.2.10 443-443 is missing in set web_ip4" },
	{ "'delete element inet harpe_gov web_ip6 { tcp . 2001:db8::/32 . 8000-8100 };"
	  "add element inet harpe_gov web_ip6 { udp . ::/0 . 1-65535 }'",
	  "is missing in set web_ip6" },
	{ "add element inet harpe_gov web_ip4 '{ * }'",
	  "set web_ip4 has an element of a kind that is not ours" },
	{ "add element inet harpe_gov profiles '{ * : accept }'",
	  "set profiles has an element of a kind that is not ours" },
	{ "flush map inet harpe_gov profiles", "to chain profile_drop is missing in set profiles" },
	{ "add element inet harpe_gov logged '{ 90000 limit rate 1/day }'", NULL },
	{ "delete element inet harpe_gov pool '{ 90001 }'", "uid 90001 is missing" },
	{ "flush set inet harpe_gov pool", "uid 90000 is missing" },
	{ "'delete element inet harpe_gov pool { 90001 };"
	  "add element inet harpe_gov pool { 80000 }'",
	  "uid 80000 is in set pool and should not be" },
	{ "'delete element inet harpe_gov pool { 90001 };"
	  "add element inet harpe_gov pool { 91000 }'",
	  "uid 90001 is missing" },
};

/* For those who only look: one part alone differs, and says the same of what there is; all of them
 * when there is no table. */
static void assert_surveyed(struct firewall *fw, const char *names)
{
	struct firewall_survey survey;
	struct error e = ERROR_NULL;
	size_t n = 0, named = 0;

	assert_ok(firewall_survey(fw, &golden_policy, &survey, &e), &e);
	for (int i = 0; i < FIREWALL_PART_COUNT; i++) {
		n += survey.part[i] < 0;
		named +=
			survey.part[i] == -ESTALE && names && strstr(survey.differs[i].text, names);
	}
	assert_int_equal(n, named);
	if (!names)
		assert_int_equal(n, 0);
	else if (n != 1 && n != FIREWALL_PART_COUNT)
		fail_msg("%zu parts say \"%s\"", n, names);
}

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
		if (!tampering[i].names) { /* what the kernel fills: it costs at most a record */
			assert_ok(firewall_check(fw, &e), &e);
			assert_surveyed(fw, NULL);
			firewall_free(fw);
			continue;
		}
		assert_int_equal(firewall_check(fw, &e), -ESTALE);
		if (!strstr(e.text, tampering[i].names))
			fail_msg("nft %s: \"%s\" does not say \"%s\"", tampering[i].nft, e.text,
				 tampering[i].names);
		assert_surveyed(fw, tampering[i].names);
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
