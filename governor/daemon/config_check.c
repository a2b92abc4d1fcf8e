/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the values of a configuration go together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "governor/daemon/config_keys.h"

/* @low must not be above @high; each is said with its section. */
static int check_order(enum limit limit, const char *low_section, uint64_t low,
		       const char *high_section, uint64_t high, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char shown_low[32], shown_high[32];

	if (low <= high)
		return 0;
	return error_set(e, -EINVAL,
			 "[%s] %s = %s is above [%s] %s = %s; lower the one or raise the other",
			 low_section, info->name,
			 unit_format(info->unit, low, shown_low, sizeof(shown_low)), high_section,
			 info->name, unit_format(info->unit, high, shown_high, sizeof(shown_high)));
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
	if (a != c->access && a->users.n + a->groups.n == 0)
		return error_set(e, -EINVAL, "[%s]: names no users and no groups", title);
	if (!config_allows_profile(c, a, c->net))
		return error_set(e, -EINVAL,
				 "[defaults] net = %s is none of [%s] profiles; add it there, or "
				 "change the default",
				 c->net, title);
	for (int i = 0; i < LIMIT_COUNT && r == 0; i++)
		if (a->ceiling.value[i] != LIMIT_UNSET)
			r = check_order((enum limit)i, "defaults", c->defaults.value[i], title,
					a->ceiling.value[i], e);
	return r;
}

static int check_default(const struct config *c, struct error *e)
{
	const struct section *section = config_section(SLOT_DEFAULTS);
	size_t key = 0;
	const struct origin *o;

	if (config_profile(c, c->net))
		return 0;
	while (section->keys[key].kind != KEY_PROFILE)
		key++;
	o = &c->origin[SLOT_DEFAULTS][key];
	return error_set(e, -EINVAL, "%s:%u: [defaults] net: there is no profile \"%s\"",
			 c->files[o->file], o->line, c->net);
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
	if (c->first_uid > UID_CEILING - c->uid_count)
		return error_set(e, -EINVAL,
				 "[pool]: first-uid %u and count %u pass the last uid %u",
				 c->first_uid, c->uid_count, UID_CEILING);
	if (c->recycle && c->warm == 0)
		return error_set(
			e, -EINVAL,
			"[pool]: recycle needs slots that it serves: set warm to 1 or more, or "
			"recycle to no");
	if (c->warm >= c->uid_count)
		return error_set(e, -EINVAL,
				 "[pool]: warm %u is not below count %u, and a slot has a uid; "
				 "lower the one or raise the other",
				 c->warm, c->uid_count);
	return 0;
}

int config_check(const struct config *c, struct error *e)
{
	int r = check_pool(c, e);

	for (int i = 0; i < LIMIT_COUNT && r == 0; i++)
		r = check_order((enum limit)i, "defaults", c->defaults.value[i], "ceiling",
				c->ceiling.value[i], e);
	for (uint32_t i = 0; i < c->n_access && r == 0; i++)
		r = check_access(c, &c->access[i], e);
	return r;
}
