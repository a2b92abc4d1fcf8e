/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the configuration says, and where. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "governor/daemon/config_keys.h"

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
	return origin_text(c, config_origin(c, slot, limit_table[limit].name), buf, size);
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
	const struct view_paths *paths = at;

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
	case KEY_CHOICE:
		fputs(key->choices[*(const uint32_t *)at], to);
		break;
	case KEY_PATHS:
		for (uint32_t i = 0; i < paths->n; i++)
			fprintf(to, "%s%s", i ? " " : "", paths->path[i]);
		break;
	case KEY_ALLOW: /* show_entries() */
		break;
	}
}

static bool is_unset(const struct key *key, const void *at)
{
	if (key->kind == KEY_MEMBERS || key->kind == KEY_PROFILES)
		return ((const struct members *)at)->n == 0;
	if (key->kind == KEY_PATHS)
		return ((const struct view_paths *)at)->n == 0;
	return key->kind == KEY_LIMIT && *(const uint64_t *)at == LIMIT_UNSET;
}

static void show_entries(const struct config *c, const struct key *key, const struct profile *p,
			 FILE *to)
{
	char from[300], text[ALLOW_FORMAT_MAX];

	for (size_t i = 0; i < p->n_entries; i++)
		fprintf(to, "; %s\n%s = %s\n", origin_text(c, &p->from[i], from, sizeof(from)),
			key->name, allow_format(&p->entries[i], text));
}

static void show_value(const struct config *c, const struct key *key, const struct origin *origin,
		       const void *at, FILE *to)
{
	char from[300];

	fprintf(to, "; %s\n", origin_text(c, origin, from, sizeof(from)));
	fprintf(to, "%s = ", key->name);
	print_value(key, at, to);
	fputc('\n', to);
}

static void show_section(struct config *c, uint32_t slot, FILE *to)
{
	const struct section *section = config_section(slot);
	char title[TITLE_MAX];

	if (slot == SLOT_VIEW && c->view_ro.n + c->view_hide.n == 0)
		return;
	fprintf(to, "%s[%s]\n", slot ? "\n" : "", config_title(c, slot, title));
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];
		const void *at = (const char *)config_base(c, slot) + key->offset;

		if (key->kind == KEY_ALLOW)
			show_entries(c, key, at, to);
		else if (!is_unset(key, at))
			show_value(c, key, &c->origin[slot][i], at, to);
	}
}

int config_show(const char *path, FILE *to, struct error *e)
{
	_cleanup_free_ struct config *c = calloc(1, sizeof(*c));
	int r = c ? config_load(path, c, e) : error_errno(e, -ENOMEM, "%s", path);

	if (r < 0)
		return r;
	for (uint32_t slot = 0; slot < SLOT_ACCESS + c->n_access; slot++)
		show_section(c, slot, to);
	for (uint32_t i = PROFILE_BUILT_IN; i < c->n_profiles; i++)
		show_section(c, SLOT_PROFILE + i, to);
	config_free(c);
	return 0;
}
