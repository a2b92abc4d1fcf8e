/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the expressions of a rule do with a packet of which not everything is known, as far as that
 * can be said. What is not understood can do anything. Pure.
 */
#pragma once

#include "nft/bits.h"
#include "nft/foreign.h"

#define PACKET_LEVELS_MAX 8
#define PACKET_ANY_CGROUP 0 /* not known */

/* The first packet that a program sends to there. */
struct packet {
	uint8_t family, protocol; /* AF_INET..., IPPROTO_... */
	uint8_t address[16];	  /* network byte order; IPv4 uses the first 4 bytes */
	uint16_t port;		  /* not with ICMP, where it is an echo request */
	uint32_t uid;
	uint64_t cgroup[PACKET_LEVELS_MAX]; /* [1] = id at level 1; 0 = not known */
	uint64_t not_in;		    /* else: certainly not this one ... */
	uint32_t not_in_level;		    /* ... at this level; 0 = none */
};

enum verdict_kind {
	VERDICT_NONE, /* on to the next rule */
	VERDICT_ACCEPT,
	VERDICT_DROP,
	VERDICT_RETURN,
	VERDICT_JUMP,
	VERDICT_GOTO,
	VERDICT_ANY, /* whatever */
};

struct machine {
	struct foreign *ruleset;
	const struct packet *packet;
	struct bits_buffer registers, network, transport;
	struct bits_buffer mark; /* 4 bytes */
	size_t never_at;	 /* the register bytes that are not packet->not_in */
	bool never;
	bool uncertain;	 /* an earlier rule may have ended this: what is changed may stay as it was
			  */
	bool rewritten;	 /* where it goes was changed, or may have been */
	bool translated; /* from or to elsewhere, or that may be: no later nat chain is asked */
	bool is_nat;	 /* this chain's rules are asked about where it goes */

	/* Of the rule that ran last. */
	enum ternary match;
	enum verdict_kind verdict;
	const char *chain; /* of a jump */
	const char *doubt; /* name of the expression that left it open, NULL = none */
};

void machine_start(struct machine *m, struct foreign *ruleset, const struct packet *p);

/* Runs the expressions of @rule, in a chain of @table. */
void machine_run(struct machine *m, size_t table, const struct foreign_rule *rule);
