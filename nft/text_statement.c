/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is done.
 */
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>

#include "common/fd.h"
#include "nft/build.h"
#include "nft/printer.h"

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
		printer_raw(p, x);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].code == code) {
			printer_piece(p, "%s", names[i].name);
			if (chain)
				print_name(p->f, chain);
			return;
		}
	printer_piece(p, "verdict %d", code);
}

void print_immediate(struct printer *p, const struct foreign_expr *x)
{
	uint32_t reg = nest_u32(x->data, NFTA_IMMEDIATE_DREG, UINT32_MAX);
	struct nest data = nest_get(x->data, NFTA_IMMEDIATE_DATA);
	struct loaded *l = printer_loaded(p, reg);

	if (reg == NFT_REG_VERDICT)
		print_verdict(p, data, x);
	else if (l)
		*l = (struct loaded){ .constant = nest_get(data, NFTA_DATA_VALUE),
				      .len = nest_get(data, NFTA_DATA_VALUE).len };
}

void print_counter(struct printer *p, const struct foreign_expr *x)
{
	printer_piece(p, "counter");
	if (p->counted)
		fprintf(p->f, " packets %" PRIu64 " bytes %" PRIu64,
			nest_u64(x->data, NFTA_COUNTER_PACKETS, 0),
			nest_u64(x->data, NFTA_COUNTER_BYTES, 0));
}

void print_limit(struct printer *p, const struct foreign_expr *x)
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
			printer_piece(p, "limit rate %s%" PRIu64 "%s/%s burst %" PRIu32 " %s",
				      nest_u32(x->data, NFTA_LIMIT_FLAGS, 0) & NFT_LIMIT_F_INV
					      ? "over "
					      : "",
				      nest_u64(x->data, NFTA_LIMIT_RATE, 0), bytes ? " bytes" : "",
				      units[i].name, nest_u32(x->data, NFTA_LIMIT_BURST, 0),
				      bytes ? "bytes" : "packets");
			return;
		}
	printer_raw(p, x);
}

void print_log(struct printer *p, const struct foreign_expr *x)
{
	const char *prefix = nest_string(x->data, NFTA_LOG_PREFIX);

	printer_piece(p, "log");
	if (prefix) {
		fputs(" prefix ", p->f);
		print_quoted(p->f, prefix);
	}
	if (nest_has(x->data, NFTA_LOG_GROUP))
		fprintf(p->f, " group %" PRIu16, nest_u16(x->data, NFTA_LOG_GROUP, 0));
}

void print_reject(struct printer *p, const struct foreign_expr *x)
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
		printer_piece(p, "reject with tcp reset");
	} else if (type == NFT_REJECT_ICMP_UNREACH) {
		printer_piece(p, "reject with icmp%s %u",
			      printer_family(p) == NFPROTO_IPV6 ? "v6" : "", code);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(any); i++)
			if (any[i].code == code) {
				printer_piece(p, "reject with icmpx %s", any[i].name);
				return;
			}
		printer_raw(p, x);
	}
}

void print_objref(struct printer *p, const struct foreign_expr *x)
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
			printer_piece(p, "%s", types[i].name);
			print_quoted(p->f, name);
			return;
		}
	printer_raw(p, x);
}

static void print_target_port(struct printer *p, const struct loaded *port)
{
	if (!port)
		return;
	fputc(':', p->f);
	printer_print_loaded(p, port, NFT_TYPE_PORT);
}

void print_nat(struct printer *p, const struct foreign_expr *x)
{
	bool six = nest_u32(x->data, NFTA_NAT_FAMILY, 0) == NFPROTO_IPV6;
	struct loaded *address = printer_source(p, x, NFTA_NAT_REG_ADDR_MIN);

	printer_piece(p, "%s %s to ",
		      nest_u32(x->data, NFTA_NAT_TYPE, 0) == NFT_NAT_SNAT ? "snat" : "dnat",
		      six ? "ip6" : "ip");
	if (address) {
		fputs(six ? "[" : "", p->f);
		printer_print_loaded(p, address, six ? NFT_TYPE_IP6 : NFT_TYPE_IP4);
		fputs(six ? "]" : "", p->f);
	}
	print_target_port(p, printer_source(p, x, NFTA_NAT_REG_PROTO_MIN));
}

void print_redir(struct printer *p, const struct foreign_expr *x)
{
	struct loaded *port = printer_source(p, x, NFTA_REDIR_REG_PROTO_MIN);

	printer_piece(p, port ? "redirect to " : "redirect");
	print_target_port(p, port);
}

void print_masq(struct printer *p, const struct foreign_expr *x)
{
	(void)x;
	printer_piece(p, "masquerade");
}

void print_notrack(struct printer *p, const struct foreign_expr *x)
{
	(void)x;
	printer_piece(p, "notrack");
}

/* As nft says it when it knows no better. */
void print_xt(struct printer *p, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_MATCH_NAME); /* NFTA_TARGET_NAME is the same */

	if (!name) {
		printer_raw(p, x);
		return;
	}
	printer_piece(p, "xt %s ", x->name);
	print_quoted(p->f, name);
}
