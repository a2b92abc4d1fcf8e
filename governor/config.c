/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/config.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#include "common/fd.h"

#define UID_FLOOR      1000u /* never hand out a system account's uid */
#define UID_CEILING    UINT32_C(0xFFFF0000)
#define POOL_MAX       65536u
#define PER_CALLER_MAX 65536u

struct number_key {
	const char *section, *name;
	size_t offset;
	uint32_t min, max;
};

static const struct number_key number_keys[] = {
	{ "pool", "first-uid", offsetof(struct config, first_uid), UID_FLOOR, UID_CEILING },
	{ "pool", "count", offsetof(struct config, uid_count), 1, POOL_MAX },
	{ "access", "max-guests", offsetof(struct config, max_guests), 1, PER_CALLER_MAX },
	{ "access", "max-connections", offsetof(struct config, max_connections), 1,
	  PER_CALLER_MAX },
};

static const struct limits_section {
	const char *name;
	size_t offset;
} limits_sections[] = {
	{ "defaults", offsetof(struct config, defaults) },
	{ "ceiling", offsetof(struct config, ceiling) },
};

#define KEYS_MAX (ARRAY_SIZE(number_keys) + ARRAY_SIZE(limits_sections) * LIMIT_COUNT)

struct parser {
	struct config *config;
	uint8_t seen[KEYS_MAX];
	struct error error;
	int r; /* of the first error */
};

static const uint64_t built_in[LIMIT_COUNT][2] = {
	/* default, ceiling */
	[LIMIT_MEMORY] = { UINT64_C(512) << 20, UINT64_C(4) << 30 },
	[LIMIT_SWAP] = { 0, 0 },
	[LIMIT_CPU] = { USEC_PER_SEC, 4 * USEC_PER_SEC },
	[LIMIT_PIDS] = { 128, 1024 },
	[LIMIT_TIME] = { 600 * USEC_PER_SEC, 86400 * USEC_PER_SEC },
	[LIMIT_CPU_TIME] = { LIMIT_INFINITY, LIMIT_INFINITY },
};

void config_defaults(struct config *c)
{
	*c = (struct config){
		.first_uid = 90000,
		.uid_count = 256,
		.max_guests = 64,
		.max_connections = 128,
	};
	for (int i = 0; i < LIMIT_COUNT; i++) {
		c->defaults.value[i] = built_in[i][0];
		c->ceiling.value[i] = built_in[i][1];
	}
}

/* The key's index in seen[], with where its value goes; -1 when there is no such key. */
static int find_number(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(number_keys); i++)
		if (strcmp(number_keys[i].section, section) == 0 &&
		    strcmp(number_keys[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int find_limit(const char *section, const char *name, size_t *ret_section,
		      enum limit *ret_limit)
{
	for (size_t s = 0; s < ARRAY_SIZE(limits_sections); s++) {
		if (strcmp(limits_sections[s].name, section) != 0)
			continue;
		for (int i = 0; i < LIMIT_COUNT; i++)
			if (strcmp(limit_table[i].name, name) == 0) {
				*ret_section = s;
				*ret_limit = (enum limit)i;
				return (int)(ARRAY_SIZE(number_keys) + s * LIMIT_COUNT) + i;
			}
	}
	return -1;
}

static int set_number(struct parser *p, const struct number_key *key, const char *value)
{
	uint64_t n;

	if (unit_parse(UNIT_COUNT, value, &n) < 0 || n < key->min || n > key->max)
		return error_set(&p->error, -EINVAL,
				 "[%s] %s: \"%.40s\" is not a number from %u to %u", key->section,
				 key->name, value, key->min, key->max);
	*(uint32_t *)(void *)((char *)p->config + key->offset) = (uint32_t)n;
	return 0;
}

static int set_limit(struct parser *p, size_t section, enum limit limit, const char *value)
{
	const struct limits_section *s = &limits_sections[section];
	struct limits *limits = (struct limits *)(void *)((char *)p->config + s->offset);
	uint64_t n;
	int r;

	r = limit_parse(limit, value, &n, &p->error);
	if (r < 0)
		return error_wrap(&p->error, r, "[%s]", s->name);
	limits->value[limit] = n;
	return 0;
}

static int set_key(struct parser *p, const char *section, const char *name, const char *value)
{
	enum limit limit = 0;
	size_t s = 0;
	int key = find_number(section, name);
	int is_number = key >= 0;

	if (!is_number)
		key = find_limit(section, name, &s, &limit);
	if (key < 0)
		return error_set(&p->error, -EINVAL,
				 "[%.40s] %.40s: there is no such key; see harpe-gov.conf(5)",
				 section, name);
	if (p->seen[key]++)
		return error_set(&p->error, -EINVAL, "[%s] %s: is set twice; keep one line",
				 section, name);
	return is_number ? set_number(p, &number_keys[key], value) : set_limit(p, s, limit, value);
}

/* libinih's handler: 1 = go on, 0 = error in this line. Only the first error counts. */
static int on_key(void *userdata, const char *section, const char *name, const char *value)
{
	struct parser *p = userdata;

	if (p->r < 0)
		return 0;
	p->r = set_key(p, section, name, value);
	return p->r == 0;
}

static int check_contradictions(const struct config *c, struct error *e)
{
	if (c->first_uid > UID_CEILING - c->uid_count)
		return error_set(e, -EINVAL,
				 "[pool]: first-uid %u and count %u pass the last uid %u",
				 c->first_uid, c->uid_count, UID_CEILING);
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (c->defaults.value[i] > c->ceiling.value[i])
			return error_set(
				e, -EINVAL,
				"[defaults] %s: is above [ceiling] %s; lower the one or raise "
				"the other",
				limit_table[i].name, limit_table[i].name);
	return 0;
}

int config_parse(FILE *file, const char *path, struct config *ret, struct error *e)
{
	struct config c;
	struct parser p = { .config = &c };
	int line, r;

	config_defaults(&c);
	line = ini_parse_file(file, on_key, &p);
	if (line < 0)
		return error_set(e, -EIO, "%s: cannot be read", path);
	if (line > 0 && p.r == 0)
		return error_set(e, -EINVAL, "%s:%d: is neither \"[section]\" nor \"key = value\"",
				 path, line);
	if (line > 0)
		return error_set(e, p.r, "%s:%d: %s", path, line, p.error.text);
	r = check_contradictions(&c, e);
	if (r < 0)
		return error_wrap(e, r, "%s", path);
	*ret = c;
	return 0;
}

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

int config_load(const char *path, struct config *ret, struct error *e)
{
	_cleanup_(close_file) FILE *file = fopen(path, "re");

	if (!file && errno == ENOENT) {
		config_defaults(ret);
		return 0;
	}
	if (!file)
		return error_errno(e, -errno, "%s: cannot be opened", path);
	return config_parse(file, path, ret, e);
}
