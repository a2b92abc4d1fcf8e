/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules that turn a destination into another one: into which? Only where that is constant, or does
 * not matter, is it known; a register that anything else may have written, or an expression whose
 * effect on a destination is not known for certain, may make any address of any port.
 */
#include "governor/audit/audit_rewrite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

#define REGISTER_BYTES 64 /* NFT_REG_1 to _4 of 16 bytes, NFT_REG32_00 to _15 of 4 */

/* What `immediate` expressions have put there. */
struct registers {
	uint8_t data[REGISTER_BYTES];
	bool known[REGISTER_BYTES];
};

/* ---- boxes ---- */

static size_t length_of(uint8_t family)
{
	return family == AF_INET ? 4 : 16;
}

/* Any address of @family, any port. */
static struct box anywhere(uint8_t family)
{
	struct box b = { .family = family, .last_port = UINT16_MAX };

	memset(b.last, 0xff, length_of(family));
	return b;
}

static bool is_upright(const struct box *b)
{
	return memcmp(b->first, b->last, length_of(b->family)) <= 0 &&
	       b->first_port <= b->last_port;
}

/* One that could not be made out is anywhere, and so is what there are too many of. */
static void add_box(struct rewrite *w, struct box b)
{
	if (w->n < REWRITE_BOXES_MAX) {
		w->to[w->n++] = is_upright(&b) ? b : anywhere(b.family);
		return;
	}
	w->to[0] = anywhere(AF_INET);
	w->to[1] = anywhere(AF_INET6);
}

/* For each family that a table can have packets of. */
static void add_anywhere(struct rewrite *w, uint8_t family)
{
	if (family != NFPROTO_IPV6)
		add_box(w, anywhere(AF_INET));
	if (family != NFPROTO_IPV4)
		add_box(w, anywhere(AF_INET6));
}

/* ---- registers ---- */

static size_t offset_of(uint32_t reg)
{
	if (reg >= NFT_REG_1 && reg <= NFT_REG_4)
		return (reg - NFT_REG_1) * 16;
	if (reg >= NFT_REG32_00 && reg <= NFT_REG32_15)
		return (reg - NFT_REG32_00) * 4;
	return REGISTER_BYTES;
}

static void load(struct registers *regs, const struct foreign_expr *x)
{
	size_t at = offset_of(nest_u32(x->data, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT));
	struct nest value = nest_value(x->data, NFTA_IMMEDIATE_DATA);

	if (value.len == 0 || value.len > REGISTER_BYTES - at)
		return;
	memcpy(regs->data + at, value.data, value.len);
	memset(regs->known + at, true, value.len);
}

/* @len bytes of the register that attribute @attr names; false when they are not known. */
static bool fetch(const struct registers *regs, const struct foreign_expr *x, uint16_t attr,
		  void *ret, size_t len)
{
	size_t at = offset_of(nest_u32(x->data, attr, NFT_REG_VERDICT));

	if (len > REGISTER_BYTES - at)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!regs->known[at + i])
			return false;
	memcpy(ret, regs->data + at, len);
	return true;
}

/* A range; the kernel takes the lower end for both where there is one. */
static bool fetch_range(const struct registers *regs, const struct foreign_expr *x, uint16_t min,
			uint16_t max, void *first, void *last, size_t len)
{
	return fetch(regs, x, min, first, len) &&
	       fetch(regs, x, nest_has(x->data, max) ? max : min, last, len);
}

static void take_ports(const struct registers *regs, const struct foreign_expr *x, uint16_t min,
		       uint16_t max, struct box *b)
{
	uint16_t first, last;

	if (!nest_has(x->data, min) ||
	    !fetch_range(regs, x, min, max, &first, &last, sizeof(first)))
		return;
	b->first_port = ntohs(first);
	b->last_port = ntohs(last);
}

/* ---- nat and redirect ---- */

static void take_dnat(const struct registers *regs, const struct foreign_expr *x, uint8_t family,
		      struct rewrite *w)
{
	struct box b;

	family = (uint8_t)nest_u32(x->data, NFTA_NAT_FAMILY, family);
	if (family != NFPROTO_IPV4 && family != NFPROTO_IPV6) {
		add_anywhere(w, family);
		return;
	}
	b = anywhere(family == NFPROTO_IPV4 ? AF_INET : AF_INET6);
	if (nest_has(x->data, NFTA_NAT_REG_ADDR_MIN) &&
	    !fetch_range(regs, x, NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX, b.first, b.last,
			 length_of(b.family)))
		b = anywhere(b.family);
	take_ports(regs, x, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX, &b);
	add_box(w, b);
}

/* What the host sends itself goes to loopback. */
static struct box loopback(uint8_t family)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };
	struct box b = anywhere(family);

	memcpy(b.first, family == AF_INET ? v4 : v6, length_of(family));
	memcpy(b.last, b.first, length_of(family));
	return b;
}

static void take_redirect(const struct registers *regs, const struct foreign_expr *x,
			  uint8_t family, struct rewrite *w)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	static const uint8_t not_of[] = { NFPROTO_IPV6, NFPROTO_IPV4 };

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct box b = loopback(families[i]);

		take_ports(regs, x, NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX, &b);
		if (family != not_of[i])
			add_box(w, b);
	}
}

/* ---- what iptables-nft hides in "target" ---- */

/* linux/netfilter/nf_nat.h: struct nf_nat_range, which struct nf_nat_range2 begins with, and its
 * elder for IPv4 alone. */
static bool take_range(struct nest info, struct box *b)
{
	struct nf_nat_range range;

	if (info.len < sizeof(range))
		return false;
	memcpy(&range, info.data, sizeof(range));
	if (range.flags & NF_NAT_RANGE_MAP_IPS) {
		memcpy(b->first, &range.min_addr, length_of(b->family));
		memcpy(b->last, &range.max_addr, length_of(b->family));
	}
	if (range.flags & NF_NAT_RANGE_PROTO_SPECIFIED) {
		b->first_port = ntohs(range.min_proto.all);
		b->last_port = ntohs(range.max_proto.all);
	}
	return true;
}

static bool take_old_range(struct nest info, struct box *b)
{
	struct nf_nat_ipv4_multi_range_compat old;

	if (info.len < sizeof(old))
		return false;
	memcpy(&old, info.data, sizeof(old));
	if (old.rangesize != 1)
		return false;
	if (old.range[0].flags & NF_NAT_RANGE_MAP_IPS) {
		memcpy(b->first, &old.range[0].min_ip, 4);
		memcpy(b->last, &old.range[0].max_ip, 4);
	}
	if (old.range[0].flags & NF_NAT_RANGE_PROTO_SPECIFIED) {
		b->first_port = ntohs(old.range[0].min.all);
		b->last_port = ntohs(old.range[0].max.all);
	}
	return true;
}

static const struct target {
	const char *name;
	uint8_t family;
	uint32_t revision;
	struct box (*from)(uint8_t family); /* what the range leaves out */
	bool (*take)(struct nest info, struct box *b);
} targets[] = {
	{ "DNAT", NFPROTO_IPV4, 0, anywhere, take_old_range },
	{ "DNAT", NFPROTO_IPV4, 1, anywhere, take_range },
	{ "DNAT", NFPROTO_IPV4, 2, anywhere, take_range },
	{ "DNAT", NFPROTO_IPV6, 1, anywhere, take_range },
	{ "DNAT", NFPROTO_IPV6, 2, anywhere, take_range },
	{ "REDIRECT", NFPROTO_IPV4, 0, loopback, take_old_range },
	{ "REDIRECT", NFPROTO_IPV6, 0, loopback, take_range },
};

/* Targets that leave a destination as it is are not here. */
static bool rewrites(const char *target)
{
	static const char *const names[] = { "DNAT", "REDIRECT", "NETMAP", "DNPT", "TPROXY" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(target, names[i]) == 0)
			return true;
	return false;
}

static void take_target(const struct foreign_expr *x, uint8_t family, struct rewrite *w)
{
	const char *name = nest_string(x->data, NFTA_TARGET_NAME);
	uint32_t revision = nest_u32(x->data, NFTA_TARGET_REV, UINT32_MAX);
	struct nest info = nest_get(x->data, NFTA_TARGET_INFO);

	if (name && !rewrites(name))
		return;
	for (size_t i = 0; name && i < ARRAY_SIZE(targets); i++) {
		const struct target *t = &targets[i];
		struct box b;

		if (strcmp(t->name, name) != 0 || t->family != family || t->revision != revision)
			continue;
		b = t->from(family == NFPROTO_IPV4 ? AF_INET : AF_INET6);
		if (!t->take(info, &b))
			break;
		add_box(w, b);
		return;
	}
	add_anywhere(w, family);
}

/* ---- writing into the packet ---- */

/* The first two bytes of a network header are version, class and mark; of a transport header, the
 * destination's port is in the third and fourth. */
static bool writes_destination(const struct foreign_expr *x)
{
	uint32_t base = nest_u32(x->data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t at = nest_u32(x->data, NFTA_PAYLOAD_OFFSET, 0);
	uint32_t len = nest_u32(x->data, NFTA_PAYLOAD_LEN, UINT32_MAX);

	if (!nest_has(x->data, NFTA_PAYLOAD_SREG) || base == NFT_PAYLOAD_LL_HEADER)
		return false;
	if (base == NFT_PAYLOAD_NETWORK_HEADER)
		return len > 2 || at > 2 - len;
	return base != NFT_PAYLOAD_TRANSPORT_HEADER || at < 4;
}

/* ---- rules ---- */

static bool is_source_nat(const struct foreign_expr *x)
{
	return nest_u32(x->data, NFTA_NAT_TYPE, NFT_NAT_DNAT) == NFT_NAT_SNAT;
}

static void take_expression(const struct registers *regs, const struct foreign_expr *x,
			    uint8_t family, struct rewrite *w)
{
	if (strcmp(x->name, "nat") == 0 && !is_source_nat(x))
		take_dnat(regs, x, family, w);
	else if (strcmp(x->name, "redir") == 0)
		take_redirect(regs, x, family, w);
	else if (strcmp(x->name, "target") == 0)
		take_target(x, family, w);
	else if (strcmp(x->name, "tproxy") == 0 ||
		 (strcmp(x->name, "payload") == 0 && writes_destination(x)))
		add_anywhere(w, family);
}

void rewrite_read(const struct foreign_rule *rule, uint8_t family, struct rewrite *ret)
{
	struct nest rest = rule->exprs;
	struct registers regs = { .known = { false } };
	struct foreign_expr x;

	*ret = (struct rewrite){ .n = 0 };
	while (foreign_next_expr(&rest, &x)) {
		if (strcmp(x.name, "immediate") == 0) {
			load(&regs, &x);
			continue;
		}
		take_expression(&regs, &x, family, ret);
		regs = (struct registers){ .known = { false } };
	}
}

/* ---- what profiles allow ---- */

static bool meet(const struct box *a, const struct box *b)
{
	size_t len = length_of(a->family);

	return a->family == b->family && memcmp(a->first, b->last, len) <= 0 &&
	       memcmp(b->first, a->last, len) <= 0 && a->first_port <= b->last_port &&
	       b->first_port <= a->last_port;
}

/* Whatever the protocol. 1, 0 or a negative errno. */
static int one_allows(const struct firewall_profile *p, const struct rewrite *w)
{
	_cleanup_free_ struct box *boxes = NULL;
	size_t n = 0;
	int r = cover(p->entries, p->n_entries, FIREWALL_ENTRIES_MAX, &boxes, &n);

	for (size_t i = 0; i < n && r == 0; i++)
		for (size_t j = 0; j < w->n && r == 0; j++)
			r = meet(&boxes[i], &w->to[j]);
	return r;
}

int rewrite_allowed(const struct firewall_policy *policy, const struct rewrite *w)
{
	int r = 0;

	for (size_t i = 0; i < policy->n_profiles && r == 0 && w->n > 0; i++)
		r = one_allows(&policy->profiles[i], w);
	return r;
}
