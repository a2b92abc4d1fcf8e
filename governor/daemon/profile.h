/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Network profiles: what of the network a guest has, and what else it may do. Each has a slice of
 * its own below harpe.slice, by which systemd's address rules and the firewall tell its guests
 * apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/request.h"
#include "nft/firewall.h"

/* Where a value comes from. */
struct origin {
	uint8_t file; /* in config->files; 0 = built in */
	uint32_t line;
};

struct profile {
	char name[PROFILE_NAME_MAX + 1];
	char slice[PROFILE_NAME_MAX + 16]; /* its unit */
	bool built_in;
	bool own_network; /* its guests have a network namespace each */
	uint32_t on_deny; /* enum firewall_deny: what is not allowed */
	uint32_t log;	  /* what is not allowed goes to log_group: 0 or 1 */
	uint32_t log_group;
	uint32_t user_namespaces; /* its guests may make some: 0 or 1 */
	struct allow *entries;	  /* n_entries of them, and where each comes from */
	struct origin *from;
	size_t n_entries;
};

/* The built-in ones, which no configuration changes. */
enum { PROFILE_ISOLATED, PROFILE_DROP, PROFILE_REJECT, PROFILE_BUILT_IN };
extern const struct profile built_in_profiles[PROFILE_BUILT_IN];

/* An empty one of that name, which must be profile_name_valid(). */
void profile_init(struct profile *p, const char *name);

/* Takes @entry into the list. -E2BIG when it is full, -ENOMEM. */
int profile_add(struct profile *p, const struct allow *entry, struct origin from);

void profile_free(struct profile *p);

/* The same for the firewall, which knows its guests by the slice with that cgroup id. Points into
 * @p. */
struct firewall_profile profile_for_firewall(const struct profile *p, uint64_t slice_id);

/* What its guests' system call filter lets through besides: CONFINE_... together. ICMP where the
 * list has it. */
unsigned int profile_filter(const struct profile *p);

/* Does its list allow name servers, the port 53? */
bool profile_has_resolver(const struct profile *p);

/* For people: what a guest can reach. Returns @buf. */
const char *profile_sentence(const struct profile *p, char buf[PROFILE_SENTENCE_MAX]);
