/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROFILE_LIST_MAX 192

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes == LIMIT_INFINITY ? bytes : bytes & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Where the ceiling stands decides who can raise it, and how. */
static int refuse_above(const struct config *c, const struct access *access, enum limit limit,
			uint64_t value, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char asked[32], most[32], from[ORIGIN_TEXT_MAX];

	unit_format(info->unit, value, asked, sizeof(asked));
	unit_format(info->unit, access_ceiling(c, access, limit), most, sizeof(most));
	config_ceiling_origin(c, access, limit, from, sizeof(from));
	if (strcmp(from, LIMIT_BUILT_IN) == 0)
		return error_set(e, -EPERM,
				 "--%s: %s is above %s, the built-in ceiling; ask for less, or ask "
				 "the administrator for %s in [ceiling] of " CONFIG_PATH,
				 info->name, asked, most, info->name);
	return error_set(e, -EPERM,
			 "--%s: %s is above %s, the ceiling in %s; ask for less, or ask the "
			 "administrator to raise it",
			 info->name, asked, most, from);
}

static int check_value(const struct config *c, const struct access *access, enum limit limit,
		       uint64_t value, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char asked[32], least[32];

	if ((value > INT64_MAX && value != LIMIT_INFINITY) || value > info->max)
		return error_set(e, -ERANGE, "--%s: is too large", info->name); /* no parser's */
	if (value < info->min)
		return error_set(e, -EINVAL, "--%s: %s is below %s, the least that works",
				 info->name, unit_format(info->unit, value, asked, sizeof(asked)),
				 unit_format(info->unit, info->min, least, sizeof(least)));
	if (value > access_ceiling(c, access, limit))
		return refuse_above(c, access, limit, value, e);
	return 0;
}

/* The ones that it may ask for, as far as there is room for all of their names. */
static const char *list_profiles(const struct config *c, const struct access *access,
				 char buf[PROFILE_LIST_MAX])
{
	size_t used = 0;

	for (uint32_t i = 0; i < c->n_profiles; i++) {
		const char *name = c->profiles[i].name;

		if (!config_allows_profile(c, access, name))
			continue;
		if (used + strlen(name) + sizeof(", , ...") > PROFILE_LIST_MAX) {
			strcpy(buf + used, ", ...");
			break;
		}
		used += (size_t)sprintf(buf + used, "%s%s", used ? ", " : "", name);
	}
	return buf;
}

int policy_profile(const struct config *c, const struct access *access, const char *asked,
		   const struct profile **ret, struct error *e)
{
	const char *name = asked[0] ? asked : c->net;
	const struct profile *p = config_profile(c, name);
	const char *from =
		access->profiles.n ? access->profiles.from : CONFIG_PATH " and its drop-ins";
	char list[PROFILE_LIST_MAX] = "";

	if (!p)
		return error_set(e, -EINVAL,
				 "--net: there is no network profile \"%s\"; you may ask for %s",
				 name, list_profiles(c, access, list));
	if (!config_allows_profile(c, access, name))
		return error_set(e, -EACCES,
				 "--net: %s is none of the profiles that [access%s%s] in %s allows "
				 "you; ask for another, or ask the administrator",
				 name, access->name[0] ? " " : "", access->name, from);
	*ret = p;
	return 0;
}

int policy_limits(const struct config *c, const struct access *access, const struct limits *asked,
		  struct limits *ret, struct limit_origins *ret_origins, struct error *e)
{
	struct limits merged;
	struct limit_origins origins;
	int r;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t value = asked->value[i];
		char *origin = origins.text[i];

		if (value != LIMIT_UNSET) {
			strcpy(origin, LIMIT_ASKED);
		} else {
			value = c->defaults.value[i];
			config_default_origin(c, (enum limit)i, origin, ORIGIN_TEXT_MAX);
		}
		r = check_value(c, access, (enum limit)i, value, e);
		if (r < 0)
			return r;
		merged.value[i] = limit_table[i].unit == UNIT_SIZE ? whole_pages(value) : value;
	}
	*ret = merged;
	*ret_origins = origins;
	return 0;
}
