/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which sections and keys the configuration has; for config*.c alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "governor/daemon/config.h"

enum key_kind {
	KEY_NUMBER,   /* uint32_t, from min to max */
	KEY_SIZE,     /* uint64_t, bytes, min or more */
	KEY_LIMIT,    /* uint64_t, of limit */
	KEY_CHOICE,   /* uint32_t, the index of one of choices */
	KEY_MEMBERS,  /* struct members, of users or groups */
	KEY_PROFILE,  /* char[PROFILE_NAME_MAX + 1] */
	KEY_PROFILES, /* struct members */
	KEY_ALLOW,    /* struct profile: every line adds one */
	KEY_PATHS,    /* struct view_paths, of the host's files */
};

struct key {
	const char *name;
	enum key_kind kind;
	size_t offset; /* in what config_base() returns */
	uint32_t min, max;
	enum limit limit;
	const char *const *choices; /* NULL ends them */
	bool named_only;	    /* not in [access] without a name */
};

struct section {
	const char *name;
	const struct key *keys;
	size_t n_keys;
};

/* Every section has a slot, its place in config->origin: the plain ones, then those of accesses,
 * then those of profiles. */
enum { SLOT_POOL, SLOT_DEFAULTS, SLOT_CEILING, SLOT_VIEW, SLOT_ACCESS };
#define UID_CEILING UINT32_C(0xFFFF0000) /* of all that the pool may have */

#define SLOT_PROFILE (SLOT_ACCESS + ACCESS_SECTIONS_MAX)

const struct section *config_section(uint32_t slot);

/* Where its @key comes from, which it must have. */
const struct origin *config_origin(const struct config *c, uint32_t slot, const char *key);

/* What the section's values are in: struct config, struct access or struct profile. */
void *config_base(struct config *c, uint32_t slot);

#define TITLE_MAX (ACCESS_NAME_MAX + 32)

/* The title in brackets; returns @buf. */
const char *config_title(struct config *c, uint32_t slot, char buf[TITLE_MAX]);
