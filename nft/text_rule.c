/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A rule's expressions pass values on in registers; nft's language has none. So what was loaded is
 * kept as text until something is done with it.
 */
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <stdarg.h>
#include <string.h>

#include "common/fd.h"
#include "nft/build.h"
#include "nft/printer.h"

/* ---- pieces ---- */

void printer_separate(struct printer *p)
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

void printer_release(struct printer *p)
{
	if (p->holds_nfproto) {
		printer_separate(p);
		fputs("meta nfproto ", p->f);
		print_number_of(p, VALUE_NFPROTO, p->nfproto);
	}
	if (p->holds_l4proto) {
		printer_separate(p);
		fputs("meta l4proto ", p->f);
		print_number_of(p, NFT_TYPE_PROTOCOL, p->l4proto);
	}
	p->holds_nfproto = p->holds_l4proto = false;
}

void printer_piece(struct printer *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void printer_piece(struct printer *p, const char *format, ...)
{
	va_list ap;

	printer_release(p);
	printer_separate(p);
	va_start(ap, format);
	vfprintf(p->f, format, ap);
	va_end(ap);
}

/* It may load anything. */
void printer_raw(struct printer *p, const struct foreign_expr *x)
{
	memset(p->words, 0, sizeof(p->words));
	printer_piece(p, "[ ");
	print_name(p->f, x->name);
	for (size_t i = 0; i < x->data.len; i++)
		fprintf(p->f, "%s%02x", i % WORD ? "" : " ", ((const uint8_t *)x->data.data)[i]);
	fputs(" ]", p->f);
}

/* ---- registers ---- */

/* NULL when there is no such register. */
struct loaded *printer_loaded(struct printer *p, uint32_t number)
{
	if (number >= NFT_REG_1 && number <= NFT_REG_4)
		return &p->words[(number - NFT_REG_1) * (NFT_REG_SIZE / WORD)];
	if (number >= NFT_REG32_00 && number <= NFT_REG32_15)
		return &p->words[number - NFT_REG32_00];
	return NULL;
}

void printer_load(struct printer *p, uint32_t number, uint32_t type, size_t len, const char *format,
		  ...)
{
	struct loaded *l = printer_loaded(p, number);
	va_list ap;

	if (!l)
		return;
	*l = (struct loaded){ .type = type, .len = len };
	va_start(ap, format);
	vsnprintf(l->text, sizeof(l->text), format, ap);
	va_end(ap);
}

struct loaded *printer_source(struct printer *p, const struct foreign_expr *x, uint16_t attr)
{
	struct loaded *l = printer_loaded(p, nest_u32(x->data, attr, 0));

	return l && (l->text[0] || l->constant.len) ? l : NULL;
}

void printer_print_loaded(struct printer *p, const struct loaded *l, uint32_t type)
{
	if (l->constant.len)
		print_value(p->f, p->names, type, l->constant);
	else
		fputs(l->text, p->f);
}

/* A key of @len bytes: one value, or several, joined by " . ". */
void printer_print_key(struct printer *p, struct loaded *first, size_t len)
{
	const char *separator = "";

	for (size_t at = 0; at < len;) {
		struct loaded *l = first + at / WORD;
		size_t step = WORD;

		if (l >= p->words + WORDS)
			return;
		fputs(separator, p->f);
		if (l->text[0] || l->constant.len) {
			printer_print_loaded(p, l, l->type);
			step = l->len;
		} else {
			fputc('?', p->f);
		}
		separator = " . ";
		at += step ? (step + WORD - 1) / WORD * WORD : WORD;
	}
}

int printer_family(const struct printer *p)
{
	uint8_t family = p->ruleset->tables[p->chain->table].family;

	return family == NFPROTO_IPV4 || family == NFPROTO_IPV6 ? family : p->nfproto;
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

void printer_print(struct printer *p, const struct foreign_expr *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(printers); i++)
		if (strcmp(printers[i].name, x->name) == 0) {
			printers[i].print(p, x);
			return;
		}
	printer_raw(p, x);
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
		printer_print(&p, &x);
	printer_release(&p);
}
