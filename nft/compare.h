/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects -> text, and the first difference between two tables. Pure.
 */
#pragma once

#include "common/error.h"
#include "nft/ruleset.h"

/* Everything that matters about @rs except the elements of sets, one object or expression per line;
 * no counters, handles or comments. To be freed; NULL when out of memory. */
char *ruleset_describe(const struct ruleset *rs);

/* 0 when @live is what is @wanted; -ESTALE with one sentence about the first difference; -ENOMEM.
 * Elements are sorted in both. */
int ruleset_compare(const struct ruleset *wanted, const struct ruleset *live, struct error *e);

/* The same for one part of them. */
int ruleset_compare_part(const struct ruleset *wanted, const struct ruleset *live,
			 enum firewall_part part, struct error *e);
