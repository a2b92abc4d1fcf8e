/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules, sets and tables in the language of nft(8). What our own table is made of is written so
 * that nft reads the same table again; of others the usual is, and the rest stands there raw, as
 * [ name bytes ].
 */
#pragma once

#include <stdio.h>

#include "nft/foreign.h"
#include "nft/text_value.h"

/* The rule on one line, without its end. @counted: with what its counters have counted. */
void text_rule(FILE *f, struct foreign *ruleset, const struct foreign_chain *c,
	       const struct foreign_rule *rule, const struct text_names *names, bool counted);

/* "table inet harpe_gov"; "type filter hook output priority -10" */
void text_table_name(FILE *f, const struct foreign_table *t);
void text_hook(FILE *f, const struct foreign *ruleset, const struct foreign_chain *c);

/* One element, an interval by its start: "tcp . 192.0.2.10 . 443", "1 : jump web". False when
 * there is nothing to be printed for it. */
bool text_element(FILE *f, const struct foreign_set *s, size_t index,
		  const struct text_names *names);

/* The whole table, one object, rule or element per line. @counted: behind a line "\t" and what was
 * counted there, which nft does not read. */
void text_table(FILE *f, struct foreign *ruleset, const struct foreign_table *t,
		const struct text_names *names, bool counted);
