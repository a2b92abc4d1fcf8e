/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table as libnftnl objects: what is wanted (ruleset_build) and what the kernel has (live_read)
 * have the same shape, so that one description of it serves both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libnftnl/chain.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>

#include "common/error.h"
#include "nft/firewall.h"

#define CHAIN_OUTPUT "output"
#define SET_POOL     "pool"
#define SET_STRAYS   "strays"

#define RULESET_RULES	  3
#define RULESET_RULES_MAX 8	 /* read from the kernel; more are only counted */
#define RULESET_UIDS_MAX  65536u /* of a policy; the kernel may have more */

/* An object that is not there is NULL. */
struct ruleset {
	struct nftnl_table *table;
	struct nftnl_chain *chain;
	struct nftnl_set *pool, *strays;
	struct nftnl_rule *rules[RULESET_RULES_MAX];
	size_t n_rules;
	uint32_t *uids; /* elements of the pool */
	size_t n_uids;
};

#define RULESET_NULL ((struct ruleset){ .n_rules = 0 })

void ruleset_free(struct ruleset *rs);

/* -EINVAL with a sentence when @policy makes no sense. */
int policy_check(const struct firewall_policy *policy, struct error *e);

/* What @policy wants. @owner is the netlink port that owns the table, 0 for an unowned one.
 * 0 or -ENOMEM. */
int ruleset_build(const struct firewall_policy *policy, uint32_t owner, struct ruleset *ret);
