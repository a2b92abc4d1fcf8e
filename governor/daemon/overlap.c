/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/overlap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

#define FIELDS_MAX 8

static bool overlap(uint64_t a, uint64_t n_a, uint64_t b, uint64_t n_b)
{
	return a < b + n_b && b < a + n_a;
}

/* ---- systemd's ranges ---- */

static const struct range {
	uint32_t first, last;
	const char *owner;
} ranges[] = {
	{ 60001, 60577, "systemd-homed and systemd-nspawn" },
	{ 61184, 65519, "systemd's dynamic users" },
	{ 65534, 65535, "nobody" },
	{ 524288, 1879048191, "systemd-nspawn's containers" },
	{ 2147352576, 2147418111, "systemd's foreign ids" },
};

int overlap_check_ranges(uint32_t first, uint32_t count, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		const struct range *r = &ranges[i];

		if (overlap(first, count, r->first, r->last - r->first + 1))
			return error_set(
				e, -EADDRINUSE,
				"[pool]: uids %u to %u overlap %u to %u, which belong to %s; "
				"choose another first-uid",
				first, first + count - 1, r->first, r->last, r->owner);
	}
	return 0;
}

/* ---- files ---- */

/* Which fields of a line are ids. */
static const struct format {
	unsigned int id[2]; /* 0 = none: field 0 is the name */
	unsigned int count; /* 0 = one */
} formats[] = {
	[OVERLAP_PASSWD] = { { 2, 3 }, 0 },
	[OVERLAP_GROUP] = { { 2, 0 }, 0 },
	[OVERLAP_SUBID] = { { 1, 0 }, 2 },
};

static unsigned int split(char *line, char *fields[FIELDS_MAX])
{
	unsigned int n = 0;

	line[strcspn(line, "\n")] = '\0';
	while (n < FIELDS_MAX && line)
		fields[n++] = strsep(&line, ":");
	return n;
}

/* A field that is no number overlaps nothing: it is not an account either. */
static uint64_t number_of(char *const fields[], unsigned int n, unsigned int i, uint64_t otherwise)
{
	char *end;
	uint64_t value;

	if (i >= n || !fields[i][0])
		return otherwise;
	value = strtoull(fields[i], &end, 10);
	return *end ? otherwise : value;
}

static bool line_overlaps(char *line, const struct format *f, uint32_t first, uint32_t count)
{
	char *fields[FIELDS_MAX];
	unsigned int n = split(line, fields);
	uint64_t length = f->count ? number_of(fields, n, f->count, 1) : 1;

	if (length > UINT32_MAX)
		length = UINT32_MAX; /* ids end there */
	for (size_t i = 0; i < ARRAY_SIZE(f->id); i++) {
		uint64_t id = f->id[i] ? number_of(fields, n, f->id[i], UINT32_MAX) : UINT32_MAX;

		if (id < UINT32_MAX && overlap(first, count, id, length))
			return true;
	}
	return false;
}

int overlap_check_file(FILE *file, const char *path, enum overlap_kind kind, uint32_t first,
		       uint32_t count, struct error *e)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool found = false;

	for (unsigned int number = 1; !found && getline(&line, &size, file) >= 0; number++) {
		found = line_overlaps(line, &formats[kind], first, count);
		if (found)
			error_set(e, -EADDRINUSE,
				  "[pool]: %s:%u (\"%.32s\") has ids between %u and %u; choose "
				  "another "
				  "first-uid",
				  path, number, line, first, first + count - 1);
	}
	return found ? -EADDRINUSE : 0;
}

/* A file that is not there has nobody. */
static int check_path(const char *path, enum overlap_kind kind, uint32_t first, uint32_t count,
		      struct error *e)
{
	_cleanup_(close_file) FILE *file = fopen(path, "re");

	if (file)
		return overlap_check_file(file, path, kind, first, count, e);
	return errno == ENOENT ? 0 : error_errno(e, -errno, "%s: cannot be read", path);
}

int overlap_check(uint32_t first, uint32_t count, struct error *e)
{
	static const struct {
		const char *path;
		enum overlap_kind kind;
	} files[] = {
		{ "/etc/passwd", OVERLAP_PASSWD },
		{ "/etc/group", OVERLAP_GROUP },
		{ "/etc/subuid", OVERLAP_SUBID },
		{ "/etc/subgid", OVERLAP_SUBID },
	};
	int r = overlap_check_ranges(first, count, e);

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
		r = check_path(files[i].path, files[i].kind, first, count, e);
	return r;
}

/* A range of root's may have accounts in it, for containers that share their files. */
bool overlap_is_lent(uint32_t uid)
{
	return check_path("/etc/subuid", OVERLAP_SUBID, uid, 1, NULL) < 0 &&
	       check_path("/etc/passwd", OVERLAP_PASSWD, uid, 1, NULL) != -EADDRINUSE;
}
