/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/config.h"

#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/config_keys.h"

struct parser {
	struct config *config;
	FILE *file;
	const char *path;
	uint32_t line;
	uint32_t seen[CONFIG_SECTIONS_MAX]; /* in this file */
	struct error error;		    /* the first */
	int r;
	uint32_t bad_line; /* where it is */
};

static void access_defaults(struct access *a, uint32_t index)
{
	*a = (struct access){
		.max_guests = 64,
		.max_connections = 128,
		.section = SLOT_ACCESS + index,
	};
	limits_clear(&a->ceiling);
}

void config_defaults(struct config *c)
{
	*c = (struct config){
		.first_uid = 90000,
		.uid_count = 256,
		.pool_memory = LIMIT_INFINITY,
		.n_access = 1,
	};
	c->n_profiles = PROFILE_BUILT_IN;
	memcpy(c->profiles, built_in_profiles, sizeof(built_in_profiles));
	strcpy(c->net, c->profiles[PROFILE_ISOLATED].name);
	access_defaults(&c->access[0], 0);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		c->defaults.value[i] = limit_table[i].standard;
		c->ceiling.value[i] = limit_table[i].ceiling;
	}
}

/* ---- sections ---- */

/* For messages: what is in a file may be anything. */
static const char *shown(const char *text, char buf[72])
{
	return text_escape(text, buf, 72);
}

static int valid_access_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= ACCESS_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* The index in config->access of [access NAME], made when it is new. */
static int find_access(struct parser *p, const char *title, const char *name)
{
	struct config *c = p->config;

	for (uint32_t i = 0; i < c->n_access; i++)
		if (strcmp(c->access[i].name, name) == 0)
			return (int)i;
	if (c->n_access == ACCESS_SECTIONS_MAX)
		return error_set(&p->error, -E2BIG, "[%s]: more than %d access sections", title,
				 ACCESS_SECTIONS_MAX - 1);
	access_defaults(&c->access[c->n_access], c->n_access);
	strcpy(c->access[c->n_access].name, name);
	return (int)c->n_access++;
}

/* The same for [profile NAME]. */
static int find_profile(struct parser *p, const char *title, const char *name)
{
	struct config *c = p->config;

	for (uint32_t i = 0; i < c->n_profiles; i++) {
		if (strcmp(c->profiles[i].name, name) != 0)
			continue;
		if (c->profiles[i].built_in)
			return error_set(&p->error, -EINVAL,
					 "[%s]: is built in; choose another name", title);
		return (int)i;
	}
	if (c->n_profiles == CONFIG_PROFILES_MAX)
		return error_set(&p->error, -E2BIG, "[%s]: more than %d profiles", title,
				 CONFIG_PROFILES_MAX - PROFILE_BUILT_IN);
	profile_init(&c->profiles[c->n_profiles], name);
	return (int)c->n_profiles++;
}

/* Sections that have a name of their own behind this word. */
static const struct {
	const char *word;
	uint32_t slot;
	int (*valid)(const char *name);
	int (*find)(struct parser *p, const char *title, const char *name);
} named[] = {
	{ "access ", SLOT_ACCESS, valid_access_name, find_access },
	{ "profile ", SLOT_PROFILE, profile_name_valid, find_profile },
};

/* The slot of the section, or a negative errno with a sentence. */
static int find_section(struct parser *p, const char *title)
{
	char buf[72];

	for (int slot = 0; slot <= SLOT_ACCESS; slot++)
		if (strcmp(config_section((uint32_t)slot)->name, title) == 0)
			return slot;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		size_t len = strlen(named[i].word);
		int index;

		if (strncmp(title, named[i].word, len) != 0 || !named[i].valid(title + len))
			continue;
		index = named[i].find(p, title, title + len);
		return index < 0 ? index : (int)named[i].slot + index;
	}
	return error_set(&p->error, -EINVAL,
			 "[%s]: there is no such section; see harpe-gov.conf(5)",
			 shown(title, buf));
}

/* ---- values ---- */

static int set_number(struct parser *p, const struct key *key, uint32_t *to, const char *value)
{
	uint64_t n = 0;
	int r = strcmp(value, "0") == 0 ? 0 : unit_parse(UNIT_COUNT, value, &n);
	char buf[72];

	if (r < 0 || n < key->min || n > key->max)
		return error_set(&p->error, -EINVAL, "\"%s\" is not a number from %u to %u",
				 shown(value, buf), key->min, key->max);
	*to = (uint32_t)n;
	return 0;
}

static int set_size(struct parser *p, uint64_t *to, const char *value)
{
	char buf[72];

	if (unit_parse(UNIT_SIZE, value, to) < 0)
		return error_set(&p->error, -EINVAL, "\"%s\" is not %s", shown(value, buf),
				 unit_expected(UNIT_SIZE));
	return 0;
}

static int add_member(struct parser *p, struct members *m, const char *name, size_t len)
{
	if (m->n == ACCESS_MEMBERS_MAX || len > ACCESS_NAME_MAX)
		return error_set(&p->error, -E2BIG,
				 "more than %d names, or one longer than %d characters",
				 ACCESS_MEMBERS_MAX, ACCESS_NAME_MAX);
	memcpy(m->name[m->n], name, len);
	m->name[m->n][len] = '\0';
	m->n++;
	return 0;
}

/* Names, separated by blanks. Users and groups are looked up later, by who may ask for them. */
static int set_members(struct parser *p, struct members *m, const char *value)
{
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
	return m->n > 0 ? 0 : error_set(&p->error, -EINVAL, "names nothing");
}

/* Which profiles there are is known when all has been read: check_profiles(). */
static int set_profile(struct parser *p, char *to, const char *value)
{
	char buf[72];

	if (!profile_name_valid(value))
		return error_set(&p->error, -EINVAL,
				 "\"%s\" is no profile's name: 1 to %d of a-z 0-9",
				 shown(value, buf), PROFILE_NAME_MAX);
	strcpy(to, value);
	return 0;
}

static int add_path(struct parser *p, enum key_kind kind, struct view_paths *to, const char *path)
{
	const char *own = kind == KEY_SHOW ? view_own_place(path) : NULL;
	char buf[72];

	if (to->n == VIEW_PATHS_MAX)
		return error_set(&p->error, -E2BIG, "more than %d paths", VIEW_PATHS_MAX);
	if (!path_is_plain(path))
		return error_set(&p->error, -EINVAL,
				 "\"%s\" is no absolute path without empty, \".\" and \"..\" parts",
				 shown(path, buf));
	if (own)
		return error_set(&p->error, -EINVAL, "%s: every guest has a %s of its own",
				 shown(path, buf), own);
	strcpy(to->path[to->n++], path);
	return 0;
}

/* Separated by blanks. */
static int set_paths(struct parser *p, enum key_kind kind, struct view_paths *to, const char *value)
{
	to->n = 0;
	for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
		size_t len = strcspn(at, " \t");
		char path[VIEW_PATH_MAX];
		int r;

		if (len >= sizeof(path))
			return error_set(&p->error, -E2BIG, "a path of more than %d bytes",
					 VIEW_PATH_MAX - 1);
		snprintf(path, sizeof(path), "%.*s", (int)len, at);
		r = add_path(p, kind, to, path);
		if (r < 0)
			return r;
		at += len;
	}
	return to->n > 0 ? 0 : error_set(&p->error, -EINVAL, "names nothing");
}

static int set_choice(struct parser *p, const struct key *key, uint32_t *to, const char *value)
{
	char buf[72], list[64] = "";

	for (uint32_t i = 0; key->choices[i]; i++) {
		if (strcmp(key->choices[i], value) == 0) {
			*to = i;
			return 0;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? " or " : "",
			 key->choices[i]);
	}
	return error_set(&p->error, -EINVAL, "\"%s\" is not %s", shown(value, buf), list);
}

static int add_entry(struct parser *p, struct profile *profile, const char *value)
{
	struct origin from = { (uint8_t)p->config->n_files, p->line };
	struct allow entry;
	int r = allow_parse(value, &entry, &p->error);

	if (r < 0)
		return r;
	r = profile_add(profile, &entry, from);
	return r == -E2BIG ? error_set(&p->error, r, "more than %d lines", FIREWALL_ENTRIES_MAX)
	       : r < 0	   ? error_errno(&p->error, r, "the list cannot be kept")
			   : 0;
}

static int set_value(struct parser *p, const struct key *key, void *to, const char *value)
{
	struct error why;
	int r;

	switch (key->kind) {
	case KEY_NUMBER:
		return set_number(p, key, to, value);
	case KEY_SIZE:
		return set_size(p, to, value);
	case KEY_MEMBERS:
		return set_members(p, to, value);
	case KEY_PROFILE:
		return set_profile(p, to, value);
	case KEY_PROFILES:
		return set_members(p, to, value);
	case KEY_CHOICE:
		return set_choice(p, key, to, value);
	case KEY_ALLOW:
		return add_entry(p, to, value);
	case KEY_SHOW:
	case KEY_HIDE:
		return set_paths(p, key->kind, to, value);
	case KEY_LIMIT:
		break;
	}
	r = limit_parse(key->limit, value, to, &why);
	if (r < 0) /* without the name in front, which is said already */
		error_set(&p->error, r, "%s", why.text + strlen(key->name) + 2);
	return r;
}

/* ---- lines ---- */

static int find_key(uint32_t slot, const char *name)
{
	const struct section *section = config_section(slot);

	for (size_t i = 0; i < section->n_keys; i++)
		if (strcmp(section->keys[i].name, name) == 0 &&
		    !(section->keys[i].named_only && slot == SLOT_ACCESS))
			return (int)i;
	return -1;
}

static int set_key(struct parser *p, const char *title, const char *name, const char *value)
{
	const struct key *key;
	char buf[72];
	int index, r = find_section(p, title);
	uint32_t slot = (uint32_t)r;

	if (r < 0)
		return r;
	index = find_key(slot, name);
	if (index < 0)
		return error_set(&p->error, -EINVAL,
				 "[%s] %s: there is no such key; see harpe-gov.conf(5)", title,
				 shown(name, buf));
	key = &config_section(slot)->keys[index];
	if (p->seen[slot] & 1u << index && key->kind != KEY_ALLOW)
		return error_set(&p->error, -EINVAL, "[%s] %s: is set twice; keep one line", title,
				 name);
	p->seen[slot] |= 1u << index;
	p->config->origin[slot][index] = (struct origin){ (uint8_t)p->config->n_files, p->line };
	r = set_value(p, key, (char *)config_base(p->config, slot) + key->offset, value);
	return r < 0 ? error_wrap(&p->error, r, "[%s] %s", title, name) : 0;
}

/* The line that is being read is in error, as p->error says. */
static void blame_line(struct parser *p)
{
	p->bad_line = p->line;
	error_wrap(&p->error, p->r, "%s:%u", p->path, p->line);
}

/* libinih's handler: 1 = go on, 0 = error in this line. Only the first error counts. */
static int on_key(void *userdata, const char *title, const char *name, const char *value)
{
	struct parser *p = userdata;

	if (p->r < 0)
		return 0;
	p->r = set_key(p, title, name, value);
	if (p->r < 0)
		blame_line(p);
	return p->r == 0;
}

/* libinih says nothing of a section without keys: a misspelt one would go unnoticed. One without
 * its bracket is a line that libinih refuses. */
static void check_title(struct parser *p, const char *text)
{
	char title[TITLE_MAX];
	size_t len = strcspn(text, "]\n");

	if (text[len] != ']')
		return;
	snprintf(title, sizeof(title), "%.*s", (int)len, text);
	p->r = find_section(p, title);
	if (p->r < 0)
		blame_line(p);
	else
		p->r = 0;
}

/* libinih's reader, which counts the lines and refuses what would be cut. */
static char *on_line(char *buf, int size, void *userdata)
{
	struct parser *p = userdata;
	char *line = fgets(buf, size, p->file);

	if (!line)
		return NULL;
	p->line++;
	if (line[0] == '[' && p->r == 0)
		check_title(p, line + 1);
	if (!strchr(line, '\n') && !feof(p->file) && p->r == 0) {
		p->r = error_set(&p->error, -E2BIG, "the line is too long, or has a NUL byte");
		blame_line(p);
	}
	return line;
}

static int read_file(struct parser *p, FILE *file, const char *path, struct error *e)
{
	struct config *c = p->config;
	int bad;

	p->file = file;
	p->path = path;
	p->line = 0;
	memset(p->seen, 0, sizeof(p->seen));
	if (c->n_files + 1 >= CONFIG_FILES_MAX)
		return error_set(e, -E2BIG, "%s: more than %d files", path, CONFIG_FILES_MAX - 1);
	snprintf(c->files[++c->n_files], sizeof(c->files[0]), "%s", path);
	bad = ini_parse_stream(on_line, p, on_key, p);
	if (p->r < 0 && (bad <= 0 || p->bad_line <= (uint32_t)bad))
		return error_set(e, p->r, "%s", p->error.text);
	if (ferror(file) || bad < 0)
		return error_set(e, -EIO, "%s: cannot be read", path);
	if (bad > 0) /* libinih goes on behind it, and what it finds there may be a consequence */
		return error_set(e, -EINVAL, "%s:%d: is neither \"[section]\" nor \"key = value\"",
				 path, bad);
	return 0;
}

int config_read(FILE *file, const char *path, struct config *c, struct error *e)
{
	_cleanup_free_ struct parser *p = calloc(1, sizeof(*p));

	if (!p)
		return error_errno(e, -ENOMEM, "%s", path);
	p->config = c;
	return read_file(p, file, path, e);
}

/* ---- the whole ---- */

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

int config_check(const struct config *c, struct error *e)
{
	int r = 0;

	if (c->first_uid > UID_CEILING - c->uid_count)
		return error_set(e, -EINVAL,
				 "[pool]: first-uid %u and count %u pass the last uid %u",
				 c->first_uid, c->uid_count, UID_CEILING);
	for (int i = 0; i < LIMIT_COUNT && r == 0; i++)
		r = check_order((enum limit)i, "defaults", c->defaults.value[i], "ceiling",
				c->ceiling.value[i], e);
	for (uint32_t i = 0; i < c->n_access && r == 0; i++)
		r = check_access(c, &c->access[i], e);
	return r;
}

static int open_and_read(struct parser *p, const char *path, struct error *e)
{
	_cleanup_(close_file) FILE *file = fopen(path, "re");

	if (!file && errno == ENOENT)
		return 0;
	if (!file)
		return error_errno(e, -errno, "%s: cannot be opened", path);
	return read_file(p, file, path, e);
}

static int is_drop_in(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static int read_drop_ins(struct parser *p, const char *path, struct error *e)
{
	char name[512];
	struct dirent **entries = NULL;
	int n, r = 0;

	snprintf(name, sizeof(name), "%s.d", path);
	n = scandir(name, &entries, is_drop_in, alphasort);
	if (n < 0 && errno != ENOENT)
		return error_errno(e, -errno, "%s: cannot be read", name);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s.d/%s", path, entries[i]->d_name);
		if (r == 0)
			r = open_and_read(p, name, e);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int read_all(struct parser *p, const char *path, struct error *e)
{
	int r;

	config_defaults(p->config);
	r = open_and_read(p, path, e);
	if (r == 0)
		r = read_drop_ins(p, path, e);
	if (r < 0)
		return r;
	r = config_check_profiles(p->config, e);
	if (r < 0)
		return r;
	r = config_check(p->config, e);
	return r < 0 ? error_wrap(e, r, "%s", path) : 0;
}

void config_free(struct config *c)
{
	for (uint32_t i = PROFILE_BUILT_IN; i < c->n_profiles; i++)
		profile_free(&c->profiles[i]);
	c->n_profiles = 0;
}

int config_load(const char *path, struct config *ret, struct error *e)
{
	_cleanup_free_ struct parser *p = calloc(1, sizeof(*p));
	_cleanup_free_ struct config *draft = calloc(1, sizeof(*draft));
	int r;

	if (!p || !draft)
		return error_errno(e, -ENOMEM, "%s", path);
	p->config = draft;
	r = read_all(p, path, e);
	if (r == 0)
		*ret = *draft;
	else
		config_free(draft);
	return r;
}
