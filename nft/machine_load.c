/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expressions that put values into registers, out of the packet and what is known about it.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "nft/machine_run.h"

#define LOOPBACK_INDEX 1 /* in every network namespace */

static enum ternary is_loopback(const struct machine *m)
{
	static const uint8_t v6[16] = { [15] = 1 };
	static const uint8_t first[] = { 127, 0, 0, 0 }, last[] = { 127, 255, 255, 255 };

	return m->packet->family == AF_INET ? bits_within(machine_destination(m), first, last)
					    : bits_equal(machine_destination(m), v6);
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

void run_meta(struct machine *m, size_t table, const struct foreign_expr *x)
{
	uint32_t key = nest_u32(x->data, NFTA_META_KEY, UINT32_MAX);

	(void)table;
	if (nest_has(x->data, NFTA_META_SREG)) {
		if (key == NFT_META_MARK)
			machine_change(m, bits_part(&m->mark, 0, 4),
				       machine_source(m, x->data, NFTA_META_SREG, 4));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(metas); i++)
		if (metas[i].key == key) {
			struct bits to =
				machine_out(m, nest_u32(x->data, NFTA_META_DREG, 0), metas[i].len);

			if (to.len > 0)
				metas[i].load(m, to);
			return;
		}
	run_load(m, table, x);
}

void run_socket(struct machine *m, size_t table, const struct foreign_expr *x)
{
	const struct packet *p = m->packet;
	uint32_t level = nest_u32(x->data, NFTA_SOCKET_LEVEL, 0);
	struct bits to;

	if (nest_u32(x->data, NFTA_SOCKET_KEY, UINT32_MAX) != NFT_SOCKET_CGROUPV2) {
		run_maybe_load(m, table, x);
		return;
	}
	to = machine_out(m, nest_u32(x->data, NFTA_SOCKET_DREG, 0), sizeof(uint64_t));
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

void run_payload(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct bits part = packet_part(m, x), to;

	if (nest_has(x->data, NFTA_PAYLOAD_SREG)) {
		machine_change(m, part, machine_source(m, x->data, NFTA_PAYLOAD_SREG, part.len));
		m->rewritten = true;
		return;
	}
	if (part.len == 0) {
		run_maybe_load(m, table, x);
		return;
	}
	to = machine_out(m, nest_u32(x->data, NFTA_PAYLOAD_DREG, 0), part.len);
	if (to.len == 0)
		return;
	memcpy(to.data, part.data, to.len);
	memcpy(to.known, part.known, to.len);
}

void run_bitwise(struct machine *m, size_t table, const struct foreign_expr *x)
{
	size_t len = nest_u32(x->data, NFTA_BITWISE_LEN, 0);
	struct nest mask = nest_value(x->data, NFTA_BITWISE_MASK);
	struct nest flip = nest_value(x->data, NFTA_BITWISE_XOR);
	struct bits from = machine_source(m, x->data, NFTA_BITWISE_SREG, len);
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
	to = machine_out(m, nest_u32(x->data, NFTA_BITWISE_DREG, 0), len);
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

void run_byteorder(struct machine *m, size_t table, const struct foreign_expr *x)
{
	size_t len = nest_u32(x->data, NFTA_BYTEORDER_LEN, 0);
	size_t size = nest_u32(x->data, NFTA_BYTEORDER_SIZE, 0);
	uint32_t reg = nest_u32(x->data, NFTA_BYTEORDER_DREG, 0);
	struct bits from = machine_source(m, x->data, NFTA_BYTEORDER_SREG, len);

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
