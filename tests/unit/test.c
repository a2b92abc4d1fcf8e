/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#define SOURCE_MAX (1 << 16)

int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -1; /* the directory's own */

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

char *source_text(const char *path)
{
	const char *root = getenv("SOURCE_ROOT");
	_cleanup_close_ int dir = open(root ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *text = malloc(SOURCE_MAX);

	assert_non_null(text);
	assert_true(read_file_at(dir, path, text, SOURCE_MAX) > 0);
	return text;
}

void assert_mentions(const char *page, const char *before, const char *name, const char *after)
{
	char wanted[200];

	snprintf(wanted, sizeof(wanted), "%s%s%s", before, name, after);
	if (!strstr(page, wanted))
		fail_msg("the page does not have \"%s\"", wanted);
}
