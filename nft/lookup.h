/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a value, as far as it is known, in a set? As the kernel's hash, rbtree and pipapo sets answer.
 * Pure.
 */
#pragma once

#include "nft/bits.h"
#include "nft/foreign.h"

/* With ANSWER_YES *ret_element is where it was found. @never, unless empty, is what the value
 * certainly is not. */
enum ternary lookup(const struct foreign_set *s, struct bits value, struct nest never,
		    const struct foreign_element **ret_element);
