/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a profile adds to the table. Its chain says what is allowed and, where that is not the same
 * as for all guests, what happens to the rest; behind its end chain guests drops it.
 */
#include <errno.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "nft/build.h"

#define NFT_TYPE_BITS 6 /* of each part of a concatenation */

#define LOG_RATE  10 /* per second and uid */
#define LOG_BURST 20

#define IP4_PLAIN_HEADER 5 /* its length in words: no options */

/* What differs between the two families. */
static const struct family {
	uint8_t family, nfproto;
	const char *suffix;
	uint32_t address_type, address_len, address_offset;
	uint32_t protocol_offset;
} families[] = {
	{ AF_INET, NFPROTO_IPV4, SET_IP4_SUFFIX, NFT_TYPE_IP4, 4, offsetof(struct iphdr, daddr),
	  offsetof(struct iphdr, protocol) },
	{ AF_INET6, NFPROTO_IPV6, SET_IP6_SUFFIX, NFT_TYPE_IP6, 16, offsetof(struct ipv6hdr, daddr),
	  offsetof(struct ipv6hdr, nexthdr) },
};

const char *profile_chain(const struct firewall_profile *p, char buf[OBJECT_NAME_MAX])
{
	snprintf(buf, OBJECT_NAME_MAX, CHAIN_PROFILE_PREFIX "%s", p->name);
	return buf;
}

static const char *set_name(const struct firewall_profile *p, const struct family *f,
			    char buf[OBJECT_NAME_MAX])
{
	snprintf(buf, OBJECT_NAME_MAX, "%s%s", p->name, f->suffix);
	return buf;
}

/* set NAME_ip4 { type inet_proto . ipv4_addr . inet_service; size COUNT; flags interval;
 *	elements = { tcp . 192.0.2.10 . 443, udp . 198.51.100.0/24 . 53, ... } }
 * set NAME_ip6 { type inet_proto . ipv6_addr . inet_service; ... } */
static bool build_allowed(struct ruleset *rs, const char *name, const struct family *f,
			  const struct box *boxes, size_t n)
{
	const uint32_t type = NFT_TYPE_PROTOCOL << 2 * NFT_TYPE_BITS |
			      f->address_type << NFT_TYPE_BITS | NFT_TYPE_PORT;
	struct ruleset_set *s = build_set(rs, name, NFT_SET_INTERVAL | NFT_SET_CONCAT, type,
					  (uint32_t)element_key_size(element_kind_of(name)), n);
	const uint8_t lengths[] = { 1, (uint8_t)f->address_len, 2 };

	if (!s || nftnl_set_set_data(s->set, NFTNL_SET_DESC_CONCAT, lengths, sizeof(lengths)) < 0 ||
	    elements_reserve(&s->elements, n) < 0)
		return false;
	for (size_t i = 0; i < n; i++, s->elements.n++)
		element_of_box(&boxes[i], s->elements.data + i * element_size(s->elements.kind));
	elements_sort(&s->elements);
	return true;
}

int build_profile_sets(struct ruleset *rs, const struct firewall_profile *p)
{
	_cleanup_free_ struct box *boxes = NULL;
	char name[OBJECT_NAME_MAX];
	size_t n = 0, done = 0, same;

	if (cover(p->entries, p->n_entries, FIREWALL_ENTRIES_MAX, &boxes, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++, done += same) {
		const struct family *f = &families[i];

		for (same = 0; done + same < n && boxes[done + same].family == f->family; same++)
			;
		if (same && !build_allowed(rs, set_name(p, f, name), f, boxes + done, same))
			return -ENOMEM;
	}
	return 0;
}

/* meta skuid != @pool return
 * A socket that somebody else has, in the guests' slice. */
static bool rule_others(struct ruleset *rs, struct ruleset_chain *c)
{
	return BUILD_RULE(c, expr_meta(NFT_META_SKUID), not_in_set(rs, SET_POOL),
			  expr_verdict(NFT_RETURN, NULL));
}

/* ip hdrlength 5 ip protocol . ip daddr . th dport @NAME_ip4 accept */
static bool rule_ip4(struct ruleset *rs, struct ruleset_chain *c, const struct family *f,
		     const char *set)
{
	const uint8_t plain = IP4_PLAIN_HEADER;

	return BUILD_RULE(
		c, expr_meta(NFT_META_NFPROTO), expr_equal(&f->nfproto, 1),
		expr_payload(NFT_PAYLOAD_NETWORK_HEADER, 0, 1, NFT_REG_1), expr_and_u8(0x0f),
		expr_equal(&plain, 1),
		expr_payload(NFT_PAYLOAD_NETWORK_HEADER, f->protocol_offset, 1, NFT_REG_1),
		expr_payload(NFT_PAYLOAD_NETWORK_HEADER, f->address_offset, f->address_len,
			     REGISTER_WORD(1)),
		expr_payload(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, REGISTER_WORD(2)), in_set(rs, set),
		expr_verdict(NF_ACCEPT, NULL));
}

/* ip6 nexthdr . ip6 daddr . th dport @NAME_ip6 accept
 * With an extension header between, nexthdr is none of our protocols. */
static bool rule_ip6(struct ruleset *rs, struct ruleset_chain *c, const struct family *f,
		     const char *set)
{
	return BUILD_RULE(
		c, expr_meta(NFT_META_NFPROTO), expr_equal(&f->nfproto, 1),
		expr_payload(NFT_PAYLOAD_NETWORK_HEADER, f->protocol_offset, 1, NFT_REG_1),
		expr_payload(NFT_PAYLOAD_NETWORK_HEADER, f->address_offset, f->address_len,
			     REGISTER_WORD(1)),
		expr_payload(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, REGISTER_WORD(5)), in_set(rs, set),
		expr_verdict(NF_ACCEPT, NULL));
}

static bool rules_allowed(struct ruleset *rs, struct ruleset_chain *c,
			  const struct firewall_profile *p)
{
	static bool (*const builders[])(struct ruleset *, struct ruleset_chain *,
					const struct family *,
					const char *) = { rule_ip4, rule_ip6 };
	char name[OBJECT_NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (ruleset_find_set(rs, set_name(p, &families[i], name)) &&
		    !builders[i](rs, c, &families[i], name))
			return false;
	return true;
}

/* update @logged { meta skuid limit rate 10/second burst 20 packets } \
 *	log prefix "harpe-gov NAME: " group GROUP */
static bool rule_log(struct ruleset *rs, struct ruleset_chain *c, const struct firewall_profile *p)
{
	char prefix[FIREWALL_PROFILE_NAME_MAX + 16];

	snprintf(prefix, sizeof(prefix), "harpe-gov %s: ", p->name);
	return BUILD_RULE(c, expr_meta(NFT_META_SKUID),
			  update_set(rs, SET_LOGGED, expr_limit(LOG_RATE, LOG_BURST)),
			  expr_log(prefix, p->log_group));
}

/* meta skuid @pool reject with icmpx port-unreachable
 * The lookup comes last: it counts. No TCP reset: that would be a packet from the forbidden
 * address, which systemd's address filter drops on its way back; an ICMP error goes to the socket
 * past it. */
static bool rule_reject(struct ruleset *rs, struct ruleset_chain *c)
{
	return BUILD_RULE(c, expr_meta(NFT_META_SKUID), in_set(rs, SET_POOL),
			  expr_reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH));
}

int build_profile_chain(struct ruleset *rs, const struct firewall_profile *p)
{
	char name[OBJECT_NAME_MAX];
	struct ruleset_chain *c = build_chain(rs, profile_chain(p, name));

	if (!c || !rule_others(rs, c) || !rules_allowed(rs, c, p) ||
	    (p->log && !rule_log(rs, c, p)))
		return -ENOMEM;
	return p->on_deny == FIREWALL_REJECT && !rule_reject(rs, c) ? -ENOMEM : 0;
}
