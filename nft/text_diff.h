/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is wanted and what is there, line by line. A line may end in "\t" and a note, which is not
 * compared. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Prints both as one text: a line in both starts with two blanks, one that is missing in @live with
 * "- ", one that should not be there with "+ ". Long runs of elements that are in both and have the
 * same note are printed as one line. *ret_same: nothing is missing and nothing too much. 0 or
 * -ENOMEM. */
int text_diff(const char *wanted, const char *live, FILE *out, bool *ret_same);
