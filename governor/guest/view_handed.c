/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_handed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/view_make.h"

/* Mount points are made before anything of the caller's is attached: the child is root, and what it
 * makes must be in memory of its own. */
static int make_places(const struct handed *h, struct error *e)
{
	for (size_t i = 0; i < h->n_trees; i++) {
		const struct handed_tree *t = &h->trees[i];
		int r = view_make_mount_point(t->path, t->is_directory, e);

		if (r == 0 && t->alias[0])
			r = view_make_parents(t->alias, e);
		if (r < 0)
			return r;
		if (t->alias[0] && symlink(t->path, t->alias) < 0 && errno != EEXIST)
			return view_cannot("made", t->alias, e);
	}
	return 0;
}

static int attach_trees(const struct handed *h, struct error *e)
{
	for (size_t i = 0; i < h->n_trees; i++)
		if (view_attach(h->trees[i].tree, AT_FDCWD, h->trees[i].path) < 0)
			return error_errno(e, -errno, "%s: cannot be attached to the guest's view",
					   h->trees[i].path);
	return 0;
}

/* The entry @name of @dir mounted over itself, with what is mounted and hidden below: a mount point
 * can be neither removed nor replaced.
 * One part of a path and O_NOFOLLOW: whatever the directory's owner does meanwhile, this stays in
 * it. */
static int pin(int dir, const char *name, bool read_only, struct error *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_close_ int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), tree = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(e, -errno, "--pin: %s", name);
	if (S_ISLNK(st.st_mode))
		return error_set(e, -ELOOP, "--pin: %s is a symbolic link: pin the file itself",
				 name);
	tree = open_tree(fd, "",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0 ||
	    (read_only && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0) ||
	    view_attach(tree, fd, "") < 0)
		return error_errno(e, -errno, "--pin: %s cannot be mounted over itself", name);
	return 0;
}

/* The tree of the last --rw in front of item @item. */
static int tree_in_front(const struct handed *h, size_t item)
{
	const struct handed_tree *last = NULL;

	for (size_t i = 0; i < h->n_trees; i++) {
		const struct handed_tree *t = &h->trees[i];

		if (t->kind == VIEW_RW && t->item < item && (!last || t->item > last->item))
			last = t;
	}
	return last ? last->tree : -1;
}

/* With the modes of @uid: 0 when the words are root's own. Its caller must not learn from a refusal
 * what lies where neither it nor the guest may look. */
static int open_as(uint32_t uid, const char *path)
{
	int fd;

	setfsgid(uid);
	setfsuid(uid);
	fd = open(path, O_PATH | O_CLOEXEC);
	setfsuid(0);
	setfsgid(0);
	return fd;
}

/* Nobody, not even its owner, can open what has no mode, and the owner is root. */
static int hide(const char *path, uint32_t uid, struct error *e)
{
	const char *own = view_own_place(path);
	_cleanup_close_ int fd = -1, tree = -1;
	struct stat st;

	if (own) /* /proc would come on top of it */
		return error_set(e, -EINVAL, "--hide: %s: every guest has a %s of its own", path,
				 own);
	fd = open_as(uid, path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT && uid == 0 ? 0 : error_errno(e, -errno, "--hide: %s", path);
	tree = open_tree(AT_FDCWD, S_ISDIR(st.st_mode) ? "/.hidden" : "/.hidden-file",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || view_attach(tree, fd, "") < 0)
		return error_errno(e, -errno, "--hide: %s cannot be covered", path);
	return 0;
}

static int make_hidden(const struct view_plan *plan, struct error *e)
{
	bool any = plan->start.base->hidden.n > 0;
	int fd;

	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++)
		any |= plan->items[i].kind == VIEW_HIDE;
	if (!any)
		return 0;
	fd = open("/.hidden-file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (fd < 0 || mkdir("/.hidden", 0) < 0)
		return view_cannot("made", "/.hidden", e);
	close(fd);
	return 0;
}

static int serve_item(const struct view_plan *plan, size_t i, struct error *e)
{
	const struct view_item *item = &plan->items[i];

	switch (item->kind) {
	case VIEW_PIN:
	case VIEW_PIN_RO:
		return pin(tree_in_front(plan->handed, i), item->text, item->kind == VIEW_PIN_RO,
			   e);
	case VIEW_HIDE:
		return hide(item->text, plan->uid, e);
	default:
		return 0;
	}
}

int view_take_handed(const struct view_plan *plan, struct error *e)
{
	int r = make_hidden(plan, e);

	if (r == 0)
		r = make_places(plan->handed, e);
	if (r == 0)
		r = attach_trees(plan->handed, e);
	for (size_t i = 0; i < plan->start.base->hidden.n && r == 0; i++)
		r = hide(plan->start.base->hidden.path[i], 0, e);
	for (size_t i = 0; i < VIEW_ITEMS_MAX && r == 0; i++)
		r = serve_item(plan, i, e);
	return r;
}
