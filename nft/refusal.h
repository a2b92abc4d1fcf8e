/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel's refusals mean: which object, which errno -> which piece is missing and what
 * helps.
 */
#pragma once

#include "common/error.h"

/* What a message of a transaction, or a request, is about. */
enum object_kind {
	OBJECT_REQUEST,	  /* no transaction: a question */
	OBJECT_BATCH,	  /* the transaction as such */
	OBJECT_OLD_TABLE, /* making room: the table as it was */
	OBJECT_TABLE,
	OBJECT_SET,
	OBJECT_ELEMENTS,
	OBJECT_CHAIN,
	OBJECT_RULE,
	OBJECT_SLICE_RULE, /* rules by what in them is a module of its own */
	OBJECT_LOG_RULE,
	OBJECT_REJECT_RULE,
	OBJECT_KIND_COUNT,
};

/* Sets the sentence for @r, which the kernel answered about the @kind called @name. Returns @r, or
 * the errno that firewall.h promises for this condition. */
int refusal_set(struct error *e, int r, enum object_kind kind, const char *name);
