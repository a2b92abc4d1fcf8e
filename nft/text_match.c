/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is looked at, and what it is compared with.
 */
#include <inttypes.h>
#include <linux/in.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "common/fd.h"
#include "nft/build.h"
#include "nft/printer.h"

#define ELEMENTS_MAX 8 /* of a set without a name */

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

void print_meta(struct printer *p, const struct foreign_expr *x)
{
	uint32_t key = nest_u32(x->data, NFTA_META_KEY, UINT32_MAX);
	struct loaded *from = printer_source(p, x, NFTA_META_SREG);

	for (size_t i = 0; i < ARRAY_SIZE(metas); i++) {
		if (metas[i].key != key)
			continue;
		if (!nest_has(x->data, NFTA_META_SREG)) {
			printer_load(p, nest_u32(x->data, NFTA_META_DREG, 0), metas[i].type,
				     metas[i].len, "meta %s", metas[i].name);
			return;
		}
		if (!from)
			break;
		printer_piece(p, "meta %s set ", metas[i].name);
		printer_print_loaded(p, from, metas[i].type);
		return;
	}
	printer_raw(p, x);
}

void print_socket(struct printer *p, const struct foreign_expr *x)
{
	if (nest_u32(x->data, NFTA_SOCKET_KEY, UINT32_MAX) == NFT_SOCKET_CGROUPV2)
		printer_load(p, nest_u32(x->data, NFTA_SOCKET_DREG, 0), NFT_TYPE_CGROUPSV2, 8,
			     "socket cgroupv2 level %" PRIu32,
			     nest_u32(x->data, NFTA_SOCKET_LEVEL, 0));
	else
		printer_raw(p, x);
}

void print_ct(struct printer *p, const struct foreign_expr *x)
{
	if (nest_u32(x->data, NFTA_CT_KEY, UINT32_MAX) == NFT_CT_STATE &&
	    nest_has(x->data, NFTA_CT_DREG))
		printer_load(p, nest_u32(x->data, NFTA_CT_DREG, 0), VALUE_CT_STATE, 4, "ct state");
	else
		printer_raw(p, x);
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
		printer_load(p, reg, field->type, len, "%s %s", header, field->name);
	} else {
		p->holds_nfproto = false;
		printer_load(p, reg, field->type, len, "%s", field->name);
	}
	l = printer_loaded(p, reg);
	if (l)
		l->whole_address = len < field->len;
}

void print_payload(struct printer *p, const struct foreign_expr *x)
{
	uint32_t base = nest_u32(x->data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t offset = nest_u32(x->data, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	uint32_t len = nest_u32(x->data, NFTA_PAYLOAD_LEN, 0);
	uint32_t reg = nest_u32(x->data, NFTA_PAYLOAD_DREG, 0);
	static const char *const bases[] = { "ll", "nh", "th", "ih" };
	int header = base == NFT_PAYLOAD_NETWORK_HEADER ? printer_family(p) : -1;

	if (nest_has(x->data, NFTA_PAYLOAD_SREG) || base >= ARRAY_SIZE(bases)) {
		printer_raw(p, x);
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
	printer_load(p, reg, VALUE_BYTES, len, "@%s,%" PRIu64 ",%" PRIu64, bases[base],
		     (uint64_t)offset * 8, (uint64_t)len * 8);
}

void print_bitwise(struct printer *p, const struct foreign_expr *x)
{
	static const char hdrlength[] = "ip hdrlength";
	struct nest mask = nest_value(x->data, NFTA_BITWISE_MASK);
	struct nest flip = nest_value(x->data, NFTA_BITWISE_XOR);
	struct loaded *from = printer_source(p, x, NFTA_BITWISE_SREG);
	struct loaded *to = printer_loaded(p, nest_u32(x->data, NFTA_BITWISE_DREG, 0));
	bool flips = false;

	for (size_t i = 0; i < flip.len; i++)
		flips |= ((const uint8_t *)flip.data)[i] != 0;
	if (!from || !to || mask.len == 0 || flips || from->mask.len ||
	    nest_u32(x->data, NFTA_BITWISE_OP, NFT_BITWISE_BOOL) != NFT_BITWISE_BOOL) {
		if (to)
			*to = (struct loaded){ .len = WORD };
		printer_raw(p, x);
		return;
	}
	*to = *from;
	if (strcmp(from->text, hdrlength) != 0 || *(const uint8_t *)mask.data != 0x0f)
		to->mask = mask;
}

/* nft converts by itself where it compares for order. */
void print_byteorder(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *from = printer_source(p, x, NFTA_BYTEORDER_SREG);
	struct loaded *to = printer_loaded(p, nest_u32(x->data, NFTA_BYTEORDER_DREG, 0));

	if (!from || !to) {
		printer_raw(p, x);
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
		printer_release(p);
		p->nfproto = byte;
		p->holds_nfproto = true;
	} else if (strcmp(l->text, "meta l4proto") == 0) {
		if (p->holds_l4proto)
			printer_release(p);
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
		printer_piece(p, "%s %s", l->text, operator(op));
		print_network(p, l, data, prefix);
	} else if (l->mask.len && l->type == VALUE_CT_STATE && op == NFT_CMP_NEQ && is_zero(data)) {
		printer_piece(p, "%s ", l->text);
		print_value(p->f, p->names, l->type, l->mask);
	} else if (l->mask.len) {
		printer_piece(p, "%s & ", l->text);
		print_value(p->f, p->names, l->type, l->mask);
		fprintf(p->f, " %s", op == NFT_CMP_EQ ? "== " : operator(op));
		print_value(p->f, p->names, l->type, data);
	} else {
		printer_piece(p, "%s %s", l->text, operator(op));
		print_value(p->f, p->names, l->type, data);
	}
}

void print_cmp(struct printer *p, const struct foreign_expr *x)
{
	struct nest data = nest_value(x->data, NFTA_CMP_DATA);
	uint32_t op = nest_u32(x->data, NFTA_CMP_OP, UINT32_MAX);
	struct loaded *l = printer_source(p, x, NFTA_CMP_SREG);

	if (!l || data.len == 0)
		printer_raw(p, x);
	else if (!hold(p, l, op, data))
		print_comparison(p, l, op, data);
}

void print_range_of(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *l = printer_source(p, x, NFTA_RANGE_SREG);

	if (!l || l->mask.len) {
		printer_raw(p, x);
		return;
	}
	printer_piece(p, "%s %s", l->text,
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

void print_lookup(struct printer *p, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_LOOKUP_SET);
	struct foreign_set *s = name ? foreign_find_set(p->ruleset, p->chain->table, name) : NULL;
	struct loaded *l = printer_loaded(p, nest_u32(x->data, NFTA_LOOKUP_SREG, 0));
	uint32_t to = nest_u32(x->data, NFTA_LOOKUP_DREG, UINT32_MAX);

	if (!s || !l) {
		printer_raw(p, x);
		return;
	}
	if (to != UINT32_MAX && to != NFT_REG_VERDICT) {
		printer_load(p, to, VALUE_BYTES, s->data_len, "%s map @%s", l->text, name);
		return;
	}
	printer_piece(p, "%s", "");
	printer_print_key(p, l, s->key_len);
	if (to == NFT_REG_VERDICT)
		fputs(" vmap ", p->f);
	else
		fputs(nest_u32(x->data, NFTA_LOOKUP_FLAGS, 0) & NFT_LOOKUP_F_INV ? " != " : " ",
		      p->f);
	print_set_name(p, name);
}

void print_dynset(struct printer *p, const struct foreign_expr *x)
{
	static const char *const operations[] = { "add", "update", "delete" };
	const char *name = nest_string(x->data, NFTA_DYNSET_SET_NAME);
	struct foreign_set *s = name ? foreign_find_set(p->ruleset, p->chain->table, name) : NULL;
	struct loaded *l = printer_loaded(p, nest_u32(x->data, NFTA_DYNSET_SREG_KEY, 0));
	uint32_t op = nest_u32(x->data, NFTA_DYNSET_OP, UINT32_MAX);
	struct nest list = nest_get(x->data, NFTA_DYNSET_EXPRESSIONS);
	struct nest one = nest_get(x->data, NFTA_DYNSET_EXPR);
	struct foreign_expr inner = { nest_string(one, NFTA_EXPR_NAME),
				      nest_get(one, NFTA_EXPR_DATA) };

	if (!s || !l || op >= ARRAY_SIZE(operations) || nest_has(x->data, NFTA_DYNSET_SREG_DATA) ||
	    nest_u64(x->data, NFTA_DYNSET_TIMEOUT, 0)) {
		printer_raw(p, x);
		return;
	}
	printer_piece(p, "%s @", operations[op]);
	print_name(p->f, name);
	fputs(" { ", p->f);
	printer_print_key(p, l, s->key_len);
	if (inner.name)
		printer_print(p, &inner);
	while (foreign_next_expr(&list, &inner))
		printer_print(p, &inner);
	fputs(" }", p->f);
}
