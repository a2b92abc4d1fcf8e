/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/cgroup_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"

#define DISKS	 "/sys/block"
#define TEXT_MAX 65536 /* some hundred disks */

/* ---- text ---- */

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end && end[1] ? end + 1 : NULL;
}

/* -ENOENT when the line has no @key. */
static int line_value(const char *line, const char *key, uint64_t *ret)
{
	const char *end = strchrnul(line, '\n'), *at = line;
	size_t len = strlen(key);

	while ((at = memchr(at, ' ', (size_t)(end - at)))) {
		at++;
		if ((size_t)(end - at) > len && memcmp(at, key, len) == 0 && at[len] == '=')
			return parse_u64_prefix(at + len + 1, ret);
	}
	return -ENOENT;
}

int io_value_of(const char *text, const char *disk, const char *key, uint64_t *ret)
{
	size_t len = strlen(disk);

	for (const char *line = text; line; line = next_line(line))
		if (strncmp(line, disk, len) == 0 && line[len] == ' ')
			return line_value(line, key, ret);
	return -ENOENT;
}

int io_smallest(const char *text, const char *key, uint64_t *ret)
{
	uint64_t value, least = LIMIT_INFINITY;

	for (const char *line = text; line; line = next_line(line)) {
		int r = line_value(line, key, &value);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && value < least)
			least = value;
	}
	*ret = least;
	return 0;
}

int io_sum(const char *text, const char *key, uint64_t *ret)
{
	uint64_t value, sum = 0;

	for (const char *line = text; line; line = next_line(line)) {
		int r = line_value(line, key, &value);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && __builtin_add_overflow(sum, value, &sum))
			return -ERANGE;
	}
	*ret = sum;
	return 0;
}

/* ---- files ---- */

static int read_text(int dirfd, const char *file, char **ret)
{
	_cleanup_free_ char *text = malloc(TEXT_MAX);
	ssize_t n = text ? read_file_at(dirfd, file, text, TEXT_MAX) : -ENOMEM;

	if (n < 0)
		return (int)n;
	*ret = TAKE_PTR(text);
	return 0;
}

int cgroup_io_smallest(int dirfd, uint64_t *ret_in, uint64_t *ret_out)
{
	_cleanup_free_ char *text = NULL;
	int r = read_text(dirfd, "io.max", &text);

	if (r == 0)
		r = io_smallest(text, "rbps", ret_in);
	return r < 0 ? r : io_smallest(text, "wbps", ret_out);
}

/* "default 100", and a line for each disk that has another. */
int cgroup_io_weight(int dirfd, enum limit limit, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = read_text(dirfd, "io.weight", &text);

	(void)limit;
	return r < 0 ? r : keyed_u64(text, "default", ret);
}

int cgroup_io_bytes(int dirfd, uint64_t *ret_read, uint64_t *ret_written)
{
	_cleanup_free_ char *text = NULL;
	uint64_t in;
	int r = read_text(dirfd, "io.stat", &text);

	if (r == 0)
		r = io_sum(text, "rbytes", &in);
	if (r == 0)
		r = io_sum(text, "wbytes", ret_written);
	if (r == 0)
		*ret_read = in;
	return r;
}

/* ---- disks ---- */

struct bound {
	int dirfd;
	const char *path;
	uint64_t in, out;
	const char *text; /* of io.max */
};

static int is_bound(const struct bound *b)
{
	return b->in != LIMIT_INFINITY || b->out != LIMIT_INFINITY;
}

/* "MAJOR:MINOR" of the disk @name; 1 = it holds nothing, or nobody can open it. */
static int disk_number(int disks, const char *name, char dev[32])
{
	char file[300], text[32];
	int r;

	snprintf(file, sizeof(file), "%s/size", name);
	if (read_file_at(disks, file, text, sizeof(text)) < 0 || strcmp(text, "0") == 0)
		return 1;
	snprintf(file, sizeof(file), "%s/hidden", name);
	if (read_file_at(disks, file, text, sizeof(text)) >= 0 && strcmp(text, "0") != 0)
		return 1;
	snprintf(file, sizeof(file), "%s/dev", name);
	r = (int)read_file_at(disks, file, dev, 32);
	return r == -ENOENT ? 1 : r < 0 ? r : 0; /* gone meanwhile */
}

/* Calls @act for every disk until one fails. */
static int each_disk(int (*act)(const struct bound *, const char *dev, struct error *),
		     const struct bound *b, struct error *e)
{
	_cleanup_(close_directory) DIR *disks = opendir(DISKS);
	struct dirent *entry;
	int r = 0;

	if (!disks)
		return error_errno(e, -errno, DISKS ": cannot be read");
	while (r == 0 && (entry = readdir(disks))) {
		char dev[32];

		if (entry->d_name[0] == '.')
			continue;
		r = disk_number(dirfd(disks), entry->d_name, dev);
		if (r < 0)
			return error_errno(e, r, DISKS "/%s: cannot be read", entry->d_name);
		r = r == 0 ? act(b, dev, e) : 0;
	}
	return r;
}

static const char *show(uint64_t value, char buf[32])
{
	if (value == LIMIT_INFINITY)
		snprintf(buf, 32, "max");
	else
		snprintf(buf, 32, "%" PRIu64, value);
	return buf;
}

static int bound_disk(const struct bound *b, const char *dev, struct error *e)
{
	char text[128], in[32], out[32];
	int r;

	snprintf(text, sizeof(text), "%s rbps=%s wbps=%s", dev, show(b->in, in), show(b->out, out));
	r = write_file_at(b->dirfd, "io.max", text);
	if (r < 0 && r != -ENODEV) /* gone meanwhile */
		return error_errno(e, r, "%s/io.max: cannot write \"%s\"", b->path, text);
	return 0;
}

/* What io.max does not mention is not bounded. */
static int verify_value(const struct bound *b, const char *dev, const char *key, uint64_t want,
			struct error *e)
{
	uint64_t have = LIMIT_INFINITY;
	char shown[2][32];
	int r = io_value_of(b->text, dev, key, &have);

	if (r < 0 && r != -ENOENT)
		return error_errno(e, r, "%s/io.max: disk %s, %s", b->path, dev, key);
	if (have != want)
		return error_set(e, -ESTALE, "%s/io.max: disk %s: %s is %s where %s was set",
				 b->path, dev, key, show(have, shown[0]), show(want, shown[1]));
	return 0;
}

static int verify_disk(const struct bound *b, const char *dev, struct error *e)
{
	int r = verify_value(b, dev, "rbps", b->in, e);

	return r < 0 ? r : verify_value(b, dev, "wbps", b->out, e);
}

int cgroup_io_bound(int dirfd, const char *path, const struct limits *limits, struct error *e)
{
	struct bound b = {
		.dirfd = dirfd,
		.path = path,
		.in = limits->value[LIMIT_IO_READ],
		.out = limits->value[LIMIT_IO_WRITE],
	};

	return is_bound(&b) ? each_disk(bound_disk, &b, e) : 0;
}

void cgroup_io_lift(int dirfd)
{
	_cleanup_free_ char *text = NULL;

	if (read_text(dirfd, "io.max", &text) < 0)
		return;
	for (const char *line = text; line && *line; line = next_line(line)) {
		char order[64];

		snprintf(order, sizeof(order), "%.*s rbps=max wbps=max", (int)strcspn(line, " \n"),
			 line);
		write_file_at(dirfd, "io.max", order); /* it dies all the same, only later */
	}
}

int cgroup_io_verify(int dirfd, const char *path, const struct limits *limits, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	struct bound b = {
		.path = path,
		.in = limits->value[LIMIT_IO_READ],
		.out = limits->value[LIMIT_IO_WRITE],
	};
	int r;

	if (!is_bound(&b))
		return 0;
	r = read_text(dirfd, "io.max", &text);
	if (r < 0)
		return error_errno(e, r, "%s/io.max: cannot be read back", path);
	b.text = text;
	return each_disk(verify_disk, &b, e);
}
