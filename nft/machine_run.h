/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the handlers of expressions have to work with. A handler gets the table that the rule is in.
 */
#pragma once

#include "nft/machine.h"

/* Of the packet's headers: where it goes. */
size_t machine_address_length(const struct machine *m);
struct bits machine_destination(const struct machine *m);
struct bits machine_port(const struct machine *m);

/* The register that an attribute of @n names; empty when there is none of that length. */
struct bits machine_source(const struct machine *m, struct nest n, uint16_t attr, size_t len);

/* Where a value goes; what was known of these bytes is not any more. */
struct bits machine_out(struct machine *m, uint32_t number, size_t len);

/* Nothing is known of any register. */
void machine_forget(struct machine *m);

/* Is @value a register that certainly is not @data? */
bool machine_is_never(const struct machine *m, struct bits value, const void *data);

/* The rest of the rule hangs on @a; @what: name of the expression. */
void machine_require(struct machine *m, enum ternary a, const char *what);

void machine_decide(struct machine *m, enum verdict_kind verdict);

/* Changes @b to @value, or perhaps, where it is not certain that the packet comes here. */
void machine_change(struct machine *m, struct bits b, struct bits value);

/* Loads what cannot be known; the second may also end the rule. */
void run_load(struct machine *m, size_t table, const struct foreign_expr *x);
void run_maybe_load(struct machine *m, size_t table, const struct foreign_expr *x);

/* nft/machine_load.c */
void run_meta(struct machine *m, size_t table, const struct foreign_expr *x);
void run_socket(struct machine *m, size_t table, const struct foreign_expr *x);
void run_payload(struct machine *m, size_t table, const struct foreign_expr *x);
void run_bitwise(struct machine *m, size_t table, const struct foreign_expr *x);
void run_byteorder(struct machine *m, size_t table, const struct foreign_expr *x);

/* nft/machine_match.c */
void run_cmp(struct machine *m, size_t table, const struct foreign_expr *x);
void run_range(struct machine *m, size_t table, const struct foreign_expr *x);
void run_immediate(struct machine *m, size_t table, const struct foreign_expr *x);
void run_reject(struct machine *m, size_t table, const struct foreign_expr *x);
void run_lookup(struct machine *m, size_t table, const struct foreign_expr *x);

/* nft/machine_nat.c */
void run_nat(struct machine *m, size_t table, const struct foreign_expr *x);
void run_redir(struct machine *m, size_t table, const struct foreign_expr *x);
void run_masq(struct machine *m, size_t table, const struct foreign_expr *x);
