/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table three times over: as nft lists it, as nft/describe.c prints it, and (by the tests that
 * use this) as nft/table.c encodes it. tests/unit holds the second and the third together without a
 * kernel, tests/net the first and the third.
 */
#pragma once

#include "nft/firewall.h"

/* The same in both byte orders, and no cgroup has it. */
#define GOLDEN_SLICE_ID UINT64_C(0x0101010101010101)

static const struct firewall_policy golden_policy = {
	.first_uid = 90000,
	.uid_count = 3,
	.slice_id = GOLDEN_SLICE_ID,
	.slice_level = 1,
	.scope_level = 3,
};

#define GOLDEN_OWNER 7

static const struct {
	const char *nft; /* nft -s list table inet harpe_gov */
	const char *listing;
} golden[] = {
	{ "table inet harpe_gov {\n"
	  "	flags owner\n"
	  "\n",
	  "table inet harpe_gov, flags 0x2, owner 7, objects 3\n" },

	{ "	set pool {\n"
	  "		type uid\n"
	  "		size 3\n"
	  "		counter\n"
	  "		elements = { 90000 counter, 90001 counter, 90002 counter }\n"
	  "	}\n"
	  "\n",
	  "set pool, flags 0, type 24, length 4, data 0, object 0, size 3, timeout 0\n"
	  "set pool: counter\n" },

	{ "	set strays {\n"
	  "		type cgroupsv2\n"
	  "		size 65535\n"
	  "		flags dynamic,timeout\n"
	  "		timeout 1d\n"
	  "	}\n"
	  "\n",
	  "set strays, flags 0x30, type 46, length 8, data 0, object 0, size 65535, "
	  "timeout 86400000\n" },

	{ "	chain output {\n"
	  "		type filter hook output priority filter - 10; policy accept;\n",
	  "chain output, type filter, hook 3, priority -10, policy 1, flags 0x1\n" },

	{ "		meta skuid @pool drop\n",
	  "rule 1 in chain output\n"
	  "rule 1: meta key 10, from 0, to 1\n"
	  "rule 1: lookup from 1, to 0, set pool, flags 0\n"
	  "rule 1: immediate to 0, data -, verdict 0, chain -\n" },

	{ "		socket cgroupv2 level 1 72340172838076673 update @strays "
	  "{ socket cgroupv2 level 3 counter }\n",
	  "rule 2 in chain output\n"
	  "rule 2: socket key 3, level 1, to 1\n"
	  "rule 2: cmp from 1, op 0, data 0101010101010101\n"
	  "rule 2: socket key 3, level 3, to 1\n"
	  "rule 2: dynset key from 1, data from 0, op 1, set strays, timeout 0, flags 0, "
	  "with counter\n" },

	{ "		socket cgroupv2 level 1 72340172838076673 counter drop\n",
	  "rule 3 in chain output\n"
	  "rule 3: socket key 3, level 1, to 1\n"
	  "rule 3: cmp from 1, op 0, data 0101010101010101\n"
	  "rule 3: counter\n"
	  "rule 3: immediate to 0, data -, verdict 0, chain -\n" },

	{ "	}\n"
	  "}\n",
	  "3 rules\n" },
};
