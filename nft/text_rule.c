/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A rule's expressions pass values on in registers; nft's language has none. So what was loaded is
 * kept as text until something is done with it.
 */
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <stdarg.h>
#include <string.h>

#include "common/fd.h"
#include "nft/build.h"
#include "nft/text.h"

#define WORDS	     16 /* of 4 bytes: all registers */
#define WORD	     4
#define LOADED_MAX   160
#define ELEMENTS_MAX 8 /* of a set without a name */

/* What is in a register, from this word on. */
struct loaded {
	char text[LOADED_MAX]; /* empty: nothing that is known here */
	uint32_t type;
	size_t len;
	struct nest constant; /* then it is a value, and type is not known */
	struct nest mask;     /* to be applied before a comparison; empty = none */
	bool whole_address;   /* it is the start of an address */
};

struct printer {
	FILE *f;
	struct foreign *ruleset;
	const struct foreign_chain *chain;
	const struct text_names *names;
	bool counted, inside; /* inside: something was printed */
	struct loaded words[WORDS];
	int nfproto, l4proto; /* known from an earlier match; -1 = not */
	bool holds_nfproto,
		holds_l4proto; /* that match is not printed yet: the next may imply it */
};

/* ---- pieces ---- */

static void separate(struct printer *p)
{
	if (p->inside)
		fputc(' ', p->f);
	p->inside = true;
}

static void print_number_of(struct printer *p, uint32_t type, int number)
{
	uint8_t byte = (uint8_t)number;

	print_value(p->f, p->names, type, (struct nest){ &byte, 1 });
}

static void release(struct printer *p)
{
	if (p->holds_nfproto) {
		separate(p);
		fputs("meta nfproto ", p->f);
		print_number_of(p, VALUE_NFPROTO, p->nfproto);
	}
	if (p->holds_l4proto) {
		separate(p);
		fputs("meta l4proto ", p->f);
		print_number_of(p, NFT_TYPE_PROTOCOL, p->l4proto);
	}
	p->holds_nfproto = p->holds_l4proto = false;
}

static void piece(struct printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void piece(struct printer *p, const char *format, ...)
{
	va_list ap;

	release(p);
	separate(p);
	va_start(ap, format);
	vfprintf(p->f, format, ap);
	va_end(ap);
}

/* It may load anything. */
static void raw(struct printer *p, const struct foreign_expr *x)
{
	memset(p->words, 0, sizeof(p->words));
	piece(p, "[ ");
	print_name(p->f, x->name);
	for (size_t i = 0; i < x->data.len; i++)
		fprintf(p->f, "%s%02x", i % WORD ? "" : " ", ((const uint8_t *)x->data.data)[i]);
	fputs(" ]", p->f);
}

/* ---- registers ---- */

/* NULL when there is no such register. */
static struct loaded *loaded_in(struct printer *p, uint32_t number)
{
	if (number >= NFT_REG_1 && number <= NFT_REG_4)
		return &p->words[(number - NFT_REG_1) * (NFT_REG_SIZE / WORD)];
	if (number >= NFT_REG32_00 && number <= NFT_REG32_15)
		return &p->words[number - NFT_REG32_00];
	return NULL;
}

static void load(struct printer *p, uint32_t number, uint32_t type, size_t len, const char *format,
		 ...) __attribute__((format(printf, 5, 6)));

static void load(struct printer *p, uint32_t number, uint32_t type, size_t len, const char *format,
		 ...)
{
	struct loaded *l = loaded_in(p, number);
	va_list ap;

	if (!l)
		return;
	*l = (struct loaded){ .type = type, .len = len };
	va_start(ap, format);
	vsnprintf(l->text, sizeof(l->text), format, ap);
	va_end(ap);
}

static struct loaded *source(struct printer *p, const struct foreign_expr *x, uint16_t attr)
{
	struct loaded *l = loaded_in(p, nest_u32(x->data, attr, 0));

	return l && (l->text[0] || l->constant.len) ? l : NULL;
}

static void print_loaded(struct printer *p, const struct loaded *l, uint32_t type)
{
	if (l->constant.len)
		print_value(p->f, p->names, type, l->constant);
	else
		fputs(l->text, p->f);
}

/* A key of @len bytes: one value, or several, joined by " . ". */
static void print_key(struct printer *p, struct loaded *first, size_t len)
{
	const char *separator = "";

	for (size_t at = 0; at < len;) {
		struct loaded *l = first + at / WORD;
		size_t step = WORD;

		if (l >= p->words + WORDS)
			return;
		fputs(separator, p->f);
		if (l->text[0] || l->constant.len) {
			print_loaded(p, l, l->type);
			step = l->len;
		} else {
			fputc('?', p->f);
		}
		separator = " . ";
		at += step ? (step + WORD - 1) / WORD * WORD : WORD;
	}
}

/* ---- loads ---- */

static const struct {
	uint32_t key;
	const char *name;
	uint32_t type;
	size_t len;
} metas[] = {
	{ NFT_META_NFPROTO, "nfproto", VALUE_NFPROTO, 1 },
	{ NFT_META_L4PROTO, "l4proto", NFT_TYPE_PROTOCOL, 1 },
	{ NFT_META_PROTOCOL, "protocol", VALUE_BYTES, 2 },
	{ NFT_META_SKUID, "skuid", NFT_TYPE_UID, 4 },
	{ NFT_META_SKGID, "skgid", NFT_TYPE_UID + 1, 4 },
	{ NFT_META_MARK, "mark", VALUE_MARK, 4 },
	{ NFT_META_OIF, "oif", VALUE_IFINDEX, 4 },
	{ NFT_META_OIFNAME, "oifname", VALUE_IFNAME, 16 },
	{ NFT_META_IIF, "iif", VALUE_IFINDEX, 4 },
	{ NFT_META_IIFNAME, "iifname", VALUE_IFNAME, 16 },
	{ NFT_META_LEN, "length", VALUE_INTEGER, 4 },
	{ NFT_META_CGROUP, "cgroup", VALUE_MARK, 4 },
	{ NFT_META_PRIORITY, "priority", VALUE_MARK, 4 },
	{ NFT_META_NFTRACE, "nftrace", VALUE_BYTES, 1 },
};

static void print_meta(struct printer *p, const struct foreign_expr *x)
{
	uint32_t key = nest_u32(x->data, NFTA_META_KEY, UINT32_MAX);
	struct loaded *from = source(p, x, NFTA_META_SREG);

	for (size_t i = 0; i < ARRAY_SIZE(metas); i++) {
		if (metas[i].key != key)
			continue;
		if (!nest_has(x->data, NFTA_META_SREG)) {
			load(p, nest_u32(x->data, NFTA_META_DREG, 0), metas[i].type, metas[i].len,
			     "meta %s", metas[i].name);
			return;
		}
		if (!from)
			break;
		piece(p, "meta %s set ", metas[i].name);
		print_loaded(p, from, metas[i].type);
		return;
	}
	raw(p, x);
}

static void print_socket(struct printer *p, const struct foreign_expr *x)
{
	if (nest_u32(x->data, NFTA_SOCKET_KEY, UINT32_MAX) == NFT_SOCKET_CGROUPV2)
		load(p, nest_u32(x->data, NFTA_SOCKET_DREG, 0), NFT_TYPE_CGROUPSV2, 8,
		     "socket cgroupv2 level %" PRIu32, nest_u32(x->data, NFTA_SOCKET_LEVEL, 0));
	else
		raw(p, x);
}

static void print_ct(struct printer *p, const struct foreign_expr *x)
{
	if (nest_u32(x->data, NFTA_CT_KEY, UINT32_MAX) == NFT_CT_STATE &&
	    nest_has(x->data, NFTA_CT_DREG))
		load(p, nest_u32(x->data, NFTA_CT_DREG, 0), VALUE_CT_STATE, 4, "ct state");
	else
		raw(p, x);
}

/* Fields of headers. An address of which only the start is looked at is one all the same. */
static const struct field {
	int nfproto; /* of the header; -1 = a transport header */
	uint32_t offset, len;
	const char *name;
	uint32_t type;
} fields[] = {
	{ NFPROTO_IPV4, 0, 1, "ip hdrlength", VALUE_INTEGER },
	{ NFPROTO_IPV4, 8, 1, "ip ttl", VALUE_INTEGER },
	{ NFPROTO_IPV4, 9, 1, "ip protocol", NFT_TYPE_PROTOCOL },
	{ NFPROTO_IPV4, 12, 4, "ip saddr", NFT_TYPE_IP4 },
	{ NFPROTO_IPV4, 16, 4, "ip daddr", NFT_TYPE_IP4 },
	{ NFPROTO_IPV6, 6, 1, "ip6 nexthdr", NFT_TYPE_PROTOCOL },
	{ NFPROTO_IPV6, 7, 1, "ip6 hoplimit", VALUE_INTEGER },
	{ NFPROTO_IPV6, 8, 16, "ip6 saddr", NFT_TYPE_IP6 },
	{ NFPROTO_IPV6, 24, 16, "ip6 daddr", NFT_TYPE_IP6 },
	{ -1, 0, 2, "sport", NFT_TYPE_PORT },
	{ -1, 2, 2, "dport", NFT_TYPE_PORT },
};

static int family_of(const struct printer *p)
{
	uint8_t family = p->ruleset->tables[p->chain->table].family;

	return family == NFPROTO_IPV4 || family == NFPROTO_IPV6 ? family : p->nfproto;
}

static bool has_ports(int l4proto)
{
	return l4proto == IPPROTO_TCP || l4proto == IPPROTO_UDP || l4proto == IPPROTO_SCTP ||
	       l4proto == IPPROTO_UDPLITE || l4proto == IPPROTO_DCCP;
}

static void load_field(struct printer *p, uint32_t reg, const struct field *field, uint32_t len)
{
	struct loaded *l;
	const char *header = has_ports(p->l4proto) ? value_protocol((uint8_t)p->l4proto) : "th";

	if (field->nfproto < 0) {
		if (has_ports(p->l4proto))
			p->holds_l4proto = false;
		load(p, reg, field->type, len, "%s %s", header, field->name);
	} else {
		p->holds_nfproto = false;
		load(p, reg, field->type, len, "%s", field->name);
	}
	l = loaded_in(p, reg);
	if (l)
		l->whole_address = len < field->len;
}

static void print_payload(struct printer *p, const struct foreign_expr *x)
{
	uint32_t base = nest_u32(x->data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t offset = nest_u32(x->data, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	uint32_t len = nest_u32(x->data, NFTA_PAYLOAD_LEN, 0);
	uint32_t reg = nest_u32(x->data, NFTA_PAYLOAD_DREG, 0);
	static const char *const bases[] = { "ll", "nh", "th", "ih" };
	int header = base == NFT_PAYLOAD_NETWORK_HEADER ? family_of(p) : -1;

	if (nest_has(x->data, NFTA_PAYLOAD_SREG) || base >= ARRAY_SIZE(bases)) {
		raw(p, x);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if ((base == NFT_PAYLOAD_TRANSPORT_HEADER || header > 0) &&
		    base != NFT_PAYLOAD_LL_HEADER && base <= NFT_PAYLOAD_TRANSPORT_HEADER &&
		    fields[i].nfproto == header && fields[i].offset == offset &&
		    (fields[i].len == len || (fields[i].len >= 4 && fields[i].len > len))) {
			load_field(p, reg, &fields[i], len);
			return;
		}
	load(p, reg, VALUE_BYTES, len, "@%s,%" PRIu64 ",%" PRIu64, bases[base],
	     (uint64_t)offset * 8, (uint64_t)len * 8);
}

static void print_bitwise(struct printer *p, const struct foreign_expr *x)
{
	static const char hdrlength[] = "ip hdrlength";
	struct nest mask = nest_value(x->data, NFTA_BITWISE_MASK);
	struct nest flip = nest_value(x->data, NFTA_BITWISE_XOR);
	struct loaded *from = source(p, x, NFTA_BITWISE_SREG);
	struct loaded *to = loaded_in(p, nest_u32(x->data, NFTA_BITWISE_DREG, 0));
	bool flips = false;

	for (size_t i = 0; i < flip.len; i++)
		flips |= ((const uint8_t *)flip.data)[i] != 0;
	if (!from || !to || mask.len == 0 || flips || from->mask.len ||
	    nest_u32(x->data, NFTA_BITWISE_OP, NFT_BITWISE_BOOL) != NFT_BITWISE_BOOL) {
		if (to)
			*to = (struct loaded){ .len = WORD };
		raw(p, x);
		return;
	}
	*to = *from;
	if (strcmp(from->text, hdrlength) != 0 || *(const uint8_t *)mask.data != 0x0f)
		to->mask = mask;
}

/* nft converts by itself where it compares for order. */
static void print_byteorder(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *from = source(p, x, NFTA_BYTEORDER_SREG);
	struct loaded *to = loaded_in(p, nest_u32(x->data, NFTA_BYTEORDER_DREG, 0));

	if (!from || !to) {
		raw(p, x);
		return;
	}
	*to = *from;
	to->type = VALUE_INTEGER;
}

/* ---- conditions ---- */

/* A match that the next field may imply. */
static bool hold(struct printer *p, const struct loaded *l, uint32_t op, struct nest data)
{
	uint8_t byte = data.len ? *(const uint8_t *)data.data : 0;

	if (op != NFT_CMP_EQ || data.len != 1 || l->mask.len)
		return false;
	if (strcmp(l->text, "meta nfproto") == 0) {
		release(p);
		p->nfproto = byte;
		p->holds_nfproto = true;
	} else if (strcmp(l->text, "meta l4proto") == 0) {
		if (p->holds_l4proto)
			release(p);
		p->l4proto = byte;
		p->holds_l4proto = true;
	} else {
		return false;
	}
	return true;
}

static const char *operator(uint32_t op)
{
	static const char *const operators[] = {
		[NFT_CMP_EQ] = "",     [NFT_CMP_NEQ] = "!= ", [NFT_CMP_LT] = "< ",
		[NFT_CMP_LTE] = "<= ", [NFT_CMP_GT] = "> ",   [NFT_CMP_GTE] = ">= ",
	};

	return op < ARRAY_SIZE(operators) ? operators[op] : "? ";
}

static bool is_zero(struct nest data)
{
	for (size_t i = 0; i < data.len; i++)
		if (((const uint8_t *)data.data)[i])
			return false;
	return true;
}

/* 192.0.2.0/24, where the rest of the address is not looked at. */
static void print_network(struct printer *p, const struct loaded *l, struct nest data, int prefix)
{
	uint8_t address[16] = { 0 };
	size_t len = l->type == NFT_TYPE_IP4 ? 4 : 16;

	memcpy(address, data.data, data.len < len ? data.len : len);
	print_value(p->f, p->names, l->type, (struct nest){ address, len });
	fprintf(p->f, "/%d", prefix);
}

static void print_comparison(struct printer *p, const struct loaded *l, uint32_t op,
			     struct nest data)
{
	bool address = l->type == NFT_TYPE_IP4 || l->type == NFT_TYPE_IP6;
	int prefix = address && l->mask.len == data.len ? value_prefix(l->mask) : -1;

	if (address && !l->mask.len && l->whole_address)
		prefix = (int)data.len * 8;
	if (prefix >= 0) {
		piece(p, "%s %s", l->text, operator(op));
		print_network(p, l, data, prefix);
	} else if (l->mask.len && l->type == VALUE_CT_STATE && op == NFT_CMP_NEQ && is_zero(data)) {
		piece(p, "%s ", l->text);
		print_value(p->f, p->names, l->type, l->mask);
	} else if (l->mask.len) {
		piece(p, "%s & ", l->text);
		print_value(p->f, p->names, l->type, l->mask);
		fprintf(p->f, " %s", op == NFT_CMP_EQ ? "== " : operator(op));
		print_value(p->f, p->names, l->type, data);
	} else {
		piece(p, "%s %s", l->text, operator(op));
		print_value(p->f, p->names, l->type, data);
	}
}

static void print_cmp(struct printer *p, const struct foreign_expr *x)
{
	struct nest data = nest_value(x->data, NFTA_CMP_DATA);
	uint32_t op = nest_u32(x->data, NFTA_CMP_OP, UINT32_MAX);
	struct loaded *l = source(p, x, NFTA_CMP_SREG);

	if (!l || data.len == 0)
		raw(p, x);
	else if (!hold(p, l, op, data))
		print_comparison(p, l, op, data);
}

static void print_range_of(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *l = source(p, x, NFTA_RANGE_SREG);

	if (!l || l->mask.len) {
		raw(p, x);
		return;
	}
	piece(p, "%s %s", l->text,
	      nest_u32(x->data, NFTA_RANGE_OP, NFT_RANGE_EQ) == NFT_RANGE_EQ ? "" : "!= ");
	print_value(p->f, p->names, l->type, nest_value(x->data, NFTA_RANGE_FROM_DATA));
	fputc('-', p->f);
	print_value(p->f, p->names, l->type, nest_value(x->data, NFTA_RANGE_TO_DATA));
}

/* ---- sets ---- */

static void print_anonymous(struct printer *p, const struct foreign_set *s)
{
	const char *separator = "{ ";
	size_t printed = 0;

	for (size_t i = 0; i < s->n_elements && printed < ELEMENTS_MAX; i++) {
		if (s->elements[i].flags & NFT_SET_ELEM_INTERVAL_END)
			continue;
		fputs(separator, p->f);
		text_element(p->f, s, i, p->names);
		separator = ", ";
		printed++;
	}
	fputs(printed < ELEMENTS_MAX ? " }" : ", ... }", p->f);
}

static void print_set_name(struct printer *p, const char *name)
{
	struct foreign_set *s = foreign_find_set(p->ruleset, p->chain->table, name);

	if (s && s->flags & NFT_SET_ANONYMOUS) {
		print_anonymous(p, s);
		return;
	}
	fputc('@', p->f);
	print_name(p->f, name);
}

static void print_lookup(struct printer *p, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_LOOKUP_SET);
	struct foreign_set *s = name ? foreign_find_set(p->ruleset, p->chain->table, name) : NULL;
	struct loaded *l = loaded_in(p, nest_u32(x->data, NFTA_LOOKUP_SREG, 0));
	uint32_t to = nest_u32(x->data, NFTA_LOOKUP_DREG, UINT32_MAX);

	if (!s || !l) {
		raw(p, x);
		return;
	}
	if (to != UINT32_MAX && to != NFT_REG_VERDICT) {
		load(p, to, VALUE_BYTES, s->data_len, "%s map @%s", l->text, name);
		return;
	}
	piece(p, "%s", "");
	print_key(p, l, s->key_len);
	if (to == NFT_REG_VERDICT)
		fputs(" vmap ", p->f);
	else
		fputs(nest_u32(x->data, NFTA_LOOKUP_FLAGS, 0) & NFT_LOOKUP_F_INV ? " != " : " ",
		      p->f);
	print_set_name(p, name);
}

static void print_statement(struct printer *p, const struct foreign_expr *x);

static void print_dynset(struct printer *p, const struct foreign_expr *x)
{
	static const char *const operations[] = { "add", "update", "delete" };
	const char *name = nest_string(x->data, NFTA_DYNSET_SET_NAME);
	struct foreign_set *s = name ? foreign_find_set(p->ruleset, p->chain->table, name) : NULL;
	struct loaded *l = loaded_in(p, nest_u32(x->data, NFTA_DYNSET_SREG_KEY, 0));
	uint32_t op = nest_u32(x->data, NFTA_DYNSET_OP, UINT32_MAX);
	struct nest list = nest_get(x->data, NFTA_DYNSET_EXPRESSIONS);
	struct nest one = nest_get(x->data, NFTA_DYNSET_EXPR);
	struct foreign_expr inner = { nest_string(one, NFTA_EXPR_NAME),
				      nest_get(one, NFTA_EXPR_DATA) };

	if (!s || !l || op >= ARRAY_SIZE(operations) || nest_has(x->data, NFTA_DYNSET_SREG_DATA) ||
	    nest_u64(x->data, NFTA_DYNSET_TIMEOUT, 0)) {
		raw(p, x);
		return;
	}
	piece(p, "%s @", operations[op]);
	print_name(p->f, name);
	fputs(" { ", p->f);
	print_key(p, l, s->key_len);
	if (inner.name)
		print_statement(p, &inner);
	while (foreign_next_expr(&list, &inner))
		print_statement(p, &inner);
	fputs(" }", p->f);
}

/* ---- statements ---- */

static void print_verdict(struct printer *p, struct nest data, const struct foreign_expr *x)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{ NF_ACCEPT, "accept" },  { NF_DROP, "drop" },	 { NFT_CONTINUE, "continue" },
		{ NFT_RETURN, "return" }, { NFT_JUMP, "jump " }, { NFT_GOTO, "goto " },
	};
	const char *chain = NULL;
	int code;

	if (!foreign_verdict(data, &code, &chain)) {
		raw(p, x);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].code == code) {
			piece(p, "%s", names[i].name);
			if (chain)
				print_name(p->f, chain);
			return;
		}
	piece(p, "verdict %d", code);
}

static void print_immediate(struct printer *p, const struct foreign_expr *x)
{
	uint32_t reg = nest_u32(x->data, NFTA_IMMEDIATE_DREG, UINT32_MAX);
	struct nest data = nest_get(x->data, NFTA_IMMEDIATE_DATA);
	struct loaded *l = loaded_in(p, reg);

	if (reg == NFT_REG_VERDICT)
		print_verdict(p, data, x);
	else if (l)
		*l = (struct loaded){ .constant = nest_get(data, NFTA_DATA_VALUE),
				      .len = nest_get(data, NFTA_DATA_VALUE).len };
}

static void print_counter(struct printer *p, const struct foreign_expr *x)
{
	piece(p, "counter");
	if (p->counted)
		fprintf(p->f, " packets %" PRIu64 " bytes %" PRIu64,
			nest_u64(x->data, NFTA_COUNTER_PACKETS, 0),
			nest_u64(x->data, NFTA_COUNTER_BYTES, 0));
}

static void print_limit(struct printer *p, const struct foreign_expr *x)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {
		{ 1, "second" },  { 60, "minute" },   { 3600, "hour" },
		{ 86400, "day" }, { 604800, "week" },
	};
	uint64_t unit = nest_u64(x->data, NFTA_LIMIT_UNIT, 0);
	bool bytes = nest_u32(x->data, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS) != NFT_LIMIT_PKTS;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].seconds == unit) {
			piece(p, "limit rate %s%" PRIu64 "%s/%s burst %" PRIu32 " %s",
			      nest_u32(x->data, NFTA_LIMIT_FLAGS, 0) & NFT_LIMIT_F_INV ? "over "
										       : "",
			      nest_u64(x->data, NFTA_LIMIT_RATE, 0), bytes ? " bytes" : "",
			      units[i].name, nest_u32(x->data, NFTA_LIMIT_BURST, 0),
			      bytes ? "bytes" : "packets");
			return;
		}
	raw(p, x);
}

static void print_log(struct printer *p, const struct foreign_expr *x)
{
	const char *prefix = nest_string(x->data, NFTA_LOG_PREFIX);

	piece(p, "log");
	if (prefix) {
		fputs(" prefix ", p->f);
		print_quoted(p->f, prefix);
	}
	if (nest_has(x->data, NFTA_LOG_GROUP))
		fprintf(p->f, " group %" PRIu16, nest_u16(x->data, NFTA_LOG_GROUP, 0));
}

static void print_reject(struct printer *p, const struct foreign_expr *x)
{
	static const struct {
		uint8_t code;
		const char *name;
	} any[] = {
		{ NFT_REJECT_ICMPX_NO_ROUTE, "no-route" },
		{ NFT_REJECT_ICMPX_PORT_UNREACH, "port-unreachable" },
		{ NFT_REJECT_ICMPX_HOST_UNREACH, "host-unreachable" },
		{ NFT_REJECT_ICMPX_ADMIN_PROHIBITED, "admin-prohibited" },
	};
	uint32_t type = nest_u32(x->data, NFTA_REJECT_TYPE, UINT32_MAX);
	uint8_t code = nest_u8(x->data, NFTA_REJECT_ICMP_CODE, UINT8_MAX);

	if (type == NFT_REJECT_TCP_RST) {
		piece(p, "reject with tcp reset");
	} else if (type == NFT_REJECT_ICMP_UNREACH) {
		piece(p, "reject with icmp%s %u", family_of(p) == NFPROTO_IPV6 ? "v6" : "", code);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(any); i++)
			if (any[i].code == code) {
				piece(p, "reject with icmpx %s", any[i].name);
				return;
			}
		raw(p, x);
	}
}

static void print_objref(struct printer *p, const struct foreign_expr *x)
{
	static const struct {
		uint32_t type;
		const char *name;
	} types[] = {
		{ NFT_OBJECT_COUNTER, "counter name " },
		{ NFT_OBJECT_QUOTA, "quota name " },
		{ NFT_OBJECT_LIMIT, "limit name " },
		{ NFT_OBJECT_CT_HELPER, "ct helper set " },
	};
	const char *name = nest_string(x->data, NFTA_OBJREF_IMM_NAME);

	for (size_t i = 0; i < ARRAY_SIZE(types) && name; i++)
		if (types[i].type == nest_u32(x->data, NFTA_OBJREF_IMM_TYPE, 0)) {
			piece(p, "%s", types[i].name);
			print_quoted(p->f, name);
			return;
		}
	raw(p, x);
}

static void print_target_port(struct printer *p, const struct loaded *port)
{
	if (!port)
		return;
	fputc(':', p->f);
	print_loaded(p, port, NFT_TYPE_PORT);
}

static void print_nat(struct printer *p, const struct foreign_expr *x)
{
	bool six = nest_u32(x->data, NFTA_NAT_FAMILY, 0) == NFPROTO_IPV6;
	struct loaded *address = source(p, x, NFTA_NAT_REG_ADDR_MIN);

	piece(p, "%s %s to ", nest_u32(x->data, NFTA_NAT_TYPE, 0) == NFT_NAT_SNAT ? "snat" : "dnat",
	      six ? "ip6" : "ip");
	if (address) {
		fputs(six ? "[" : "", p->f);
		print_loaded(p, address, six ? NFT_TYPE_IP6 : NFT_TYPE_IP4);
		fputs(six ? "]" : "", p->f);
	}
	print_target_port(p, source(p, x, NFTA_NAT_REG_PROTO_MIN));
}

static void print_redir(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *port = source(p, x, NFTA_REDIR_REG_PROTO_MIN);

	piece(p, port ? "redirect to " : "redirect");
	print_target_port(p, port);
}

static void print_masq(struct printer *p, const struct foreign_expr *x)
{
	(void)x;
	piece(p, "masquerade");
}

static void print_notrack(struct printer *p, const struct foreign_expr *x)
{
	(void)x;
	piece(p, "notrack");
}

/* As nft says it when it knows no better. */
static void print_xt(struct printer *p, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_MATCH_NAME); /* NFTA_TARGET_NAME is the same */

	if (!name) {
		raw(p, x);
		return;
	}
	piece(p, "xt %s ", x->name);
	print_quoted(p->f, name);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*print)(struct printer *p, const struct foreign_expr *x);
} printers[] = {
	{ "meta", print_meta },
	{ "socket", print_socket },
	{ "ct", print_ct },
	{ "payload", print_payload },
	{ "bitwise", print_bitwise },
	{ "byteorder", print_byteorder },
	{ "cmp", print_cmp },
	{ "range", print_range_of },
	{ "lookup", print_lookup },
	{ "dynset", print_dynset },
	{ "immediate", print_immediate },
	{ "counter", print_counter },
	{ "limit", print_limit },
	{ "log", print_log },
	{ "reject", print_reject },
	{ "nat", print_nat },
	{ "redir", print_redir },
	{ "masq", print_masq },
	{ "objref", print_objref },
	{ "notrack", print_notrack },
	{ "match", print_xt },
	{ "target", print_xt },
};

static void print_statement(struct printer *p, const struct foreign_expr *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(printers); i++)
		if (strcmp(printers[i].name, x->name) == 0) {
			printers[i].print(p, x);
			return;
		}
	raw(p, x);
}

void text_rule(FILE *f, struct foreign *ruleset, const struct foreign_chain *c,
	       const struct foreign_rule *rule, const struct text_names *names, bool counted)
{
	struct printer p = {
		.f = f,
		.ruleset = ruleset,
		.chain = c,
		.names = names,
		.counted = counted,
		.nfproto = -1,
		.l4proto = -1,
	};
	struct nest rest = rule->exprs;
	struct foreign_expr x;

	while (foreign_next_expr(&rest, &x))
		print_statement(&p, &x);
	release(&p);
}
