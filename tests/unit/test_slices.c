/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which addresses systemd's filter may let a profile's guests reach. */
#include "tests/unit/test.h"

#include <arpa/inet.h>

#include "governor/daemon/slices.h"

static bool is_due(const struct profile *p, const char *address, uint32_t prefix)
{
	struct ip_rule rule = { .family = strchr(address, ':') ? AF_INET6 : AF_INET,
				.prefix = prefix };

	assert_int_equal(inet_pton(rule.family, address, rule.address), 1);
	return slices_rule_is_due(p, &rule);
}

static void isolated_has_loopback(void **state)
{
	const struct profile *p = &built_in_profiles[PROFILE_ISOLATED];

	(void)state;
	assert_true(is_due(p, "127.0.0.0", 8));
	assert_true(is_due(p, "127.0.0.1", 32));
	assert_true(is_due(p, "::1", 128));
	assert_false(is_due(p, "127.0.0.0", 7));
	assert_false(is_due(p, "0.0.0.0", 0));
	assert_false(is_due(p, "192.0.2.1", 32));
	assert_false(is_due(p, "::1", 127));
	assert_false(is_due(p, "::2", 128));
	assert_false(is_due(p, "7f00::", 128));
	assert_false(is_due(p, "::", 0));
}

static void others_have_what_they_list(void **state)
{
	struct profile p;
	struct allow entry;
	struct error e = ERROR_NULL;

	(void)state;
	profile_init(&p, "web");
	assert_false(is_due(&p, "127.0.0.1", 32));
	assert_int_equal(allow_parse("tcp 198.51.100.0/24:443", &entry, &e), 0);
	assert_int_equal(profile_add(&p, &entry, (struct origin){ 0 }), 0);
	assert_int_equal(allow_parse("udp [2001:db8::/32]:53", &entry, &e), 0);
	assert_int_equal(profile_add(&p, &entry, (struct origin){ 0 }), 0);
	assert_true(is_due(&p, "198.51.100.0", 24));
	assert_true(is_due(&p, "2001:db8::", 32));
	assert_false(is_due(&p, "198.51.100.0", 23));
	assert_false(is_due(&p, "198.51.100.0", 32));
	assert_false(is_due(&p, "198.51.101.0", 24));
	assert_false(is_due(&p, "2001:db8::", 31));
	assert_false(is_due(&p, "127.0.0.1", 32));
	assert_false(is_due(&p, "::1", 128));
	profile_free(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(isolated_has_loopback),
		cmocka_unit_test(others_have_what_they_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
