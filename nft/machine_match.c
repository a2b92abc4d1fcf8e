/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expressions that decide: whether the rule matches, and what comes of it.
 */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "common/fd.h"
#include "nft/lookup.h"
#include "nft/machine_run.h"

/* ---- conditions ---- */

static enum ternary compare(const struct machine *m, uint32_t op, struct bits value,
			    const void *data)
{
	static const uint8_t zero[BITS_MAX];
	uint8_t full[BITS_MAX];

	memset(full, 0xff, sizeof(full));
	switch (op) {
	case NFT_CMP_EQ:
		return machine_is_never(m, value, data) ? ANSWER_NO : bits_equal(value, data);
	case NFT_CMP_NEQ:
		return machine_is_never(m, value, data) ? ANSWER_YES
							: answer_not(bits_equal(value, data));
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

void run_cmp(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct nest data = nest_value(x->data, NFTA_CMP_DATA);
	struct bits value = machine_source(m, x->data, NFTA_CMP_SREG, data.len);

	(void)table;
	machine_require(m,
			value.len > 0 ? compare(m, nest_u32(x->data, NFTA_CMP_OP, UINT32_MAX),
						value, data.data)
				      : ANSWER_MAYBE,
			x->name);
}

void run_range(struct machine *m, size_t table, const struct foreign_expr *x)
{
	struct nest from = nest_value(x->data, NFTA_RANGE_FROM_DATA);
	struct nest to = nest_value(x->data, NFTA_RANGE_TO_DATA);
	struct bits value = machine_source(m, x->data, NFTA_RANGE_SREG, from.len);
	enum ternary a = ANSWER_MAYBE;

	(void)table;
	if (value.len > 0 && to.len == from.len)
		a = bits_within(value, from.data, to.data);
	if (nest_u32(x->data, NFTA_RANGE_OP, NFT_RANGE_EQ) == NFT_RANGE_NEQ)
		a = answer_not(a);
	machine_require(m, a, x->name);
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

	machine_decide(m, VERDICT_ANY);
	if (!foreign_verdict(data, &code, &m->chain))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].code == code)
			machine_decide(m, kinds[i].kind);
}

void run_immediate(struct machine *m, size_t table, const struct foreign_expr *x)
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
	to = machine_out(m, reg, value.len);
	if (to.len > 0)
		bits_set(to, value.data);
}

void run_reject(struct machine *m, size_t table, const struct foreign_expr *x)
{
	(void)table;
	(void)x;
	machine_decide(m, VERDICT_DROP);
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
	to = machine_out(m, reg, value.len);
	if (to.len > 0)
		bits_set(to, value.data);
}

void run_lookup(struct machine *m, size_t table, const struct foreign_expr *x)
{
	const char *name = nest_string(x->data, NFTA_LOOKUP_SET);
	struct foreign_set *s = name ? foreign_find_set(m->ruleset, table, name) : NULL;
	struct bits value = machine_source(m, x->data, NFTA_LOOKUP_SREG, s ? s->key_len : 0);
	const struct foreign_element *element = NULL;
	struct nest never = NEST_NULL;
	enum ternary a = ANSWER_MAYBE;

	if (value.len > 0 && machine_is_never(m, value, &m->packet->not_in))
		never = (struct nest){ &m->packet->not_in, sizeof(m->packet->not_in) };
	if (value.len > 0)
		a = lookup(s, value, never, &element);
	if (a == ANSWER_YES && has_conditions(s))
		a = ANSWER_MAYBE;
	if (nest_u32(x->data, NFTA_LOOKUP_FLAGS, 0) & NFT_LOOKUP_F_INV)
		a = answer_not(a);
	machine_require(m, a, x->name);
	if (!nest_has(x->data, NFTA_LOOKUP_DREG) || a == ANSWER_NO)
		return;
	if (a == ANSWER_YES && element)
		take_data(m, x, element);
	else if (nest_u32(x->data, NFTA_LOOKUP_DREG, 0) == NFT_REG_VERDICT)
		machine_decide(m, VERDICT_ANY);
	else
		machine_forget(m);
}
