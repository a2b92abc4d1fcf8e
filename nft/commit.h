/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two transactions that there are.
 */
#pragma once

#include "common/error.h"
#include "nft/ruleset.h"
#include "nft/transaction.h"

/* Replaces the kernel's table by @wanted, whoever made it. */
int commit_replace(struct channel *ch, const struct ruleset *wanted, enum object_kind *ret_kind,
		   struct error *e);

/* Removes the table. 0 also when there is none. */
int commit_remove(struct channel *ch, enum object_kind *ret_kind, struct error *e);

/* The messages of commit_replace(), for tests. 0 or -ENOMEM. */
int commit_build_replace(struct transaction *t, const struct ruleset *wanted);
