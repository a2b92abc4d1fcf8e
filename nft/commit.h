/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two transactions that there are, and what is tried first.
 */
#pragma once

#include "common/error.h"
#include "nft/ruleset.h"
#include "nft/transaction.h"

/* Replaces the kernel's table by @wanted, whoever made it. */
int commit_replace(struct channel *ch, const struct ruleset *wanted, enum object_kind *ret_kind,
		   struct error *e);

/* Does the kernel know a table with @flags? Tried under another name, and undone by the kernel
 * before anybody sees it. 1 = yes, 0 = no, or a negative errno. */
int commit_try_table(struct channel *ch, uint32_t flags, struct error *e);

/* Removes the table. 0 also when there is none. */
int commit_remove(struct channel *ch, enum object_kind *ret_kind, struct error *e);

/* The messages of commit_replace(), for tests. 0 or -ENOMEM. */
int commit_build_replace(struct transaction *t, const struct ruleset *wanted);
