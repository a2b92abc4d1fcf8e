/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a check comes to, for those who look (audit) and those who try (verify). */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* The worse, the larger. */
enum verdict { VERDICT_PASS, VERDICT_UNKNOWN, VERDICT_FAIL, VERDICTS };
extern const char *const verdict_names[VERDICTS];

/* Exit statuses, by the worst verdict; the last one is of who could not look at all. */
enum { VERDICT_EXIT_PASS, VERDICT_EXIT_FAIL, VERDICT_EXIT_UNKNOWN, VERDICT_EXIT_CANNOT };

int verdict_exit_status(enum verdict worst);

/* Prints @root, which is taken; NULL is one that could not be made. 0, -ENOMEM or -EIO. */
int verdict_print_json(json_t *root, FILE *to);
