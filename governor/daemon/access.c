/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"

static int user_id(const char *name, uint32_t *ret)
{
	const struct passwd *entry = getpwnam(name);

	if (entry)
		*ret = entry->pw_uid;
	return entry ? 0 : -ENOENT;
}

static int group_id(const char *name, uint32_t *ret)
{
	const struct group *entry = getgrnam(name);

	if (entry)
		*ret = entry->gr_gid;
	return entry ? 0 : -ENOENT;
}

static int resolve(struct members *m, const char *section, const char *kind,
		   int (*look_up)(const char *, uint32_t *), struct error *e)
{
	char shown[4 * ACCESS_NAME_MAX + 1];

	for (uint32_t i = 0; i < m->n; i++) {
		uint64_t number;

		if (strspn(m->name[i], "0123456789") == strlen(m->name[i]) &&
		    parse_u64_prefix(m->name[i], &number) == 0 && number < UINT32_MAX)
			m->id[i] = (uint32_t)number;
		else if (look_up(m->name[i], &m->id[i]) < 0)
			return error_set(e, -ENOENT,
					 "%s: [access %s] %ss: there is no %s \"%s\" on this host",
					 m->from, section, kind, kind,
					 text_escape(m->name[i], shown, sizeof(shown)));
	}
	return 0;
}

int access_resolve(struct config *c, struct error *e)
{
	int r = 0;

	for (uint32_t i = 1; i < c->n_access && r == 0; i++) {
		struct access *a = &c->access[i];

		r = resolve(&a->users, a->name, "user", user_id, e);
		if (r == 0)
			r = resolve(&a->groups, a->name, "group", group_id, e);
	}
	return r;
}

static bool has(const struct members *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->id[i] == id)
			return true;
	return false;
}

static bool fits(const struct access *a, const struct caller *caller)
{
	if (has(&a->users, caller->uid) || has(&a->groups, caller->gid))
		return true;
	for (uint32_t i = 0; i < caller->n_groups; i++)
		if (has(&a->groups, caller->groups[i]))
			return true;
	return false;
}

const struct access *access_find(const struct config *c, const struct caller *caller)
{
	for (uint32_t i = 1; i < c->n_access; i++)
		if (fits(&c->access[i], caller))
			return &c->access[i];
	return &c->access[0];
}

uint64_t access_ceiling(const struct config *c, const struct access *a, enum limit limit)
{
	return a->ceiling.value[limit] != LIMIT_UNSET ? a->ceiling.value[limit]
						      : c->ceiling.value[limit];
}
