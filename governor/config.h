/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /etc/harpe-gov/harpe-gov.conf: which keys there are, what they mean, what is refused.
 * Documented in harpe-gov.conf(5); read by libinih.
 *
 * A configuration is taken whole or not at all: the first unknown section or key, bad value,
 * doubled key or contradiction makes one sentence with file and line.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/limits.h"

#define CONFIG_PATH "/etc/harpe-gov/harpe-gov.conf"

struct config {
	uint32_t first_uid, uid_count; /* [pool] */
	struct limits defaults;	       /* [defaults]: for what a run does not name */
	struct limits ceiling;	       /* [ceiling]: what a run may ask for at most */
	uint32_t max_guests;	       /* [access]: per calling uid, alive at once */
	uint32_t max_connections;      /* [access]: per calling uid, open at once */
};

/* What holds where the file says nothing; the shipped file repeats it in comments. */
void config_defaults(struct config *c);

/* Reads @file over config_defaults(); @path is for messages. */
int config_parse(FILE *file, const char *path, struct config *ret, struct error *e);

/* As config_parse(); a file that is absent is the defaults. */
int config_load(const char *path, struct config *ret, struct error *e);
