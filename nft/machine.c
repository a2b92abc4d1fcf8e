/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's expressions (net/netfilter/nft_*.c), each a handler in the table at the end. A value
 * that is not known goes on as bits that are not known, so that "ct state established accept" and
 * then "accept" is still a clear answer.
 */
#include "nft/machine.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "nft/lookup.h"

#define LOOPBACK_INDEX	 1 /* in every network namespace */
#define PORT_OFFSET	 2 /* of the destination's, in the transport header */
#define ICMP_ECHO_TYPE	 8
#define ICMPV6_ECHO_TYPE 128

/* ---- the packet ---- */

static size_t address_length(const struct machine *m)
{
	return m->packet->family == AF_INET ? 4 : 16;
}

static struct bits destination(const struct machine *m)
{
	size_t offset = m->packet->family == AF_INET ? offsetof(struct iphdr, daddr)
						     : offsetof(struct ipv6hdr, daddr);

	return bits_part(&m->network, offset, address_length(m));
}

static struct bits port(const struct machine *m)
{
	return bits_part(&m->transport, PORT_OFFSET, sizeof(uint16_t));
}

static void set_byte(struct bits_buffer *b, size_t offset, uint8_t value)
{
	bits_set(bits_part(b, offset, 1), &value);
}

/* A plain header: version and length; the rest of it as far as it is known. */
static void start_network(struct machine *m)
{
	bool four = m->packet->family == AF_INET;

	set_byte(&m->network, 0, four ? 0x45 : 0x60);
	if (!four)
		m->network.known[0] = 0xf0; /* the traffic class begins here */
	set_byte(&m->network,
		 four ? offsetof(struct iphdr, protocol) : offsetof(struct ipv6hdr, nexthdr),
		 m->packet->protocol);
	bits_set(destination(m), m->packet->address);
}

static void start_transport(struct machine *m)
{
	uint16_t to = htons(m->packet->port);

	if (m->packet->protocol == IPPROTO_ICMP || m->packet->protocol == IPPROTO_ICMPV6) {
		set_byte(&m->transport, 0,
			 m->packet->protocol == IPPROTO_ICMP ? ICMP_ECHO_TYPE : ICMPV6_ECHO_TYPE);
		set_byte(&m->transport, 1, 0);
	} else {
		bits_set(port(m), &to);
	}
}

/* Who has no privilege cannot mark packets. */
void machine_start(struct machine *m, struct foreign *ruleset, const struct packet *p)
{
	static const uint32_t no_mark = 0;

	*m = (struct machine){ .ruleset = ruleset, .packet = p };
	start_network(m);
	start_transport(m);
	if (p->uid != 0)
		bits_set(bits_part(&m->mark, 0, sizeof(no_mark)), &no_mark);
}

/* ---- registers ---- */

static struct bits in_register(const struct machine *m, uint32_t number, size_t len)
{
	if (number >= NFT_REG_1 && number <= NFT_REG_4)
		return bits_part(&m->registers, (number - NFT_REG_1) * NFT_REG_SIZE, len);
	if (number >= NFT_REG32_00 && number <= NFT_REG32_15)
		return bits_part(&m->registers, (number - NFT_REG32_00) * NFT_REG32_SIZE, len);
	return (struct bits){ .data = NULL };
}

/* Where a value goes; what was known of these bytes is not any more. */
static struct bits out_register(struct machine *m, uint32_t number, size_t len)
{
	struct bits b = in_register(m, number, len);

	size_t at = b.len > 0 ? (size_t)(b.data - m->registers.data) : BITS_MAX;

	if (at < m->never_at + sizeof(m->packet->not_in) && at + b.len > m->never_at)
		m->never = false;
	bits_forget(b);
	/* The kernel fills the word up with zeros. */
	for (at += b.len; b.len > 0 && at % NFT_REG32_SIZE; at++)
		set_byte(&m->registers, at, 0);
	return b;
}

static struct bits source(const struct machine *m, struct nest n, uint16_t attr, size_t len)
{
	return in_register(m, nest_u32(n, attr, 0), len);
}

/* ---- what the rest of the rule hangs on ---- */

static void require(struct machine *m, enum ternary a, const char *what)
{
	if (a == ANSWER_MAYBE && !m->doubt)
		m->doubt = what;
	m->match = answer_and(m->match, a);
}

static void decide(struct machine *m, enum verdict_kind verdict)
{
	m->verdict = verdict;
}

/* What is changed here may also stay as it is. */
static void change(struct machine *m, struct bits b, struct bits value)
{
	if (b.len == 0 || b.len != value.len || !bits_known(value))
		bits_forget(b);
	else if (m->uncertain || m->match == ANSWER_MAYBE)
		bits_join(b, value.data);
	else
		bits_set(b, value.data);
}

/* ---- handlers ---- */

static void run_nothing(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)m;
	(void)table;
	(void)x;
}

static void run_maybe(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	require(m, ANSWER_MAYBE, x->name);
}

static void forget_registers(struct machine *m)
{
	m->never = false;
	bits_forget(bits_part(&m->registers, 0, BITS_MAX));
}

/* Loads what cannot be known from outside. */
static void run_load(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	forget_registers(m);
}

static void run_maybe_load(struct machine *m, size_t table, const struct foreign_expr *x)
{
	run_load(m, table, x);
	run_maybe(m, table, x);
}

/* It may also mark the packet, or send it elsewhere. */
static void run_anything(struct machine *m, size_t table, const struct foreign_expr *x)
{
	run_maybe_load(m, table, x);
	decide(m, VERDICT_ANY);
	bits_forget(bits_part(&m->mark, 0, sizeof(uint32_t)));
	if (m->is_nat) {
		bits_forget(destination(m));
		bits_forget(port(m));
		m->rewritten = m->translated = true;
	}
}

static enum ternary is_loopback(const struct machine *m)
{
	static const uint8_t v6[16] = { [15] = 1 };
	static const uint8_t first[] = { 127, 0, 0, 0 }, last[] = { 127, 255, 255, 255 };

	return m->packet->family == AF_INET ? bits_within(destination(m), first, last)
					    : bits_equal(destination(m), v6);
}

static void load_byte(struct bits to, uint8_t value)
{
	if (to.len >= sizeof(value))
		bits_set((struct bits){ to.data, to.known, sizeof(value) }, &value);
}

static void load_nfproto(const struct machine *m, struct bits to)
{
	load_byte(to, m->packet->family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
}

static void load_l4proto(const struct machine *m, struct bits to)
{
	load_byte(to, m->packet->protocol);
}

static void load_half(struct bits to, uint16_t value)
{
	if (to.len >= sizeof(value))
		bits_set((struct bits){ to.data, to.known, sizeof(value) }, &value);
}

static void load_word(struct bits to, uint32_t value)
{
	if (to.len >= sizeof(value))
		bits_set((struct bits){ to.data, to.known, sizeof(value) }, &value);
}

static void load_protocol(const struct machine *m, struct bits to)
{
	load_half(to, htons(m->packet->family == AF_INET ? ETH_P_IP : ETH_P_IPV6));
}

static void load_skuid(const struct machine *m, struct bits to)
{
	load_word(to, m->packet->uid);
}

static void load_mark(const struct machine *m, struct bits to)
{
	memcpy(to.data, m->mark.data, to.len);
	memcpy(to.known, m->mark.known, to.len);
}

/* Where a route leads is not looked up; only loopback is clear. */
static void load_oif(const struct machine *m, struct bits to)
{
	if (is_loopback(m) == ANSWER_YES)
		load_word(to, LOOPBACK_INDEX);
}

static void load_oifname(const struct machine *m, struct bits to)
{
	static const char lo[IFNAMSIZ] = "lo";

	if (is_loopback(m) == ANSWER_YES)
		bits_set(to, lo);
}

static void load_oiftype(const struct machine *m, struct bits to)
{
	if (is_loopback(m) == ANSWER_YES)
		load_half(to, ARPHRD_LOOPBACK);
}

/* The host's own packets come in nowhere. */
static void load_zero(const struct machine *m, struct bits to)
{
	static const uint8_t zero[IFNAMSIZ];

	(void)m;
	bits_set(to, zero);
}

static const struct meta {
	uint32_t key;
	size_t len;
	void (*load)(const struct machine *m, struct bits to);
} metas[] = {
	{ NFT_META_NFPROTO, 1, load_nfproto },
	{ NFT_META_L4PROTO, 1, load_l4proto },
	{ NFT_META_PROTOCOL, 2, load_protocol },
	{ NFT_META_SKUID, 4, load_skuid },
	{ NFT_META_MARK, 4, load_mark },
	{ NFT_META_OIF, 4, load_oif },
	{ NFT_META_OIFNAME, IFNAMSIZ, load_oifname },
	{ NFT_META_OIFTYPE, 2, load_oiftype },
	{ NFT_META_IIF, 4, load_zero },
	{ NFT_META_IIFNAME, IFNAMSIZ, load_zero },
};

static void run_meta(struct machine *m, size_t table, const struct foreign_expr *x)
{
	uint32_t key = nest_u32(x->data, NFTA_META_KEY, UINT32_MAX);

	(void)table;
	if (nest_has(x->data, NFTA_META_SREG)) {
		if (key == NFT_META_MARK)
			change(m, bits_part(&m->mark, 0, 4), source(m, x->data, NFTA_META_SREG, 4));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(metas); i++)
		if (metas[i].key == key) {
			struct bits to =
				out_register(m, nest_u32(x->data, NFTA_META_DREG, 0), metas[i].len);

			if (to.len > 0)
				metas[i].load(m, to);
			return;
		}
	run_load(m, table, x);
}

static void run_socket(struct machine *m, size_t table, const struct foreign_expr *x)
{
	const struct packet *p = m->packet;
	uint32_t level = nest_u32(x->data, NFTA_SOCKET_LEVEL, 0);
	struct bits to;

	if (nest_u32(x->data, NFTA_SOCKET_KEY, UINT32_MAX) != NFT_SOCKET_CGROUPV2) {
		run_maybe_load(m, table, x);
		return;
	}
	to = out_register(m, nest_u32(x->data, NFTA_SOCKET_DREG, 0), sizeof(uint64_t));
	if (to.len == 0)
		return;
	if (level < PACKET_LEVELS_MAX && p->cgroup[level] != PACKET_ANY_CGROUP) {
		bits_set(to, &p->cgroup[level]);
	} else if (level == p->not_in_level && level != 0) {
		m->never = true;
		m->never_at = (size_t)(to.data - m->registers.data);
	}
}

/* The bytes that @x names, of those that are looked at. */
static struct bits packet_part(const struct machine *m, const struct foreign_expr *x)
{
	uint32_t base = nest_u32(x->data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	size_t offset = nest_u32(x->data, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	size_t len = nest_u32(x->data, NFTA_PAYLOAD_LEN, UINT32_MAX);

	if (base == NFT_PAYLOAD_NETWORK_HEADER)
		return bits_part(&m->network, offset, len);
	if (base == NFT_PAYLOAD_TRANSPORT_HEADER)
		return bits_part(&m->transport, offset, len);
	return (struct bits){ .data = NULL };
}

static void run_payload(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct bits part = packet_part(m, x), to;

	if (nest_has(x->data, NFTA_PAYLOAD_SREG)) {
		change(m, part, source(m, x->data, NFTA_PAYLOAD_SREG, part.len));
		m->rewritten = true;
		return;
	}
	if (part.len == 0) {
		run_maybe_load(m, table, x);
		return;
	}
	to = out_register(m, nest_u32(x->data, NFTA_PAYLOAD_DREG, 0), part.len);
	if (to.len == 0)
		return;
	memcpy(to.data, part.data, to.len);
	memcpy(to.known, part.known, to.len);
}

static void run_bitwise(struct machine *m, size_t table, const struct foreign_expr *x)
{
	size_t len = nest_u32(x->data, NFTA_BITWISE_LEN, 0);
	struct nest mask = nest_value(x->data, NFTA_BITWISE_MASK);
	struct nest flip = nest_value(x->data, NFTA_BITWISE_XOR);
	struct bits from = source(m, x->data, NFTA_BITWISE_SREG, len);
	uint8_t data[BITS_MAX], known[BITS_MAX];
	struct bits to;

	if (from.len == 0 || mask.len != len || flip.len != len ||
	    nest_u32(x->data, NFTA_BITWISE_OP, NFT_BITWISE_BOOL) != NFT_BITWISE_BOOL) {
		run_load(m, table, x);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		uint8_t and = ((const uint8_t *)mask.data)[i];

		known[i] = from.known[i] | (uint8_t) ~and;
		data[i] = ((from.data[i] & and) ^ ((const uint8_t *)flip.data)[i]) & known[i];
	}
	to = out_register(m, nest_u32(x->data, NFTA_BITWISE_DREG, 0), len);
	if (to.len == 0)
		return;
	memcpy(to.data, data, len);
	memcpy(to.known, known, len);
}

static void swap(uint8_t *bytes, size_t len, size_t size)
{
	for (size_t at = 0; at + size <= len; at += size)
		for (size_t i = 0; i < size / 2; i++) {
			uint8_t byte = bytes[at + i];

			bytes[at + i] = bytes[at + size - 1 - i];
			bytes[at + size - 1 - i] = byte;
		}
}

static void run_byteorder(struct machine *m, size_t table, const struct foreign_expr *x)
{
	size_t len = nest_u32(x->data, NFTA_BYTEORDER_LEN, 0);
	size_t size = nest_u32(x->data, NFTA_BYTEORDER_SIZE, 0);
	uint32_t reg = nest_u32(x->data, NFTA_BYTEORDER_DREG, 0);
	struct bits from = source(m, x->data, NFTA_BYTEORDER_SREG, len);

	if (from.len == 0 || size < 2 || size > 8 ||
	    reg != nest_u32(x->data, NFTA_BYTEORDER_SREG, 0)) {
		run_load(m, table, x);
		return;
	}
	m->never = false;
	if (htons(1) == 1)
		return;
	swap(from.data, len, size);
	swap(from.known, len, size);
}

/* ---- conditions ---- */

static bool is_never(const struct machine *m, struct bits value, const void *data)
{
	return m->never && value.data == m->registers.data + m->never_at &&
	       value.len == sizeof(m->packet->not_in) &&
	       memcmp(data, &m->packet->not_in, value.len) == 0;
}

static enum ternary compare(const struct machine *m, uint32_t op, struct bits value,
			    const void *data)
{
	static const uint8_t zero[BITS_MAX];
	uint8_t full[BITS_MAX];

	memset(full, 0xff, sizeof(full));
	switch (op) {
	case NFT_CMP_EQ:
		return is_never(m, value, data) ? ANSWER_NO : bits_equal(value, data);
	case NFT_CMP_NEQ:
		return is_never(m, value, data) ? ANSWER_YES : answer_not(bits_equal(value, data));
	case NFT_CMP_LTE:
		return bits_within(value, zero, data);
	case NFT_CMP_GT:
		return answer_not(bits_within(value, zero, data));
	case NFT_CMP_GTE:
		return bits_within(value, data, full);
	case NFT_CMP_LT:
		return answer_not(bits_within(value, data, full));
	default:
		return ANSWER_MAYBE;
	}
}

static void run_cmp(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct nest data = nest_value(x->data, NFTA_CMP_DATA);
	struct bits value = source(m, x->data, NFTA_CMP_SREG, data.len);

	(void)table;
	require(m,
		value.len > 0
			? compare(m, nest_u32(x->data, NFTA_CMP_OP, UINT32_MAX), value, data.data)
			: ANSWER_MAYBE,
		x->name);
}

static void run_range(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct nest from = nest_value(x->data, NFTA_RANGE_FROM_DATA);
	struct nest to = nest_value(x->data, NFTA_RANGE_TO_DATA);
	struct bits value = source(m, x->data, NFTA_RANGE_SREG, from.len);
	enum ternary a = ANSWER_MAYBE;

	(void)table;
	if (value.len > 0 && to.len == from.len)
		a = bits_within(value, from.data, to.data);
	if (nest_u32(x->data, NFTA_RANGE_OP, NFT_RANGE_EQ) == NFT_RANGE_NEQ)
		a = answer_not(a);
	require(m, a, x->name);
}

/* ---- verdicts ---- */

static void take_verdict(struct machine *m, struct nest data)
{
	static const struct {
		int code;
		enum verdict_kind kind;
	} kinds[] = {
		{ NF_ACCEPT, VERDICT_ACCEPT },	{ NF_DROP, VERDICT_DROP },
		{ NFT_CONTINUE, VERDICT_NONE }, { NFT_RETURN, VERDICT_RETURN },
		{ NFT_JUMP, VERDICT_JUMP },	{ NFT_GOTO, VERDICT_GOTO },
	};
	int code = 0;

	decide(m, VERDICT_ANY);
	if (!foreign_verdict(data, &code, &m->chain))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].code == code)
			decide(m, kinds[i].kind);
}

static void run_immediate(struct machine *m, size_t table, const struct foreign_expr *x)
{
	uint32_t reg = nest_u32(x->data, NFTA_IMMEDIATE_DREG, UINT32_MAX);
	struct nest data = nest_get(x->data, NFTA_IMMEDIATE_DATA);
	struct nest value = nest_get(data, NFTA_DATA_VALUE);
	struct bits to;

	(void)table;
	if (reg == NFT_REG_VERDICT) {
		take_verdict(m, data);
		return;
	}
	to = out_register(m, reg, value.len);
	if (to.len > 0)
		bits_set(to, value.data);
}

static void run_reject(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	decide(m, VERDICT_DROP);
}

/* ---- sets ---- */

/* An element may have a limit of its own. */
static bool has_conditions(const struct foreign_set *s)
{
	struct nest one = nest_get(s->raw, NFTA_SET_EXPR),
		    list = nest_get(s->raw, NFTA_SET_EXPRESSIONS);
	const char *name = one.len ? nest_string(one, NFTA_EXPR_NAME) ?: "?" : NULL;
	struct foreign_expr x;
	bool found = name && strcmp(name, "counter") != 0;

	while (foreign_next_expr(&list, &x))
		found |= strcmp(x.name, "counter") != 0;
	return found;
}

static void take_data(struct machine *m, const struct foreign_expr *x,
		      const struct foreign_element *element)
{
	uint32_t reg = nest_u32(x->data, NFTA_LOOKUP_DREG, UINT32_MAX);
	struct nest data = nest_get(element->raw, NFTA_SET_ELEM_DATA);
	struct nest value = nest_get(data, NFTA_DATA_VALUE);
	struct bits to;

	if (reg == NFT_REG_VERDICT) {
		take_verdict(m, data);
		return;
	}
	to = out_register(m, reg, value.len);
	if (to.len > 0)
		bits_set(to, value.data);
}

static void run_lookup(struct machine *m, size_t table, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_LOOKUP_SET);
	struct foreign_set *s = name ? foreign_find_set(m->ruleset, table, name) : NULL;
	struct bits value = source(m, x->data, NFTA_LOOKUP_SREG, s ? s->key_len : 0);
	const struct foreign_element *element = NULL;
	struct nest never = NEST_NULL;
	enum ternary a = ANSWER_MAYBE;

	if (value.len > 0 && is_never(m, value, &m->packet->not_in))
		never = (struct nest){ &m->packet->not_in, sizeof(m->packet->not_in) };
	if (value.len > 0)
		a = lookup(s, value, never, &element);
	if (a == ANSWER_YES && has_conditions(s))
		a = ANSWER_MAYBE;
	if (nest_u32(x->data, NFTA_LOOKUP_FLAGS, 0) & NFT_LOOKUP_F_INV)
		a = answer_not(a);
	require(m, a, x->name);
	if (!nest_has(x->data, NFTA_LOOKUP_DREG) || a == ANSWER_NO)
		return;
	if (a == ANSWER_YES && element)
		take_data(m, x, element);
	else if (nest_u32(x->data, NFTA_LOOKUP_DREG, 0) == NFT_REG_VERDICT)
		decide(m, VERDICT_ANY);
	else
		forget_registers(m);
}

/* ---- objects ---- */

/* Some have a condition, or do something with the packet. */
static void run_objref(struct machine *m, size_t table, const struct foreign_expr *x)
{
	static const uint32_t harmless[] = { NFT_OBJECT_COUNTER, NFT_OBJECT_CT_HELPER,
					     NFT_OBJECT_CT_TIMEOUT, NFT_OBJECT_CT_EXPECT,
					     NFT_OBJECT_SECMARK };
	uint32_t type = nest_u32(x->data, NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_UNSPEC);

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (harmless[i] == type)
			return;
	if (type == NFT_OBJECT_SYNPROXY)
		run_anything(m, table, x);
	else
		run_maybe(m, table, x);
}

/* ---- translation: its verdict is accept ---- */

/* A register, or a range of which any may be taken. */
static struct bits chosen(const struct machine *m, const struct foreign_expr *x, uint16_t min,
			  uint16_t max, size_t len)
{
	struct bits from = source(m, x->data, min, len), to = source(m, x->data, max, len);

	if (nest_has(x->data, max) &&
	    (from.len != to.len || !bits_known(from) || bits_equal(to, from.data) != ANSWER_YES))
		return (struct bits){ .data = NULL };
	return from;
}

static void change_port(struct machine *m, const struct foreign_expr *x, uint16_t min, uint16_t max)
{
	if (nest_has(x->data, min))
		change(m, port(m), chosen(m, x, min, max, sizeof(uint16_t)));
}

static void run_nat(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	if (nest_u32(x->data, NFTA_NAT_TYPE, UINT32_MAX) != NFT_NAT_SNAT) {
		if (nest_has(x->data, NFTA_NAT_REG_ADDR_MIN))
			change(m, destination(m),
			       chosen(m, x, NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX,
				      address_length(m)));
		change_port(m, x, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX);
		if (nest_u32(x->data, NFTA_NAT_FLAGS, 0) & NF_NAT_RANGE_NETMAP)
			bits_forget(destination(m));
		m->rewritten = true;
	}
	m->translated = true;
	decide(m, VERDICT_ACCEPT);
}

static void run_redir(struct machine *m, size_t table, const struct foreign_expr *x)
{
	uint8_t loopback[16] = { 127, 0, 0, 1 }, known[16];

	(void)table;
	if (m->packet->family == AF_INET6)
		memcpy(loopback, &in6addr_loopback, sizeof(loopback));
	memset(known, 0xff, sizeof(known));
	change(m, destination(m), (struct bits){ loopback, known, address_length(m) });
	change_port(m, x, NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX);
	m->rewritten = true;
	m->translated = true;
	decide(m, VERDICT_ACCEPT);
}

static void run_masq(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	m->translated = true;
	decide(m, VERDICT_ACCEPT);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*run)(struct machine *m, size_t table, const struct foreign_expr *x);
} handlers[] = {
	{ "meta", run_meta },
	{ "socket", run_socket },
	{ "payload", run_payload },
	{ "bitwise", run_bitwise },
	{ "byteorder", run_byteorder },
	{ "cmp", run_cmp },
	{ "range", run_range },
	{ "lookup", run_lookup },
	{ "immediate", run_immediate },
	{ "reject", run_reject },
	{ "nat", run_nat },
	{ "redir", run_redir },
	{ "masq", run_masq },
	{ "counter", run_nothing },
	{ "last", run_nothing },
	{ "log", run_nothing },
	{ "dup", run_nothing },
	{ "notrack", run_nothing },
	{ "limit", run_maybe },
	{ "quota", run_maybe },
	{ "connlimit", run_maybe },
	{ "dynset", run_maybe }, /* a full set ends the rule */
	{ "match", run_maybe },	 /* of x_tables: never a verdict */
	{ "objref", run_objref },
	{ "ct", run_load },
	{ "numgen", run_load },
	{ "hash", run_load },
	{ "rt", run_maybe_load },
	{ "fib", run_maybe_load },
	{ "exthdr", run_maybe_load },
	{ "osf", run_maybe_load },
	{ "tunnel", run_maybe_load },
	{ "xfrm", run_maybe_load },
};

static void run_expr(struct machine *m, size_t table, const struct foreign_expr *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (strcmp(handlers[i].name, x->name) == 0) {
			handlers[i].run(m, table, x);
			return;
		}
	run_anything(m, table, x);
}

void machine_run(struct machine *m, size_t table, const struct foreign_rule *rule)
{
	struct nest rest = rule->exprs;
	struct foreign_expr x;

	m->match = ANSWER_YES;
	m->verdict = VERDICT_NONE;
	m->chain = NULL;
	m->doubt = NULL;
	forget_registers(m);
	while (m->match != ANSWER_NO && m->verdict == VERDICT_NONE && foreign_next_expr(&rest, &x))
		run_expr(m, table, &x);
}
