/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table three times over: as nft lists it, as nft/describe.c prints it, and (by the tests that
 * use this) as nft/table.c encodes it. tests/unit holds the second and the third together without a
 * kernel, tests/net the first and the third.
 */
#pragma once

#include <linux/in.h> /* mixes with netinet/in.h before it, not behind it */
#include <sys/socket.h>

#include "nft/firewall.h"

/* The same in both byte orders, and no cgroup has them. */
#define GOLDEN_SLICE_ID UINT64_C(0x0101010101010101)
#define GOLDEN_DROP_ID	UINT64_C(0x0202020202020202)
#define GOLDEN_WEB_ID	UINT64_C(0x0303030303030303)

static const struct allow golden_entries[] = {
	{ AF_INET6, IPPROTO_TCP, 32, { 0x20, 0x01, 0x0d, 0xb8 }, 8000, 8100 },
	{ AF_INET, IPPROTO_TCP, 32, { 192, 0, 2, 10 }, 443, 443 },
	{ AF_INET, IPPROTO_ICMP, 32, { 192, 0, 2, 1 }, 0, 65535 },
};

static const struct firewall_profile golden_profiles[] = {
	{ .name = "drop", .slice_id = GOLDEN_DROP_ID },
	{
		.name = "web",
		.slice_id = GOLDEN_WEB_ID,
		.on_deny = FIREWALL_REJECT,
		.log = true,
		.log_group = 5,
		.entries = golden_entries,
		.n_entries = 3,
	},
};

static const struct firewall_policy golden_policy = {
	.first_uid = 90000,
	.uid_count = 3,
	.slice_id = GOLDEN_SLICE_ID,
	.slice_level = 1,
	.scope_level = 3,
	.profile_level = 2,
	.profiles = golden_profiles,
	.n_profiles = 2,
};

#define GOLDEN_OWNER   7
#define GOLDEN_OBJECTS 10

static const struct {
	const char *nft; /* nft -s list table inet harpe_gov */
	const char *listing;
} golden[] = {
	{ "table inet harpe_gov {\n"
	  "	flags owner\n"
	  "\n",
	  "table inet harpe_gov, flags 0x2, owner 7, objects 10\n" },

	{ "	set pool {\n"
	  "		type uid\n"
	  "		size 3\n"
	  "		counter\n"
	  "		elements = { 90000 counter, 90001 counter, 90002 counter }\n"
	  "	}\n"
	  "\n",
	  "set pool, flags 0, type 24, length 4, data 0, object 0, size 3, parts -, timeout 0\n"
	  "set pool: counter\n" },

	{ "	set strays {\n"
	  "		type cgroupsv2\n"
	  "		size 65535\n"
	  "		flags dynamic,timeout\n"
	  "		timeout 1d\n"
	  "	}\n"
	  "\n",
	  "set strays, flags 0x30, type 46, length 8, data 0, object 0, size 65535, parts -, "
	  "timeout 86400000\n" },

	{ "	set logged {\n"
	  "		type uid\n"
	  "		size 3\n"
	  "		flags dynamic\n"
	  "	}\n"
	  "\n",
	  "set logged, flags 0x20, type 24, length 4, data 0, object 0, size 3, parts -, "
	  "timeout 0\n" },

	{ "	map profiles {\n"
	  "		type cgroupsv2 : verdict\n"
	  "		size 128\n"
	  "		elements = { 144680345676153346 : jump profile_drop,\n"
	  "			     217020518514230019 : jump profile_web }\n"
	  "	}\n"
	  "\n",
	  "set profiles, flags 0x8, type 46, length 8, data 0xffffff00, object 0, size 128, "
	  "parts -, timeout 0\n" },

	{ "	set web_ip4 {\n"
	  "		type inet_proto . ipv4_addr . inet_service\n"
	  "		size 2\n"
	  "		flags interval\n"
	  "		elements = { icmp . 192.0.2.1 . 0-65535,\n"
	  "			     tcp . 192.0.2.10 . 443 }\n"
	  "	}\n"
	  "\n",
	  "set web_ip4, flags 0x84, type 49613, length 12, data 0, object 0, size 2, "
	  "parts 010402, timeout 0\n" },

	{ "	set web_ip6 {\n"
	  "		type inet_proto . ipv6_addr . inet_service\n"
	  "		size 1\n"
	  "		flags interval\n"
	  "		elements = { tcp . 2001:db8::/32 . 8000-8100 }\n"
	  "	}\n"
	  "\n",
	  "set web_ip6, flags 0x84, type 49677, length 24, data 0, object 0, size 1, "
	  "parts 011002, timeout 0\n" },

	{ "	chain output {\n"
	  "		type filter hook output priority filter - 10; policy accept;\n",
	  "chain output, type filter, hook 3, priority -10, policy 1, flags 0x1\n" },

	{ "		socket cgroupv2 level 1 72340172838076673 jump guests\n",
	  "rule 1 in chain output\n"
	  "rule 1 in chain output: socket key 3, level 1, to 1\n"
	  "rule 1 in chain output: cmp from 1, op 0, data 0101010101010101\n"
	  "rule 1 in chain output: immediate to 0, data -, verdict -3, chain guests\n" },

	{ "		meta skuid @pool drop\n"
	  "	}\n"
	  "\n",
	  "rule 2 in chain output\n"
	  "rule 2 in chain output: meta key 10, from 0, to 1\n"
	  "rule 2 in chain output: lookup from 1, to 0, set pool, flags 0\n"
	  "rule 2 in chain output: immediate to 0, data -, verdict 0, chain -\n"
	  "2 rules in chain output\n" },

	{ "	chain guests {\n",
	  "chain guests, type -, hook 0, priority 0, policy 0, flags 0\n" },

	{ "		socket cgroupv2 level 2 vmap @profiles\n",
	  "rule 1 in chain guests\n"
	  "rule 1 in chain guests: socket key 3, level 2, to 1\n"
	  "rule 1 in chain guests: lookup from 1, to 0, set profiles, flags 0\n" },

	{ "		meta skuid @pool drop\n",
	  "rule 2 in chain guests\n"
	  "rule 2 in chain guests: meta key 10, from 0, to 1\n"
	  "rule 2 in chain guests: lookup from 1, to 0, set pool, flags 0\n"
	  "rule 2 in chain guests: immediate to 0, data -, verdict 0, chain -\n" },

	{ "		update @strays { socket cgroupv2 level 3 counter }\n",
	  "rule 3 in chain guests\n"
	  "rule 3 in chain guests: socket key 3, level 3, to 1\n"
	  "rule 3 in chain guests: dynset key from 1, data from 0, op 1, set strays, timeout 0, "
	  "flags 0, with counter\n" },

	{ "		update @strays { socket cgroupv2 level 4 counter }\n",
	  "rule 4 in chain guests\n"
	  "rule 4 in chain guests: socket key 3, level 4, to 1\n"
	  "rule 4 in chain guests: dynset key from 1, data from 0, op 1, set strays, timeout 0, "
	  "flags 0, with counter\n" },

	{ "		counter drop\n"
	  "	}\n"
	  "\n",
	  "rule 5 in chain guests\n"
	  "rule 5 in chain guests: counter\n"
	  "rule 5 in chain guests: immediate to 0, data -, verdict 0, chain -\n"
	  "5 rules in chain guests\n" },

	{ "	chain profile_drop {\n",
	  "chain profile_drop, type -, hook 0, priority 0, policy 0, flags 0\n" },

	{ "		meta skuid != @pool return\n"
	  "	}\n"
	  "\n",
	  "rule 1 in chain profile_drop\n"
	  "rule 1 in chain profile_drop: meta key 10, from 0, to 1\n"
	  "rule 1 in chain profile_drop: lookup from 1, to 0, set pool, flags 0x1\n"
	  "rule 1 in chain profile_drop: immediate to 0, data -, verdict -5, chain -\n"
	  "1 rules in chain profile_drop\n" },

	{ "	chain profile_web {\n",
	  "chain profile_web, type -, hook 0, priority 0, policy 0, flags 0\n" },

	{ "		meta skuid != @pool return\n",
	  "rule 1 in chain profile_web\n"
	  "rule 1 in chain profile_web: meta key 10, from 0, to 1\n"
	  "rule 1 in chain profile_web: lookup from 1, to 0, set pool, flags 0x1\n"
	  "rule 1 in chain profile_web: immediate to 0, data -, verdict -5, chain -\n" },

	{ "		ip hdrlength 5 ip protocol . ip daddr . th dport @web_ip4 accept\n",
	  "rule 2 in chain profile_web\n"
	  "rule 2 in chain profile_web: meta key 15, from 0, to 1\n"
	  "rule 2 in chain profile_web: cmp from 1, op 0, data 02\n"
	  "rule 2 in chain profile_web: payload base 1, offset 0, length 1, from 0, to 1\n"
	  "rule 2 in chain profile_web: bitwise from 1, to 1, op 0, length 1, and 0f, xor 00\n"
	  "rule 2 in chain profile_web: cmp from 1, op 0, data 05\n"
	  "rule 2 in chain profile_web: payload base 1, offset 9, length 1, from 0, to 1\n"
	  "rule 2 in chain profile_web: payload base 1, offset 16, length 4, from 0, to 9\n"
	  "rule 2 in chain profile_web: payload base 2, offset 2, length 2, from 0, to 10\n"
	  "rule 2 in chain profile_web: lookup from 1, to 0, set web_ip4, flags 0\n"
	  "rule 2 in chain profile_web: immediate to 0, data -, verdict 1, chain -\n" },

	{ "		ip6 nexthdr . ip6 daddr . th dport @web_ip6 accept\n",
	  "rule 3 in chain profile_web\n"
	  "rule 3 in chain profile_web: meta key 15, from 0, to 1\n"
	  "rule 3 in chain profile_web: cmp from 1, op 0, data 0a\n"
	  "rule 3 in chain profile_web: payload base 1, offset 6, length 1, from 0, to 1\n"
	  "rule 3 in chain profile_web: payload base 1, offset 24, length 16, from 0, to 9\n"
	  "rule 3 in chain profile_web: payload base 2, offset 2, length 2, from 0, to 13\n"
	  "rule 3 in chain profile_web: lookup from 1, to 0, set web_ip6, flags 0\n"
	  "rule 3 in chain profile_web: immediate to 0, data -, verdict 1, chain -\n" },

	{ "		update @logged { meta skuid limit rate 10/second burst 20 packets } "
	  "log prefix \"harpe-gov web: \" group 5\n",
	  "rule 4 in chain profile_web\n"
	  "rule 4 in chain profile_web: meta key 10, from 0, to 1\n"
	  "rule 4 in chain profile_web: dynset key from 1, data from 0, op 1, set logged, "
	  "timeout 0, flags 0, with limit rate 10, per 1, burst 20, type 0, flags 0\n"
	  "rule 4 in chain profile_web: log prefix harpe-gov web: , group 5, snaplen 0, "
	  "threshold 0, level 0, flags 0\n" },

	{ "		meta skuid @pool reject\n"
	  "	}\n",
	  "rule 5 in chain profile_web\n"
	  "rule 5 in chain profile_web: meta key 10, from 0, to 1\n"
	  "rule 5 in chain profile_web: lookup from 1, to 0, set pool, flags 0\n"
	  "rule 5 in chain profile_web: reject type 2, code 1\n"
	  "5 rules in chain profile_web\n" },

	{ "}\n", "" },
};
