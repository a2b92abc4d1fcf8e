/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/fd.h"

/* Blanks, tabs, newlines and backslashes are \ooo. In place. */
static void unescape(char *text)
{
	char *to = text;
	unsigned int c;

	for (; *text; to++) {
		if (text[0] == '\\' && sscanf(text, "\\%3o", &c) == 1) {
			*to = (char)c;
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT MOUNT-POINT ...: where the last of these is, 0 when it is not there.
 */
static int find_mount_point(const char *line, uint64_t *ret_parent)
{
	int at = 0;

	return sscanf(line, "%*s %" SCNu64 " %*s %*s %n", ret_parent, &at) == 1 ? at : 0;
}

const char *mounts_find_below(FILE *mountinfo, uint64_t id, const char *path, char *buf,
			      size_t size)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, mountinfo) > 0) {
		uint64_t parent;
		int at = find_mount_point(line, &parent);

		if (at == 0 || parent != id)
			continue;
		line[at + (int)strcspn(line + at, " \n")] = '\0';
		unescape(line + at);
		if (view_path_below(line + at, path)) {
			snprintf(buf, size, "%s", line + at);
			return buf;
		}
	}
	return NULL;
}

static int mount_id(int proc, int fd, uint64_t *ret)
{
	char path[48], text[1024];
	const char *line;
	ssize_t n;

	snprintf(path, sizeof(path), "self/fdinfo/%d", fd);
	n = read_file_at(proc, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	line = strstr(text, "mnt_id:\t");
	return line && sscanf(line, "mnt_id: %" SCNu64, ret) == 1 ? 0 : -EINVAL;
}

int mounts_refuse_below(int proc, int fd, const char *path, struct error *e)
{
	int info = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	_cleanup_(close_file) FILE *file = info < 0 ? NULL : fdopen(info, "re");
	const char *found;
	char buf[256];
	uint64_t id;

	if (!file)
		close_fd(&info);
	if (!file || mount_id(proc, fd, &id) < 0)
		return error_set(e, -EIO, "%s: cannot see what is mounted below", path);
	found = mounts_find_below(file, id, path, buf, sizeof(buf));
	if (ferror(file))
		return error_set(e, -EIO, "%s: cannot see what is mounted below", path);
	return found ? error_set(e, -EBUSY,
				 "--rw: something is mounted on %s, which the guest would see "
				 "beneath; use a directory without mounts below",
				 found)
		     : 0;
}

/* The mount point is not unescaped: no built-in place has what would be escaped. */
static bool is_shown(const char *line, const struct view_base *base)
{
	char path[VIEW_PATH_MAX + 2]; /* cut off, but long enough */
	uint64_t parent;
	int at = find_mount_point(line, &parent);

	snprintf(path, sizeof(path), "%.*s", (int)strcspn(line + at, " \n"), line + at);
	return view_base_has_built_in(base, path);
}

/* FNV-1a */
static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

uint64_t mounts_fingerprint(FILE *mountinfo, const struct view_base *base)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, mountinfo) > 0)
		if (is_shown(line, base))
			h = hash(h, line);
	return h;
}
