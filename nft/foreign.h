/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every table of the host, ours among them, as the kernel tells it: for those who look. Nothing is
 * interpreted, so an expression that nobody here knows is there all the same, with its bytes. The
 * messages are kept and pointed into.
 *
 * Unlike what nft/live.c reads, this comes from anybody who may change the ruleset: it does not go
 * through libnftnl, and it is bounded.
 */
#pragma once

#include "common/error.h"
#include "nft/attribute.h"
#include "nft/ruleset.h"

#define FOREIGN_OBJECTS_MAX  (1u << 18) /* tables, chains, sets and rules together */
#define FOREIGN_ELEMENTS_MAX (1u << 20) /* of all sets */
#define FOREIGN_BYTES_MAX    (256u << 20)

struct foreign_expr {
	const char *name;
	struct nest data; /* NFTA_EXPR_DATA */
};

struct foreign_rule {
	uint64_t handle;
	struct nest exprs; /* see foreign_next_expr() */
};

/* A plain interval is two elements: the second has NFT_SET_ELEM_INTERVAL_END and is not part of
 * it. */
struct foreign_element {
	struct nest key, key_end; /* empty when there is none */
	uint32_t flags;		  /* NFT_SET_ELEM_... */
	struct nest raw;	  /* NFTA_SET_ELEM_... */
};

struct foreign_table {
	uint8_t family; /* NFPROTO_... */
	const char *name;
	uint32_t flags; /* NFT_TABLE_F_... */
	uint32_t owner; /* netlink port, 0 = nobody */
	uint32_t use;	/* the kernel's count of objects in it */
};

struct foreign_chain {
	size_t table; /* its place in tables */
	const char *name;
	bool base;
	const char *type; /* of a base chain, as its hook, priority and policy */
	uint32_t hook, policy;
	int32_t priority;
	struct nest hook_raw; /* NFTA_HOOK_...: devices */
	struct foreign_rule *rules;
	size_t n_rules;
};

struct foreign_set {
	size_t table;
	const char *name;
	uint32_t flags; /* NFT_SET_... */
	uint32_t key_type, key_len, data_type, data_len;
	struct nest raw;		  /* NFTA_SET_... */
	struct foreign_element *elements; /* ascending: see foreign_sort() */
	size_t n_elements;
};

struct foreign_message;

struct foreign {
	struct foreign_table *tables;
	struct foreign_chain *chains; /* in the kernel's order */
	struct foreign_set *sets;
	size_t n_tables, n_chains, n_sets;
	size_t n_rules, n_elements, n_bytes; /* all together */
	struct foreign_message *messages;
	size_t last_chain, last_set; /* found last */
};

#define FOREIGN_NULL ((struct foreign){ .tables = NULL })

/* Reads all tables of this network namespace, at one moment (the generation is the same before and
 * after). -EAGAIN: they kept changing. -E2BIG: more than is looked at. */
int foreign_read(struct foreign *ret, struct error *e);

/* Puts the table that @policy wants in the place of the one that was read; that one stays behind it
 * without a name and dormant. What points into @f may move. As firewall_policy_check(), -ENOMEM. */
int foreign_put_wanted(struct foreign *f, const struct firewall_policy *policy, struct error *e);

void foreign_free(struct foreign *f);

/* Sorts the elements of all sets by key, as numbers where the kernel compares host words; an
 * interval's end comes before a start at the same place. What was read is sorted already. */
void foreign_sort(struct foreign *f);

/* Negative, 0 or positive, in the same order. */
int foreign_compare_keys(const struct foreign_set *s, struct nest a, struct nest b);

/* Takes one message (NFT_MSG_NEW...) into @f (a struct foreign), whatever it is. -EBADMSG: what it
 * belongs to is not there, or it has no name. -ENOMEM, -E2BIG. */
int foreign_take(const struct nlmsghdr *nlh, void *f);

/* NULL when there is none. */
struct foreign_table *foreign_find_table(const struct foreign *f, uint8_t family, const char *name);
struct foreign_chain *foreign_find_chain(struct foreign *f, size_t table, const char *name);
struct foreign_set *foreign_find_set(struct foreign *f, size_t table, const char *name);

/* The expression at the front of @rest, which moves behind it; false at the end. One that has no
 * name is called "?". */
bool foreign_next_expr(struct nest *rest, struct foreign_expr *ret);

/* Taken out of a NFTA_DATA_VERDICT; NFT_JUMP and NFT_GOTO have a chain. False when there is none.
 */
bool foreign_verdict(struct nest data, int *ret_code, const char **ret_chain);

/* The packets that a counter among the expressions in @exprs has counted; FIREWALL_UNKNOWN when
 * there is none. */
uint64_t foreign_packets(struct nest exprs);

/* The same of an element. */
uint64_t foreign_element_packets(const struct foreign_element *element);

/* "inet", "ip", ...; "family 99". Returns a static text or @buf. */
const char *foreign_family(uint8_t family, char buf[16]);
