/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live guests of the caller's own, for root those of everybody: what ps, show and kill ask for
 * and what the first two print.
 */
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "common/request.h"

struct rows {
	struct guest_row *row; /* oldest first */
	size_t n;
};

#define ROWS_NULL ((struct rows){ .row = NULL })

/* All of them, or a negative errno: never half a list. Ends with rows_free().
 * With @target, not NULL, only those that it means; whatever it is, a bad name means none. */
int rows_ask(const char *socket, const char *target, struct rows *ret, struct error *e);
void rows_free(struct rows *rows);

/* The same of all, without counters but memory_bytes: that is much cheaper where there are many. */
int rows_ask_brief(const char *socket, struct rows *ret, struct error *e);

/* Is one of them called so, by its id or its name? */
int rows_have(const struct rows *rows, const char *target);

/* Drops the slots: scopes without a guest. */
void rows_drop_slots(struct rows *rows);

/* Drops those that none of @targets (ends with NULL) means. */
void rows_choose(struct rows *rows, char *const targets[]);

/* One complaint for each of @targets that none of @rows is; 1 when there was one.
 * A guest of somebody else's is in no list, so it is as unknown as one that never was. */
int rows_complain_of_none(const struct rows *rows, char *const targets[]);

const char *row_state(const struct guest_row *row);

/* Systemd's name of its scope; "" before there is one. */
const char *row_scope(const struct guest_row *row);

/* Nobody asked for it yet: it waits for somebody who does. */
#define ROW_NO_CALLER ((uint32_t)-1)

/* The user's name into @buf, which is returned, or the number; "-" for ROW_NO_CALLER. */
const char *user_text(uint32_t uid, char *buf, size_t size);

/* One JSON object with all of them, on standard output. 0 or a negative errno. */
int rows_print_json(const struct rows *rows);
