/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/profile.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "governor/guest/confine.h"

#define CHUNK 64 /* entries that the lists grow by */

const struct profile built_in_profiles[PROFILE_BUILT_IN] = {
	[PROFILE_ISOLATED] = { .name = "isolated",
			       .slice = "harpe-isolated.slice",
			       .built_in = true,
			       .own_network = true },
	[PROFILE_DROP] = { .name = "drop", .slice = "harpe-drop.slice", .built_in = true },
	[PROFILE_REJECT] = { .name = "reject",
			     .slice = "harpe-reject.slice",
			     .built_in = true,
			     .on_deny = FIREWALL_REJECT },
};

void profile_init(struct profile *p, const char *name)
{
	*p = (struct profile){ .on_deny = FIREWALL_DROP };
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->slice, sizeof(p->slice), "harpe-%s.slice", p->name);
}

static int grow(struct profile *p)
{
	size_t n = p->n_entries + CHUNK;
	struct allow *entries = reallocarray(p->entries, n, sizeof(*entries));
	struct origin *from;

	if (!entries)
		return -ENOMEM;
	p->entries = entries;
	from = reallocarray(p->from, n, sizeof(*from));
	if (!from)
		return -ENOMEM;
	p->from = from;
	return 0;
}

int profile_add(struct profile *p, const struct allow *entry, struct origin from)
{
	if (p->n_entries == FIREWALL_ENTRIES_MAX)
		return -E2BIG;
	if (p->n_entries % CHUNK == 0 && grow(p) < 0)
		return -ENOMEM;
	p->entries[p->n_entries] = *entry;
	p->from[p->n_entries] = from;
	p->n_entries++;
	return 0;
}

void profile_free(struct profile *p)
{
	free(p->entries);
	free(p->from);
	*p = (struct profile){ 0 };
}

struct firewall_profile profile_for_firewall(const struct profile *p, uint64_t slice_id)
{
	struct firewall_profile f = {
		.slice_id = slice_id,
		.on_deny = (enum firewall_deny)p->on_deny,
		.log = p->log != 0,
		.log_group = (uint16_t)p->log_group,
		.entries = p->entries,
		.n_entries = p->n_entries,
	};

	snprintf(f.name, sizeof(f.name), "%s", p->name);
	return f;
}

static bool has_icmp(const struct profile *p)
{
	for (size_t i = 0; i < p->n_entries; i++)
		if (p->entries[i].protocol == IPPROTO_ICMP ||
		    p->entries[i].protocol == IPPROTO_ICMPV6)
			return true;
	return false;
}

unsigned int profile_filter(const struct profile *p)
{
	return (has_icmp(p) ? CONFINE_ICMP : 0) |
	       (p->user_namespaces ? CONFINE_USER_NAMESPACES : 0);
}

bool profile_has_resolver(const struct profile *p)
{
	for (size_t i = 0; i < p->n_entries; i++) {
		const struct allow *a = &p->entries[i];

		if ((a->protocol == IPPROTO_TCP || a->protocol == IPPROTO_UDP) &&
		    a->first_port <= 53 && a->last_port >= 53)
			return true;
	}
	return false;
}

const char *profile_sentence(const struct profile *p, char buf[PROFILE_SENTENCE_MAX])
{
	const char *denied = p->on_deny == FIREWALL_REJECT ? "rejected" : "dropped";

	if (p->own_network)
		snprintf(buf, PROFILE_SENTENCE_MAX,
			 "a network of the guest's own, with nothing in it but loopback");
	else if (p->n_entries == 0)
		snprintf(buf, PROFILE_SENTENCE_MAX,
			 "the host's network, on which everything that the guest sends is %s, "
			 "loopback included",
			 denied);
	else
		snprintf(buf, PROFILE_SENTENCE_MAX,
			 "the host's network, as far as %zu line%s of an allow-list; the rest is "
			 "%s",
			 p->n_entries, p->n_entries == 1 ? "" : "s", denied);
	return buf;
}
