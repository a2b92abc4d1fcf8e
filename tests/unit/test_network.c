/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters of a network namespace. */
#include "tests/unit/test.h"

#include "governor/guest/network.h"

static const char snmp[] =
	"Ip: Forwarding DefaultTTL OutRequests OutDiscards OutNoRoutes ReasmFails\n"
	"Ip: 2 64 10 3 7 0\n"
	"Icmp: InMsgs OutNoRoutes\n"
	"Icmp: 0 9\n"
	"Udp: InDatagrams NoPorts\n"
	"Udp: 1 18446744073709551615";

static void finds_the_counter(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_int_equal(network_parse_snmp(snmp, "Ip:", "OutNoRoutes", &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(network_parse_snmp(snmp, "Ip:", "Forwarding", &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(network_parse_snmp(snmp, "Ip:", "ReasmFails", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(network_parse_snmp(snmp, "Icmp:", "OutNoRoutes", &n), 0);
	assert_int_equal(n, 9);
	assert_int_equal(network_parse_snmp(snmp, "Udp:", "NoPorts", &n), 0);
	assert_int_equal(n, UINT64_MAX);
}

static void takes_nothing_else(void **state)
{
	static const char *const bad[] = {
		"",
		"Ip:",
		"Ip: OutNoRoutes",
		"Ip: OutNoRoutes\n",
		"Ip: OutNoRoutes\nIcmp: 1\n",
		"Ip: A OutNoRoutes\nIp: 1\n",
		"Ip: A OutNoRoutes\nIp: 1\n2\n",
		"Ip: OutNoRoutes\nIp: x\n",
		"Ip: OutNoRoutesToo\nIp: 1\n",
	};
	uint64_t n = 4711;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(network_parse_snmp(bad[i], "Ip:", "OutNoRoutes", &n) < 0);
	assert_int_equal(n, 4711);
}

static void knows_nothing_of_nobody(void **state)
{
	struct network network = NETWORK_NULL;
	uint64_t n = 4711;

	(void)state;
	network_open(-1, &network);
	assert_true(network_unroutable(&network, &n) < 0);
	assert_int_equal(n, 4711);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_counter),
		cmocka_unit_test(takes_nothing_else),
		cmocka_unit_test(knows_nothing_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
