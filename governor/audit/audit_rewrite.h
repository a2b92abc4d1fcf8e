/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What somebody's rule makes of a packet's destination, and whether a profile allows that.
 */
#pragma once

#include "nft/cover.h"
#include "nft/firewall.h"
#include "nft/foreign.h"

#define REWRITE_BOXES_MAX 8

/* Where to; nothing when the rule leaves destinations alone. The boxes' protocol means nothing. */
struct rewrite {
	struct box to[REWRITE_BOXES_MAX];
	size_t n;
};

/* @family is that of the rule's table. Never less than what the rule can do. */
void rewrite_read(const struct foreign_rule *rule, uint8_t family, struct rewrite *ret);

/* Can the result be a destination that a profile of @policy allows? 1, 0 or -ENOMEM. */
int rewrite_allowed(const struct firewall_policy *policy, const struct rewrite *w);
