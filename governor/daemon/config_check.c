/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the values of a configuration go together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "governor/daemon/config_keys.h"

static int at(const struct config *c, const struct origin *o, struct error *e)
{
	return error_wrap(e, -EINVAL, "%s:%u", c->files[o->file], o->line);
}

/* Of two lines that do not go together the one that was read last is to blame; a value that is
 * built in goes with all others that are, so that one of them is a line. */
static int at_later(const struct config *c, const struct origin *a, const struct origin *b,
		    struct error *e)
{
	bool a_is_later = a->file != b->file ? a->file > b->file : a->line > b->line;

	return at(c, a_is_later ? a : b, e);
}

static int at_pool_key(const struct config *c, const char *key, const char *other, struct error *e)
{
	return at_later(c, config_origin(c, SLOT_POOL, key), config_origin(c, SLOT_POOL, other), e);
}

/* The default must not be above @ceiling, which stands in section @title, at @slot. */
static int check_ceiling(const struct config *c, enum limit limit, const char *title, uint32_t slot,
			 uint64_t ceiling, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	uint64_t value = c->defaults.value[limit];
	char shown[32], most[32];

	if (value <= ceiling)
		return 0;
	error_set(e, -EINVAL,
		  "[defaults] %s = %s is above [%s] %s = %s; lower the one or raise the other",
		  info->name, unit_format(info->unit, value, shown, sizeof(shown)), title,
		  info->name, unit_format(info->unit, ceiling, most, sizeof(most)));
	return at_later(c, config_origin(c, SLOT_DEFAULTS, info->name),
			config_origin(c, slot, info->name), e);
}

const struct profile *config_profile(const struct config *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_profiles; i++)
		if (strcmp(c->profiles[i].name, name) == 0)
			return &c->profiles[i];
	return NULL;
}

bool config_allows_profile(const struct config *c, const struct access *a, const char *name)
{
	const struct profile *p = config_profile(c, name);

	if (a->profiles.n == 0)
		return p && (p->built_in || strcmp(name, c->net) == 0);
	for (uint32_t i = 0; i < a->profiles.n; i++)
		if (strcmp(a->profiles.name[i], name) == 0)
			return true;
	return false;
}

static int check_access(const struct config *c, const struct access *a, struct error *e)
{
	char title[ACCESS_NAME_MAX + 16];
	int r = 0;

	snprintf(title, sizeof(title), "access%s%s", a->name[0] ? " " : "", a->name);
	if (a != c->access && a->users.n + a->groups.n == 0) {
		error_set(e, -EINVAL, "[%s]: names no users and no groups", title);
		return at(c, &c->access_from[a - c->access], e);
	}
	if (!config_allows_profile(c, a, c->net)) {
		error_set(e, -EINVAL,
			  "[defaults] net = %s is none of [%s] profiles; add it there, or change "
			  "the default",
			  c->net, title);
		return at_later(c, config_origin(c, SLOT_DEFAULTS, "net"),
				config_origin(c, a->section, "profiles"), e);
	}
	for (int i = 0; i < LIMIT_COUNT && r == 0; i++)
		if (a->ceiling.value[i] != LIMIT_UNSET)
			r = check_ceiling(c, (enum limit)i, title, a->section, a->ceiling.value[i],
					  e);
	return r;
}

static int check_default(const struct config *c, struct error *e)
{
	if (config_profile(c, c->net))
		return 0;
	error_set(e, -EINVAL, "[defaults] net: there is no profile \"%s\"", c->net);
	return at(c, config_origin(c, SLOT_DEFAULTS, "net"), e);
}

int config_check_profiles(const struct config *c, struct error *e)
{
	for (uint32_t i = 0; i < c->n_access; i++) {
		const struct access *a = &c->access[i];

		for (uint32_t n = 0; n < a->profiles.n; n++)
			if (!config_profile(c, a->profiles.name[n]))
				return error_set(
					e, -EINVAL,
					"%s: [access%s%s] profiles: there is no profile \"%s\"",
					a->profiles.from, a->name[0] ? " " : "", a->name,
					a->profiles.name[n]);
	}
	return check_default(c, e);
}

static int check_pool(const struct config *c, struct error *e)
{
	if (c->first_uid > UID_CEILING - c->uid_count) {
		error_set(e, -EINVAL, "[pool]: first-uid %u and count %u pass the last uid %u",
			  c->first_uid, c->uid_count, UID_CEILING);
		return at_pool_key(c, "first-uid", "count", e);
	}
	if (c->recycle && c->warm == 0) {
		error_set(e, -EINVAL,
			  "[pool]: recycle needs slots that it serves: set warm to 1 or more, or "
			  "recycle to no");
		return at_pool_key(c, "recycle", "warm", e);
	}
	if (c->warm >= c->uid_count) {
		error_set(e, -EINVAL,
			  "[pool]: warm %u is not below count %u, and a slot has a uid; lower the "
			  "one or raise the other",
			  c->warm, c->uid_count);
		return at_pool_key(c, "warm", "count", e);
	}
	return 0;
}

/* As the firewall counts them, before there is a slice. */
static int check_entries(const struct config *c, struct error *e)
{
	size_t total = 0;

	for (uint32_t i = PROFILE_BUILT_IN; i < c->n_profiles; i++) {
		const struct profile *p = &c->profiles[i];
		const struct firewall_profile f = profile_for_firewall(p, 0);
		int r = firewall_count_entries(&f, &total, e);

		if (r == -EINVAL) /* so it has some */
			return at(c, &p->from[p->n_entries - 1], e);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_check(const struct config *c, struct error *e)
{
	int r = check_pool(c, e);

	for (int i = 0; i < LIMIT_COUNT && r == 0; i++)
		r = check_ceiling(c, (enum limit)i, "ceiling", SLOT_CEILING, c->ceiling.value[i],
				  e);
	for (uint32_t i = 0; i < c->n_access && r == 0; i++)
		r = check_access(c, &c->access[i], e);
	return r < 0 ? r : check_entries(c, e);
}
