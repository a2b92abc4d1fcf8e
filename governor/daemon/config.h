/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /etc/harpe-gov/harpe-gov.conf and its drop-ins: which keys there are, what they mean, what is
 * refused. Documented in harpe-gov.conf(5); read by libinih.
 *
 * A configuration is taken whole or not at all: the first unknown section or key, bad value,
 * doubled key or contradiction makes one sentence with file and line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/limits.h"
#include "governor/daemon/profile.h"
#include "governor/guest/view_base.h"

#define CONFIG_PATH "/etc/harpe-gov/harpe-gov.conf" /* drop-ins: CONFIG_PATH.d/NAME.conf */

#define CONFIG_FILE_MAX	    256 /* bytes of a file's name that are kept */
#define ACCESS_SECTIONS_MAX 32
#define ACCESS_NAME_MAX	    32
#define ACCESS_MEMBERS_MAX  32

#define CONFIG_PLAIN_SECTIONS 4 /* [pool], [defaults], [ceiling], [view] */
#define CONFIG_PROFILES_MAX   (64 + PROFILE_BUILT_IN)
#define CONFIG_SECTIONS_MAX   (CONFIG_PLAIN_SECTIONS + ACCESS_SECTIONS_MAX + CONFIG_PROFILES_MAX)
#define CONFIG_KEYS_MAX	      16
#define CONFIG_FILES_MAX      64

/* Who a section is for: local names or numbers, resolved by access_resolve(). Or what: names of
 * profiles, without ids. */
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
	struct members profiles; /* network profiles that may be asked for; none: the built-in ones
				    and the default */
	struct limits ceiling;	 /* LIMIT_UNSET: [ceiling] */
	uint32_t section;	 /* its place in config->origin */
};

struct config {
	uint32_t first_uid, uid_count;	/* [pool] */
	uint32_t warm;			/* [pool]: slots, see slots.h */
	uint32_t recycle;		/* [pool]: their scopes serve several guests: 0 or 1 */
	uint64_t pool_memory;		/* [pool]: sum of the memory limits of all live guests */
	struct limits defaults;		/* [defaults]: for what a run does not name */
	char net[PROFILE_NAME_MAX + 1]; /* [defaults]: the network profile */
	struct limits ceiling;		/* [ceiling]: what a run may ask for at most */
	struct view_paths view_ro, view_hide;	   /* [view] */
	struct access access[ACCESS_SECTIONS_MAX]; /* [0] is [access]; the first that fits wins */
	uint32_t n_access;
	struct profile profiles[CONFIG_PROFILES_MAX]; /* the built-in ones first */
	uint32_t n_profiles;

	uint32_t n_files;
	char files[CONFIG_FILES_MAX][CONFIG_FILE_MAX]; /* from [1] on */
	struct origin origin[CONFIG_SECTIONS_MAX][CONFIG_KEYS_MAX];
	struct origin access_from[ACCESS_SECTIONS_MAX]; /* the first line of each [access NAME] */
};

/* What holds where the files say nothing; the shipped file repeats it in comments. */
void config_defaults(struct config *c);

/* Reads @file over @c; @path is for messages. On failure @c is spoilt. */
int config_read(FILE *file, const char *path, struct config *c, struct error *e);

/* What @c points to; not @c itself. */
void config_free(struct config *c);

/* The network profile @name, or NULL. */
const struct profile *config_profile(const struct config *c, const char *name);

/* Are the profiles that are named there? The sentence has file and line. */
int config_check_profiles(const struct config *c, struct error *e);

/* Do all values go together? The sentence has the file and line of one of those that do not. */
int config_check(const struct config *c, struct error *e);

/* May this section's callers use the network profile @name? */
bool config_allows_profile(const struct config *c, const struct access *a, const char *name);

/* Defaults, then @path, then @path.d in the order of names; what is absent says nothing. */
int config_load(const char *path, struct config *ret, struct error *e);

/* "FILE:LINE" of the value in [defaults], or LIMIT_BUILT_IN. Returns @buf. */
const char *config_default_origin(const struct config *c, enum limit limit, char *buf, size_t size);

/* The same for the ceiling of those who fall under @a: its own value, else that of [ceiling]. */
const char *config_ceiling_origin(const struct config *c, const struct access *a, enum limit limit,
				  char *buf, size_t size);

/* Prints the configuration in force in its own syntax, each line with where it comes from. */
int config_show(const char *path, FILE *to, struct error *e);
