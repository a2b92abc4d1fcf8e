/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What nft/table.c and nft/profile.c build with. An object that could not be built whole is in the
 * ruleset all the same, to be freed with it.
 */
#pragma once

#include "nft/expression.h"
#include "nft/ruleset.h"

/* nft's numbers for what a key is; the kernel only hands them back. */
#define NFT_TYPE_IP4	   7
#define NFT_TYPE_IP6	   8
#define NFT_TYPE_PROTOCOL  12
#define NFT_TYPE_PORT	   13
#define NFT_TYPE_UID	   24
#define NFT_TYPE_CGROUPSV2 46

/* Appends a set; NULL when out of memory. */
struct ruleset_set *build_set(struct ruleset *rs, const char *name, uint32_t flags,
			      uint32_t key_type, uint32_t key_len, size_t size);

/* Appends a regular chain; NULL when out of memory. */
struct ruleset_chain *build_chain(struct ruleset *rs, const char *name);

/* Appends a rule of @n expressions, which are taken over; false when one of them is NULL, or out of
 * memory. */
bool build_rule(struct ruleset_chain *c, struct nftnl_expr **parts, size_t n);

#define BUILD_RULE(chain, ...)                                                                     \
	build_rule((chain), (struct nftnl_expr *[]){ __VA_ARGS__ },                                \
		   sizeof((struct nftnl_expr *[]){ __VA_ARGS__ }) / sizeof(struct nftnl_expr *))

/* Lookups in a set of @rs. */
struct nftnl_expr *in_set(const struct ruleset *rs, const char *set);
struct nftnl_expr *not_in_set(const struct ruleset *rs, const char *set);

/* update @SET { KEY @with } */
struct nftnl_expr *update_set(const struct ruleset *rs, const char *set, struct nftnl_expr *with);

/* Names of what a profile has; returns @buf. */
const char *profile_chain(const struct firewall_profile *p, char buf[OBJECT_NAME_MAX]);

/* Sets and chain of a profile. 0 or -ENOMEM. */
int build_profile_sets(struct ruleset *rs, const struct firewall_profile *p);
int build_profile_chain(struct ruleset *rs, const struct firewall_profile *p);
