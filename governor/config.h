/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /etc/harpe-gov/harpe-gov.conf and its drop-ins: which keys there are, what they mean, what is
 * refused. Documented in harpe-gov.conf(5); read by libinih.
 *
 * A configuration is taken whole or not at all: the first unknown section or key, bad value,
 * doubled key or contradiction makes one sentence with file and line.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/limits.h"

#define CONFIG_PATH "/etc/harpe-gov/harpe-gov.conf" /* drop-ins: CONFIG_PATH.d/NAME.conf */

#define CONFIG_FILE_MAX	    256 /* bytes of a file's name that are kept */
#define ACCESS_SECTIONS_MAX 32
#define ACCESS_NAME_MAX	    32
#define ACCESS_MEMBERS_MAX  32

/* Who a section is for: local names or numbers, resolved by access_resolve(). */
struct members {
	uint32_t n;
	char name[ACCESS_MEMBERS_MAX][ACCESS_NAME_MAX + 1];
	uint32_t id[ACCESS_MEMBERS_MAX];
	char from[CONFIG_FILE_MAX + 16]; /* "FILE:LINE" */
};

/* [access NAME], and [access] for everybody else. */
struct access {
	char name[ACCESS_NAME_MAX + 1]; /* "" = [access] */
	struct members users, groups;	/* none in [access] */
	uint32_t max_guests;		/* per calling uid, alive at once; 0 = no access */
	uint32_t max_connections;	/* per calling uid, open at once */
	struct limits ceiling;		/* LIMIT_UNSET: [ceiling] */
};

struct config {
	uint32_t first_uid, uid_count; /* [pool] */
	uint64_t pool_memory;	       /* [pool]: sum of the memory limits of all live guests */
	struct limits defaults;	       /* [defaults]: for what a run does not name */
	struct limits ceiling;	       /* [ceiling]: what a run may ask for at most */
	struct access access[ACCESS_SECTIONS_MAX]; /* [0] is [access]; the first that fits wins */
	uint32_t n_access;
};

/* What holds where the files say nothing; the shipped file repeats it in comments. */
void config_defaults(struct config *c);

/* Reads @file over @c; @path is for messages. On failure @c is spoilt. */
int config_read(FILE *file, const char *path, struct config *c, struct error *e);

/* What no single line can be blamed for. */
int config_check(const struct config *c, struct error *e);

/* Defaults, then @path, then @path.d in the order of names; what is absent says nothing. */
int config_load(const char *path, struct config *ret, struct error *e);

/* Prints the configuration in force in its own syntax, each line with where it comes from. */
int config_show(const char *path, FILE *to, struct error *e);
