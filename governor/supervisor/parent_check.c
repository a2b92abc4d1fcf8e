/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/parent_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"

#define FDINFO_MAX 4096
#define LINK_MAX   64

static int refuse(struct error *e)
{
	return error_set(e, -EINVAL, "what came for the caller's parent is no pidfd");
}

/* "Pid:" is -1 once the process was waited for; of one in a PID namespace of its own it is what we
 * call it, of one that we cannot see it is 0. */
int parent_check_text(const char *fdinfo, struct error *e)
{
	const char *line = strstr(fdinfo, "\nPid:\t");

	if (!line)
		return refuse(e);
	return strncmp(line + strlen("\nPid:\t"), "-1\n", 3) == 0;
}

/* Other descriptors have a path, which starts with a slash, or another name. */
static int has_name_of_pidfd(int fd)
{
	static const char *const names[] = {
		"anon_inode:[pidfd]", "pidfd:[", /* since Linux 6.9 */
	};
	char path[32], name[LINK_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return 1;
	return 0;
}

int parent_check(int fd, struct error *e)
{
	char path[40], text[FDINFO_MAX];
	ssize_t n;

	if (!has_name_of_pidfd(fd))
		return refuse(e);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	n = read_file_at(AT_FDCWD, path, text, sizeof(text) - 1);
	if (n < 0)
		return error_errno(e, (int)n, "%s: cannot be read", path);
	text[n] = '\n'; /* the last one was taken */
	text[n + 1] = '\0';
	return parent_check_text(text, e);
}
