/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/daemon/config_values.h"

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
	c->access_from[c->n_access] = (struct origin){ (uint8_t)c->n_files, p->line };
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

	if (!title[0])
		return error_set(&p->error, -EINVAL, "a key in front of the first [section]");
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
	const struct value_place place = { p->path, (uint8_t)p->config->n_files, p->line,
					   &p->error };
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
	r = config_set_value(&place, key, (char *)config_base(p->config, slot) + key->offset,
			     value);
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

/* ---- files ---- */

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
	return r < 0 ? r : config_check(p->config, e);
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
