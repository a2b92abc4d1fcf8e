/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/view_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/fd.h"

int view_cannot(const char *what, const char *path, struct error *e)
{
	return error_errno(e, -errno, "%s of the guest's view cannot be %s", path, what);
}

int view_make_parents(const char *path, struct error *e)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (mkdir(above, 0755) < 0 && errno != EEXIST)
			return view_cannot("made", above, e);
	}
	return 0;
}

int view_make_mount_point(const char *path, bool is_directory, struct error *e)
{
	int r = view_make_parents(path, e);
	int fd;

	if (r < 0)
		return r;
	if (is_directory)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? view_cannot("made", path, e) : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno != EEXIST ? view_cannot("made", path, e) : 0;
	close(fd);
	return 0;
}

int view_attach(int tree, int to, const char *path)
{
	return move_mount(tree, "", to, path,
			  MOVE_MOUNT_F_EMPTY_PATH | (path[0] ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}
