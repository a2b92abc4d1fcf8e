/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation. Its verdict is accept (net/netfilter/nft_nat.c, nft_redir.c, nft_masq.c).
 */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "nft/machine_run.h"

/* A register, or a range of which any may be taken. */
static struct bits chosen(const struct machine *m, const struct foreign_expr *x, uint16_t min,
			  uint16_t max, size_t len)
{
	struct bits from = machine_source(m, x->data, min, len),
		    to = machine_source(m, x->data, max, len);

	if (nest_has(x->data, max) &&
	    (from.len != to.len || !bits_known(from) || bits_equal(to, from.data) != ANSWER_YES))
		return (struct bits){ .data = NULL };
	return from;
}

static void change_port(struct machine *m, const struct foreign_expr *x, uint16_t min, uint16_t max)
{
	if (nest_has(x->data, min))
		machine_change(m, machine_port(m), chosen(m, x, min, max, sizeof(uint16_t)));
}

void run_nat(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	if (nest_u32(x->data, NFTA_NAT_TYPE, UINT32_MAX) != NFT_NAT_SNAT) {
		if (nest_has(x->data, NFTA_NAT_REG_ADDR_MIN))
			machine_change(m, machine_destination(m),
				       chosen(m, x, NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX,
					      machine_address_length(m)));
		change_port(m, x, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX);
		if (nest_u32(x->data, NFTA_NAT_FLAGS, 0) & NF_NAT_RANGE_NETMAP)
			bits_forget(machine_destination(m));
		m->rewritten = true;
	}
	m->translated = true;
	machine_decide(m, VERDICT_ACCEPT);
}

void run_redir(struct machine *m, size_t table, const struct foreign_expr *x)
{
	static const uint8_t v6[16] = { [15] = 1 };
	uint8_t loopback[16] = { 127, 0, 0, 1 }, known[16];

	(void)table;
	if (m->packet->family == AF_INET6)
		memcpy(loopback, v6, sizeof(loopback));
	memset(known, 0xff, sizeof(known));
	machine_change(m, machine_destination(m),
		       (struct bits){ loopback, known, machine_address_length(m) });
	change_port(m, x, NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX);
	m->rewritten = true;
	m->translated = true;
	machine_decide(m, VERDICT_ACCEPT);
}

void run_masq(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	m->translated = true;
	machine_decide(m, VERDICT_ACCEPT);
}
