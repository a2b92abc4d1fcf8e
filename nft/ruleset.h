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
#include "nft/element.h"
#include "nft/firewall.h"

#define CHAIN_OUTPUT	     "output"
#define CHAIN_GUESTS	     "guests"
#define CHAIN_PROFILE_PREFIX "profile_"
#define SET_POOL	     "pool"
#define SET_STRAYS	     "strays"
#define SET_LOGGED	     "logged"
#define SET_PROFILES	     "profiles"
#define SET_IP4_SUFFIX	     "_ip4"
#define SET_IP6_SUFFIX	     "_ip6"

#define RULESET_RULES_MAX 8	 /* of a chain, read from the kernel; more are only counted */
#define RULESET_UIDS_MAX  65536u /* of a policy; the kernel may have more */

/* An object that is not there is NULL. */
struct ruleset_set {
	char name[OBJECT_NAME_MAX];
	struct nftnl_set *set;
	struct elements elements;
};

struct ruleset_chain {
	char name[OBJECT_NAME_MAX];
	struct nftnl_chain *chain;
	struct nftnl_rule *rules[RULESET_RULES_MAX];
	size_t n_rules;
};

struct ruleset {
	struct nftnl_table *table;
	struct ruleset_set *sets;
	size_t n_sets;
	struct ruleset_chain *chains;
	size_t n_chains;
};

#define RULESET_NULL ((struct ruleset){ .table = NULL })

void ruleset_free(struct ruleset *rs);

/* Appends an empty entry, which a later one may move; NULL when out of memory. */
struct ruleset_set *ruleset_add_set(struct ruleset *rs, const char *name);
struct ruleset_chain *ruleset_add_chain(struct ruleset *rs, const char *name);

/* NULL when there is no entry of this name. */
struct ruleset_set *ruleset_find_set(const struct ruleset *rs, const char *name);
struct ruleset_chain *ruleset_find_chain(const struct ruleset *rs, const char *name);

/* What @policy, which firewall_policy_check() took, wants. @owner is the netlink port that owns the
 * table, 0 for an unowned one. 0 or -ENOMEM. */
int ruleset_build(const struct firewall_policy *policy, uint32_t owner, struct ruleset *ret);
