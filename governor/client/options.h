/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of all verbs: one table of options, from which they are parsed and --help is
 * printed. "--memory 64M" and "--memory=64M" are the same, "--" ends the options, "-h" and "--help"
 * exist everywhere. There are no abbreviations.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "common/error.h"
#include "common/limits.h"

#define OPTIONS_MAX 24 /* per verb */

#define OPTION_LIST_MAX 16

struct option;

/* Options that may be given more than once, in the order of the command line. */
struct option_list {
	size_t n;
	struct {
		const struct option *option;
		const char *text;
	} item[OPTION_LIST_MAX];
};

struct option {
	const struct limit_info *limit; /* name, value and help come from there */
	const char *name;
	const char *value; /* "FILE"; NULL: the option takes none */
	const char *help;
	struct option_list *list; /* where each goes; several options may share it */
};

struct option_set {
	const struct option *options;
	size_t n_options;
	int operand_ends; /* the first operand ends the options: what follows is a command */
};

const char *option_name(const struct option *o);

/* Parses @argv, which starts behind the verb and ends with NULL, and moves the operands to its
 * front. values[i] becomes the text of option i: NULL when it was not given, "" when it takes none.
 * Returns 0, 1 when help was asked for, or -EINVAL. */
int options_parse(const struct option_set *set, char **argv, const char *values[OPTIONS_MAX],
		  struct error *e);

/* One line per option, none above 80 columns. */
void options_help(const struct option_set *set, FILE *out);
