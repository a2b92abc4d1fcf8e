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
#include "governor/profile.h"

#define UID_FLOOR      65536u /* all below is somebody's: accounts, nobody, systemd's dynamic users */
#define UID_CEILING    UINT32_C(0xFFFF0000)
#define POOL_MAX       65536u
#define PER_CALLER_MAX 65536u

/* ---- the keys ---- */

enum key_kind { KEY_NUMBER, KEY_LIMIT, KEY_MEMBERS, KEY_SIZE, KEY_PROFILE, KEY_PROFILES };

struct key {
	const char *name;
	enum key_kind kind;
	size_t offset;
	uint32_t min, max; /* KEY_NUMBER */
	enum limit limit;  /* KEY_LIMIT */
};

#define LIMIT_KEY(limit_name, limit_index, type, member)                                           \
	{                                                                                          \
		.name = (limit_name), .kind = KEY_LIMIT, .limit = (limit_index),                   \
		.offset = offsetof(type, member.value) + (limit_index) * sizeof(uint64_t)          \
	}

#define LIMIT_KEYS(type, member)                                                                   \
	LIMIT_KEY("memory", LIMIT_MEMORY, type, member),                                           \
		LIMIT_KEY("swap", LIMIT_SWAP, type, member),                                       \
		LIMIT_KEY("cpu", LIMIT_CPU, type, member),                                         \
		LIMIT_KEY("pids", LIMIT_PIDS, type, member),                                       \
		LIMIT_KEY("time", LIMIT_TIME, type, member),                                       \
		LIMIT_KEY("cpu-time", LIMIT_CPU_TIME, type, member),                               \
		LIMIT_KEY("io-weight", LIMIT_IO_WEIGHT, type, member),                             \
		LIMIT_KEY("io-read", LIMIT_IO_READ, type, member),                                 \
		LIMIT_KEY("io-write", LIMIT_IO_WRITE, type, member)

static const struct key pool_keys[] = {
	{ "first-uid", KEY_NUMBER, offsetof(struct config, first_uid), UID_FLOOR, UID_CEILING, 0 },
	{ "count", KEY_NUMBER, offsetof(struct config, uid_count), 1, POOL_MAX, 0 },
	{ "memory", KEY_SIZE, offsetof(struct config, pool_memory), 0, 0, 0 },
};
static const struct key default_keys[] = {
	LIMIT_KEYS(struct config, defaults),
	{ "net", KEY_PROFILE, offsetof(struct config, net), 0, 0, 0 },
};
static const struct key ceiling_keys[] = { LIMIT_KEYS(struct config, ceiling) };
static const struct key access_keys[] = {
	{ "max-guests", KEY_NUMBER, offsetof(struct access, max_guests), 0, PER_CALLER_MAX, 0 },
	{ "max-connections", KEY_NUMBER, offsetof(struct access, max_connections), 1,
	  PER_CALLER_MAX, 0 },
	LIMIT_KEYS(struct access, ceiling),
	{ "profiles", KEY_PROFILES, offsetof(struct access, profiles), 0, 0, 0 },
	/* only in [access NAME] */
	{ "users", KEY_MEMBERS, offsetof(struct access, users), 0, 0, 0 },
	{ "groups", KEY_MEMBERS, offsetof(struct access, groups), 0, 0, 0 },
};

struct section {
	const char *name;
	const struct key *keys;
	size_t n_keys;
};

enum { SLOT_POOL, SLOT_DEFAULTS, SLOT_CEILING, SLOT_ACCESS };

static const struct section sections[] = {
	[SLOT_POOL] = { "pool", pool_keys, ARRAY_SIZE(pool_keys) },
	[SLOT_DEFAULTS] = { "defaults", default_keys, ARRAY_SIZE(default_keys) },
	[SLOT_CEILING] = { "ceiling", ceiling_keys, ARRAY_SIZE(ceiling_keys) },
	[SLOT_ACCESS] = { "access", access_keys, ARRAY_SIZE(access_keys) },
};

_Static_assert(SLOT_ACCESS == CONFIG_PLAIN_SECTIONS, "the sections in front of \"access\"");
_Static_assert(ARRAY_SIZE(access_keys) <= CONFIG_KEYS_MAX, "each key has an origin");

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
	strcpy(c->net, profiles[PROFILE_ISOLATED].name);
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

static bool valid_access_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= ACCESS_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* The index in config->access of [access NAME], made when it is new; -1 = too many. */
static int find_access(struct config *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_access; i++)
		if (strcmp(c->access[i].name, name) == 0)
			return (int)i;
	if (c->n_access == ACCESS_SECTIONS_MAX)
		return -1;
	access_defaults(&c->access[c->n_access], c->n_access);
	strcpy(c->access[c->n_access].name, name);
	return (int)c->n_access++;
}

struct place {
	const struct section *section;
	uint32_t slot;
	void *base; /* struct config or struct access */
};

static int find_plain(struct parser *p, const char *title, struct place *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (strcmp(sections[i].name, title) == 0) {
			ret->section = &sections[i];
			ret->slot = (uint32_t)i;
			ret->base = i < SLOT_ACCESS ? (void *)p->config : &p->config->access[0];
			return 0;
		}
	return -ENOENT;
}

static int find_section(struct parser *p, const char *title, struct place *ret)
{
	static const char prefix[] = "access ";
	const char *name = title + strlen(prefix);
	char buf[72];
	int i;

	if (find_plain(p, title, ret) == 0)
		return 0;
	if (strncmp(title, prefix, strlen(prefix)) != 0 || !valid_access_name(name))
		return error_set(&p->error, -EINVAL,
				 "[%s]: there is no such section; see harpe-gov.conf(5)",
				 shown(title, buf));
	i = find_access(p->config, name);
	if (i < 0)
		return error_set(&p->error, -E2BIG, "[%s]: more than %d access sections", title,
				 ACCESS_SECTIONS_MAX - 1);
	ret->section = &sections[SLOT_ACCESS];
	ret->slot = SLOT_ACCESS + (uint32_t)i;
	ret->base = &p->config->access[i];
	return 0;
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

static int check_profile(struct parser *p, const char *name)
{
	char buf[72];

	return profile_find(name) ? 0
				  : error_set(&p->error, -EINVAL,
					      "\"%s\" is no network profile; see harpe-gov.conf(5)",
					      shown(name, buf));
}

static int set_profile(struct parser *p, char *to, const char *value)
{
	int r = check_profile(p, value);

	if (r == 0)
		strcpy(to, value);
	return r;
}

static int set_profiles(struct parser *p, struct members *m, const char *value)
{
	int r = set_members(p, m, value);

	for (uint32_t i = 0; i < m->n && r == 0; i++)
		r = check_profile(p, m->name[i]);
	return r;
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
		return set_profiles(p, to, value);
	case KEY_LIMIT:
		break;
	}
	r = limit_parse(key->limit, value, to, &why);
	if (r < 0) /* without the name in front, which is said already */
		error_set(&p->error, r, "%s", why.text + strlen(key->name) + 2);
	return r;
}

/* ---- lines ---- */

static int find_key(const struct place *place, const char *name)
{
	for (size_t i = 0; i < place->section->n_keys; i++)
		if (strcmp(place->section->keys[i].name, name) == 0 &&
		    (place->section->keys[i].kind != KEY_MEMBERS || place->slot > SLOT_ACCESS))
			return (int)i;
	return -1;
}

static int set_key(struct parser *p, const char *title, const char *name, const char *value)
{
	struct place place = { .section = sections };
	char buf[72];
	int key, r = find_section(p, title, &place);

	if (r < 0)
		return r;
	key = find_key(&place, name);
	if (key < 0)
		return error_set(&p->error, -EINVAL,
				 "[%s] %s: there is no such key; see harpe-gov.conf(5)", title,
				 shown(name, buf));
	if (p->seen[place.slot] & 1u << key)
		return error_set(&p->error, -EINVAL, "[%s] %s: is set twice; keep one line", title,
				 name);
	p->seen[place.slot] |= 1u << key;
	p->config->origin[place.slot][key] =
		(struct origin){ (uint8_t)p->config->n_files, p->line };
	r = set_value(p, &place.section->keys[key],
		      (char *)place.base + place.section->keys[key].offset, value);
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
	char title[ACCESS_NAME_MAX + 32];
	struct place place = { .section = sections };
	size_t len = strcspn(text, "]\n");

	if (text[len] != ']')
		return;
	snprintf(title, sizeof(title), "%.*s", (int)len, text);
	p->r = find_section(p, title, &place);
	if (p->r < 0)
		blame_line(p);
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

bool config_allows_profile(const struct access *a, const char *name)
{
	for (uint32_t i = 0; i < a->profiles.n; i++)
		if (strcmp(a->profiles.name[i], name) == 0)
			return true;
	return a->profiles.n == 0;
}

static int check_access(const struct config *c, const struct access *a, struct error *e)
{
	char title[ACCESS_NAME_MAX + 16];
	int r = 0;

	snprintf(title, sizeof(title), "access%s%s", a->name[0] ? " " : "", a->name);
	if (a != c->access && a->users.n + a->groups.n == 0)
		return error_set(e, -EINVAL, "[%s]: names no users and no groups", title);
	if (!config_allows_profile(a, c->net))
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
	r = config_check(p->config, e);
	return r < 0 ? error_wrap(e, r, "%s", path) : 0;
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
	return r;
}

/* ---- where values come from ---- */

static const char *origin_text(const struct config *c, const struct origin *o, char *buf,
			       size_t size)
{
	if (o->file)
		snprintf(buf, size, "%s:%u", c->files[o->file], o->line);
	else
		snprintf(buf, size, "%s", LIMIT_BUILT_IN);
	return buf;
}

static const char *limit_origin(const struct config *c, uint32_t slot, enum limit limit, char *buf,
				size_t size)
{
	const struct section *section = &sections[slot < SLOT_ACCESS ? slot : SLOT_ACCESS];
	size_t key = 0;

	while (section->keys[key].kind != KEY_LIMIT || section->keys[key].limit != limit)
		key++;
	return origin_text(c, &c->origin[slot][key], buf, size);
}

const char *config_default_origin(const struct config *c, enum limit limit, char *buf, size_t size)
{
	return limit_origin(c, SLOT_DEFAULTS, limit, buf, size);
}

const char *config_ceiling_origin(const struct config *c, const struct access *a, enum limit limit,
				  char *buf, size_t size)
{
	bool own = a->ceiling.value[limit] != LIMIT_UNSET;

	return limit_origin(c, own ? a->section : SLOT_CEILING, limit, buf, size);
}

/* ---- showing ---- */

/* For people where that says it exactly, else in the smallest unit. */
static void print_exact(enum unit_kind kind, uint64_t n, FILE *to)
{
	char text[64];
	uint64_t back;

	unit_format(kind, n, text, sizeof(text));
	if (unit_parse(kind, text, &back) == 0 && back == n)
		fputs(text, to);
	else
		fprintf(to, "%" PRIu64 "%s", n, kind == UNIT_DURATION ? "us" : "");
}

static void print_value(const struct key *key, const void *at, FILE *to)
{
	const struct members *m = at;

	switch (key->kind) {
	case KEY_PROFILE:
		fputs(at, to);
		break;
	case KEY_MEMBERS:
	case KEY_PROFILES:
		for (uint32_t i = 0; i < m->n; i++)
			fprintf(to, "%s%s", i ? " " : "", m->name[i]);
		break;
	case KEY_NUMBER:
		fprintf(to, "%" PRIu32, *(const uint32_t *)at);
		break;
	case KEY_SIZE:
		print_exact(UNIT_SIZE, *(const uint64_t *)at, to);
		break;
	case KEY_LIMIT:
		print_exact(limit_table[key->limit].unit, *(const uint64_t *)at, to);
		break;
	}
}

static bool is_unset(const struct key *key, const void *at)
{
	if (key->kind == KEY_MEMBERS || key->kind == KEY_PROFILES)
		return ((const struct members *)at)->n == 0;
	return key->kind == KEY_LIMIT && *(const uint64_t *)at == LIMIT_UNSET;
}

static void show_section(const struct config *c, const struct place *place, const char *title,
			 FILE *to)
{
	char from[300];

	fprintf(to, "[%s]\n", title);
	for (size_t i = 0; i < place->section->n_keys; i++) {
		const struct key *key = &place->section->keys[i];
		const void *at = (const char *)place->base + key->offset;

		if (is_unset(key, at))
			continue;
		fprintf(to, "; %s\n",
			origin_text(c, &c->origin[place->slot][i], from, sizeof(from)));
		fprintf(to, "%s = ", key->name);
		print_value(key, at, to);
		fputc('\n', to);
	}
}

int config_show(const char *path, FILE *to, struct error *e)
{
	_cleanup_free_ struct config *c = calloc(1, sizeof(*c));
	int r = c ? config_load(path, c, e) : error_errno(e, -ENOMEM, "%s", path);

	if (r < 0)
		return r;
	for (uint32_t slot = 0; slot < SLOT_ACCESS + c->n_access; slot++) {
		char title[ACCESS_NAME_MAX + 16];
		struct place place = {
			.section = &sections[slot < SLOT_ACCESS ? slot : SLOT_ACCESS],
			.slot = slot,
			.base = slot < SLOT_ACCESS ? (void *)c : &c->access[slot - SLOT_ACCESS],
		};

		snprintf(title, sizeof(title), "%s%s%s", place.section->name,
			 slot > SLOT_ACCESS ? " " : "",
			 slot > SLOT_ACCESS ? c->access[slot - SLOT_ACCESS].name : "");
		fprintf(to, "%s", slot ? "\n" : "");
		show_section(c, &place, title, to);
	}
	return 0;
}
