/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

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

int view_pick_up(int fd, const char *path, unsigned int flags, const char *name, int *ret,
		 struct error *e)
{
	struct mount_attr closed = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};

	*ret = open_tree(fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
	if (*ret < 0 || mount_setattr(*ret, "", AT_EMPTY_PATH | (flags & AT_RECURSIVE), &closed,
				      sizeof(closed)) < 0)
		return error_errno(e, -errno, "%s cannot be shown to the guest", name);
	return 0;
}

int view_pick_up_places(const struct view_base *b, size_t from, size_t to, int *trees,
			struct error *e)
{
	int r = 0;

	for (size_t i = from; i < to && r == 0; i++) {
		const struct view_place *p = &b->places[i];

		if (!p->link[0])
			r = view_pick_up(AT_FDCWD, p->path, AT_RECURSIVE, p->path, &trees[i], e);
	}
	return r;
}

int view_show_tree(int tree, const char *path, struct error *e)
{
	if (view_attach(tree, AT_FDCWD, path + 1) < 0)
		return error_errno(e, -errno, "%s cannot be shown to the guest", path);
	return 0;
}

static int show_place(const struct view_place *p, int tree, struct error *e)
{
	int r;

	if (p->link[0])
		return symlink(p->link, p->path + 1) < 0 ? view_cannot("made", p->path, e) : 0;
	r = view_make_mount_point(p->path + 1, p->is_directory, e);
	return r < 0 ? r : view_show_tree(tree, p->path, e);
}

int view_show_places(const struct view_base *b, size_t from, size_t to, const int *trees,
		     struct error *e)
{
	int r = 0;

	for (size_t i = from; i < to && r == 0; i++)
		r = show_place(&b->places[i], trees[i], e);
	return r;
}
