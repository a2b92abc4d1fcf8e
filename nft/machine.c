/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's expressions (net/netfilter/nft_*.c), each a handler in the table at the end. A value
 * that is not known goes on as bits that are not known, so that "ct state established accept" and
 * then "accept" is still a clear answer.
 */
#include "nft/machine.h"

#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "nft/machine_run.h"

#define PORT_OFFSET	 2 /* of the destination's, in the transport header */
#define ICMP_ECHO_TYPE	 8
#define ICMPV6_ECHO_TYPE 128

/* ---- the packet ---- */

size_t machine_address_length(const struct machine *m)
{
	return m->packet->family == AF_INET ? 4 : 16;
}

struct bits machine_destination(const struct machine *m)
{
	size_t offset = m->packet->family == AF_INET ? offsetof(struct iphdr, daddr)
						     : offsetof(struct ipv6hdr, daddr);

	return bits_part(&m->network, offset, machine_address_length(m));
}

struct bits machine_port(const struct machine *m)
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
	bits_set(machine_destination(m), m->packet->address);
}

static void start_transport(struct machine *m)
{
	uint16_t to = htons(m->packet->port);

	if (m->packet->protocol == IPPROTO_ICMP || m->packet->protocol == IPPROTO_ICMPV6) {
		set_byte(&m->transport, 0,
			 m->packet->protocol == IPPROTO_ICMP ? ICMP_ECHO_TYPE : ICMPV6_ECHO_TYPE);
		set_byte(&m->transport, 1, 0);
	} else {
		bits_set(machine_port(m), &to);
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
struct bits machine_out(struct machine *m, uint32_t number, size_t len)
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

struct bits machine_source(const struct machine *m, struct nest n, uint16_t attr, size_t len)
{
	return in_register(m, nest_u32(n, attr, 0), len);
}

bool machine_is_never(const struct machine *m, struct bits value, const void *data)
{
	return m->never && value.data == m->registers.data + m->never_at &&
	       value.len == sizeof(m->packet->not_in) &&
	       memcmp(data, &m->packet->not_in, value.len) == 0;
}

/* ---- what the rest of the rule hangs on ---- */

void machine_require(struct machine *m, enum ternary a, const char *what)
{
	if (a == ANSWER_MAYBE && !m->doubt)
		m->doubt = what;
	m->match = answer_and(m->match, a);
}

void machine_decide(struct machine *m, enum verdict_kind verdict)
{
	m->verdict = verdict;
}

/* What is changed here may also stay as it is. */
void machine_change(struct machine *m, struct bits b, struct bits value)
{
	if (b.len == 0 || b.len != value.len || !bits_known(value))
		bits_forget(b);
	else if (m->uncertain || m->match == ANSWER_MAYBE)
		bits_join(b, value.data);
	else
		bits_set(b, value.data);
}

/* ---- handlers of what has no value ---- */

static void run_nothing(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)m;
	(void)table;
	(void)x;
}

static void run_maybe(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	machine_require(m, ANSWER_MAYBE, x->name);
}

void machine_forget(struct machine *m)
{
	m->never = false;
	bits_forget(bits_part(&m->registers, 0, BITS_MAX));
}

/* Loads what cannot be known from outside. */
void run_load(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	machine_forget(m);
}

void run_maybe_load(struct machine *m, size_t table, const struct foreign_expr *x)
{
	run_load(m, table, x);
	run_maybe(m, table, x);
}

/* It may also mark the packet, or send it elsewhere. */
static void run_anything(struct machine *m, size_t table, const struct foreign_expr *x)
{
	run_maybe_load(m, table, x);
	machine_decide(m, VERDICT_ANY);
	bits_forget(bits_part(&m->mark, 0, sizeof(uint32_t)));
	if (m->is_nat) {
		bits_forget(machine_destination(m));
		bits_forget(machine_port(m));
		m->rewritten = m->translated = true;
	}
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
	machine_forget(m);
	while (m->match != ANSWER_NO && m->verdict == VERDICT_NONE && foreign_next_expr(&rest, &x))
		run_expr(m, table, &x);
}
