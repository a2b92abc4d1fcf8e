/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel -> objects, by questions about our own table only.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "nft/channel.h"
#include "nft/ruleset.h"

/* The generation: it goes up with every commit on this host (network namespace). */
int live_generation(struct channel *ch, uint32_t *ret, struct error *e);

/* Reads the table, and from it the sets and chains that are @wanted; what is not there stays NULL.
 * That there are no others follows from the table's own count. Commits of others in between may
 * tear it: compare the generation before and after. 1 when the kernel noticed that itself. */
int live_read(struct channel *ch, const struct ruleset *wanted, struct ruleset *ret,
	      struct error *e);

/* Netlink port of the socket that owns the table; 0 = nobody, or there is no table. */
int live_owner(struct channel *ch, uint32_t *ret, struct error *e);

/* The packet counter of one element. -ENOENT when the set has no such element, or is not there. */
int live_element_packets(struct channel *ch, const char *set, const void *key, uint32_t key_len,
			 uint64_t *ret, struct error *e);

/* Is the set there? 0 or -ENOENT. */
int live_set_exists(struct channel *ch, const char *set, struct error *e);

/* Takes one message of a reply into @rs (a struct ruleset). libnftnl ends the process on malformed
 * attributes and crashes on nameless expressions, so this is for messages of the kernel only. */
int live_take(const struct nlmsghdr *nlh, void *rs);
