/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way of a packet through all base chains that a program's own packets pass (nf_hook_slow(),
 * nft_do_chain()): hook output, then postrouting, then egress of a device, each in the order of
 * priorities; families inet and ip or ip6, and netdev. An accept ends one base chain, a drop the
 * whole way. Chains of type nat are asked at the priority of translation (-100 in output), the
 * first that translates is the last that is asked. Pure.
 *
 * What happens where it arrives (hooks prerouting and input of the loopback device) is not part of
 * it; neither are x_tables (iptables-legacy), whose rules are not to be seen here.
 */
#pragma once

#include "nft/machine.h"

#define WALK_RULES_MAX 250000 /* that are looked at; behind them everything is unknown */

enum walk_outcome { WALK_ACCEPT, WALK_DROP, WALK_UNKNOWN };

/* A rule; without one, the policy of a base chain. */
struct walk_place {
	const struct foreign_chain *chain;
	const struct foreign_rule *rule;
};

/* One base chain on the way. */
struct walk_step {
	const struct foreign_chain *base;
	enum walk_outcome outcome;
	struct walk_place decided; /* by what, unless it is unknown */
	struct walk_place doubt;   /* the first rule that may or may not match; chain NULL = none */
	const char *doubt_expr;	   /* of its expressions */
	bool skipped;		   /* the packet's translation was settled before */
	bool only_device;	   /* passed only when the packet leaves through its device */
	bool rewritten;		   /* where the packet goes was changed here, or may have been */
	bool translated;	   /* that, or where it comes from, by a chain of type nat */
};

struct walk {
	enum walk_outcome outcome;
	size_t decisive; /* the step that decides, n_steps = none */
	struct walk_step *steps;
	size_t n_steps;
	bool too_long; /* WALK_RULES_MAX */
};

#define WALK_NULL ((struct walk){ .steps = NULL })

/* Everything in *ret points into @f. 0 or -ENOMEM. */
int walk(struct foreign *f, const struct packet *p, struct walk *ret);

void walk_free(struct walk *w);
