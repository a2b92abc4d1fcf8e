/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/config_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

/* For messages: what is in a file may be anything. */
static const char *shown(const char *text, char buf[72])
{
	return text_escape(text, buf, 72);
}

static int set_number(const struct value_place *p, const struct key *key, void *to,
		      const char *value)
{
	uint32_t *number = to;
	uint64_t n = 0;
	int r = strcmp(value, "0") == 0 ? 0 : unit_parse(UNIT_COUNT, value, &n);
	char buf[72];

	if (r < 0 || n < key->min || n > key->max)
		return error_set(p->error, -EINVAL, "\"%s\" is not a number from %u to %u",
				 shown(value, buf), key->min, key->max);
	*number = (uint32_t)n;
	return 0;
}

static int set_size(const struct value_place *p, const struct key *key, void *to, const char *value)
{
	uint64_t *size = to;
	char buf[72], least[32];

	if (unit_parse(UNIT_SIZE, value, size) < 0)
		return error_set(p->error, -EINVAL, "\"%s\" is not %s", shown(value, buf),
				 unit_expected(UNIT_SIZE));
	if (*size < key->min)
		return error_set(p->error, -EINVAL, "\"%s\" is too little: %s is the least",
				 shown(value, buf),
				 unit_format(UNIT_SIZE, key->min, least, sizeof(least)));
	return 0;
}

static int add_member(const struct value_place *p, struct members *m, const char *name, size_t len)
{
	if (m->n == ACCESS_MEMBERS_MAX || len > ACCESS_NAME_MAX)
		return error_set(p->error, -E2BIG,
				 "more than %d names, or one longer than %d characters",
				 ACCESS_MEMBERS_MAX, ACCESS_NAME_MAX);
	memcpy(m->name[m->n], name, len);
	m->name[m->n][len] = '\0';
	m->n++;
	return 0;
}

/* Names, separated by blanks. Users and groups are looked up later, by who may ask for them. */
static int set_members(const struct value_place *p, const struct key *key, void *to,
		       const char *value)
{
	struct members *m = to;

	(void)key;
	m->n = 0;
	snprintf(m->from, sizeof(m->from), "%s:%u", p->path, p->line);
	for (const char *at = value + strspn(value, " \t"); *at;) {
		size_t len = strcspn(at, " \t");
		int r = add_member(p, m, at, len);

		if (r < 0)
			return r;
		at += len;
		at += strspn(at, " \t");
	}
	return m->n > 0 ? 0 : error_set(p->error, -EINVAL, "names nothing");
}

/* Which profiles there are is known when all has been read: check_profiles(). */
static int set_profile(const struct value_place *p, const struct key *key, void *to,
		       const char *value)
{
	(void)key;
	char buf[72];

	if (!profile_name_valid(value))
		return error_set(p->error, -EINVAL,
				 "\"%s\" is no profile's name: 1 to %d of a-z 0-9",
				 shown(value, buf), PROFILE_NAME_MAX);
	strcpy(to, value);
	return 0;
}

static int add_path(const struct value_place *p, struct view_paths *to, const char *path)
{
	const char *own = view_own_place(path);
	char buf[72];

	if (to->n == VIEW_PATHS_MAX)
		return error_set(p->error, -E2BIG, "more than %d paths", VIEW_PATHS_MAX);
	if (!path_is_plain(path))
		return error_set(p->error, -EINVAL,
				 "\"%s\" is no absolute path without empty, \".\" and \"..\" parts",
				 shown(path, buf));
	if (own)
		return error_set(p->error, -EINVAL, "%s: every guest has a %s of its own",
				 shown(path, buf), own);
	strcpy(to->path[to->n++], path);
	return 0;
}

/* Separated by blanks. */
static int set_paths(const struct value_place *p, const struct key *key, void *to,
		     const char *value)
{
	struct view_paths *paths = to;

	(void)key;
	paths->n = 0;
	for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
		size_t len = strcspn(at, " \t");
		char path[VIEW_PATH_MAX];
		int r;

		if (len >= sizeof(path))
			return error_set(p->error, -E2BIG, "a path of more than %d bytes",
					 VIEW_PATH_MAX - 1);
		snprintf(path, sizeof(path), "%.*s", (int)len, at);
		r = add_path(p, paths, path);
		if (r < 0)
			return r;
		at += len;
	}
	return paths->n > 0 ? 0 : error_set(p->error, -EINVAL, "names nothing");
}

static int set_choice(const struct value_place *p, const struct key *key, void *to,
		      const char *value)
{
	char buf[72], list[64] = "";

	for (uint32_t i = 0; key->choices[i]; i++) {
		if (strcmp(key->choices[i], value) == 0) {
			*(uint32_t *)to = i;
			return 0;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? " or " : "",
			 key->choices[i]);
	}
	return error_set(p->error, -EINVAL, "\"%s\" is not %s", shown(value, buf), list);
}

static int add_entry(const struct value_place *p, const struct key *key, void *to,
		     const char *value)
{
	struct origin from = { p->file, p->line };
	struct allow entry;
	int r;

	(void)key;
	r = allow_parse(value, &entry, p->error);
	if (r < 0)
		return r;
	r = profile_add(to, &entry, from);
	return r == -E2BIG ? error_set(p->error, r, "more than %d lines", FIREWALL_ENTRIES_MAX)
	       : r < 0	   ? error_errno(p->error, r, "the list cannot be kept")
			   : 0;
}

static int set_limit(const struct value_place *p, const struct key *key, void *to,
		     const char *value)
{
	struct error why;
	int r = limit_parse(key->limit, value, to, &why);

	if (r < 0) /* without the name in front, which is said already */
		error_set(p->error, r, "%s", why.text + strlen(key->name) + 2);
	return r;
}

static int (*const setters[])(const struct value_place *p, const struct key *key, void *to,
			      const char *value) = {
	[KEY_NUMBER] = set_number,    [KEY_SIZE] = set_size,	   [KEY_LIMIT] = set_limit,
	[KEY_CHOICE] = set_choice,    [KEY_MEMBERS] = set_members, [KEY_PROFILE] = set_profile,
	[KEY_PROFILES] = set_members, [KEY_ALLOW] = add_entry,	   [KEY_PATHS] = set_paths,
};

int config_set_value(const struct value_place *p, const struct key *key, void *to,
		     const char *value)
{
	return setters[key->kind](p, key, to, value);
}
