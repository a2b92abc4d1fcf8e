/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the printers of expressions (nft/text_rule.c) have to work with.
 */
#pragma once

#include "nft/text.h"

#define WORDS	   16 /* of 4 bytes: all registers */
#define WORD	   4
#define LOADED_MAX 160

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

/* Prints a piece of the rule, with a blank before it. */
void printer_piece(struct printer *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Without what is held back; printer_release() prints that. */
void printer_separate(struct printer *p);
void printer_release(struct printer *p);

/* The expression as it is: [ name bytes ]. It may load anything. */
void printer_raw(struct printer *p, const struct foreign_expr *x);

/* NULL when there is no such register. */
struct loaded *printer_loaded(struct printer *p, uint32_t number);

/* The register that an attribute of @x names; NULL when nothing is known of what is in it. */
struct loaded *printer_source(struct printer *p, const struct foreign_expr *x, uint16_t attr);

void printer_load(struct printer *p, uint32_t number, uint32_t type, size_t len, const char *format,
		  ...) __attribute__((format(printf, 5, 6)));

/* @type: of a constant. */
void printer_print_loaded(struct printer *p, const struct loaded *l, uint32_t type);

/* A key of @len bytes: one value, or several, joined by " . ". */
void printer_print_key(struct printer *p, struct loaded *first, size_t len);

/* NFPROTO_IPV4 or NFPROTO_IPV6; -1 when the rule is for both so far. */
int printer_family(const struct printer *p);

/* Any expression, by the printer that there is for it. */
void printer_print(struct printer *p, const struct foreign_expr *x);

/* nft/text_match.c */
void print_meta(struct printer *p, const struct foreign_expr *x);
void print_socket(struct printer *p, const struct foreign_expr *x);
void print_ct(struct printer *p, const struct foreign_expr *x);
void print_payload(struct printer *p, const struct foreign_expr *x);
void print_bitwise(struct printer *p, const struct foreign_expr *x);
void print_byteorder(struct printer *p, const struct foreign_expr *x);
void print_cmp(struct printer *p, const struct foreign_expr *x);
void print_range_of(struct printer *p, const struct foreign_expr *x);
void print_lookup(struct printer *p, const struct foreign_expr *x);
void print_dynset(struct printer *p, const struct foreign_expr *x);

/* nft/text_statement.c */
void print_immediate(struct printer *p, const struct foreign_expr *x);
void print_counter(struct printer *p, const struct foreign_expr *x);
void print_limit(struct printer *p, const struct foreign_expr *x);
void print_log(struct printer *p, const struct foreign_expr *x);
void print_reject(struct printer *p, const struct foreign_expr *x);
void print_objref(struct printer *p, const struct foreign_expr *x);
void print_nat(struct printer *p, const struct foreign_expr *x);
void print_redir(struct printer *p, const struct foreign_expr *x);
void print_masq(struct printer *p, const struct foreign_expr *x);
void print_notrack(struct printer *p, const struct foreign_expr *x);
void print_xt(struct printer *p, const struct foreign_expr *x);
