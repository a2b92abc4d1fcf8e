/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/handed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/idmap.h"
#include "governor/guest/mounts.h"

#define PATH_SIZE 4096

static const char *kind_name(enum view_kind kind)
{
	static const char *const names[VIEW_KIND_COUNT] = {
		[VIEW_NONE] = "the working directory",
		[VIEW_RO] = "--ro",
		[VIEW_RW] = "--rw",
	};

	return names[kind];
}

/* ---- paths ---- */

static int read_path(int fd, const char *what, char **ret, struct error *e)
{
	char link[32], path[PATH_SIZE];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0 || (size_t)n >= sizeof(path))
		return error_set(e, -ENAMETOOLONG, "%s: its path is too long", what);
	path[n] = '\0';
	if (fstat(fd, &st) < 0 || st.st_nlink == 0 || path[0] != '/')
		return error_set(e, -ENOENT, "%s: %s has been removed", what, path);
	*ret = strdup(path);
	return *ret ? 0 : error_errno(e, -ENOMEM, "%s", what);
}

static int check_place(const struct handed_tree *t, struct error *e)
{
	const char *own = view_own_place(t->path);

	return own ? error_set(
			     e, -EINVAL,
			     "%s: %s: every guest has a %s of its own; use something else, or what "
			     "is below /tmp, /var/tmp, /dev/shm or /run",
			     kind_name(t->kind), t->path, own)
		   : 0;
}

/* ---- what is allowed ---- */

static int check_owner(const struct handed_tree *t, const struct stat *st,
		       const struct caller *caller, struct error *e)
{
	if (!t->is_directory)
		return error_set(e, -ENOTDIR, "--rw: %s is no directory", t->path);
	if (caller->uid == 0)
		return error_set(e, -EPERM,
				 "--rw: not for root, as the guest could then write as root; call "
				 "as the user whom %s belongs to",
				 t->path);
	if (st->st_uid != caller->uid)
		return error_set(e, -EPERM,
				 "--rw: %s belongs to uid %u, not to you (uid %u); use a directory "
				 "of your own",
				 t->path, st->st_uid, caller->uid);
	return 0;
}

static int look_at(struct handed_tree *t, const struct caller *caller, struct error *e)
{
	struct stat st;
	int r = read_path(t->fd, kind_name(t->kind), &t->path, e);

	if (r == 0 && fstat(t->fd, &st) < 0)
		r = error_errno(e, -errno, "%s cannot be looked at", t->path);
	if (r < 0)
		return r;
	t->is_directory = S_ISDIR(st.st_mode);
	t->gid = st.st_gid;
	if (t->alias[0] && strcmp(t->alias, t->path) == 0)
		t->alias = "";
	r = check_place(t, e);
	if (r == 0 && t->kind == VIEW_RW)
		r = check_owner(t, &st, caller, e);
	if (r == 0 && !t->is_directory && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode))
		r = error_set(e, -EINVAL, "%s: %s is neither a directory nor a file",
			      kind_name(t->kind), t->path);
	return r;
}

static int take_cwd(const struct handed_call *call, struct handed *h, struct error *e)
{
	struct handed_tree *t = &h->trees[h->n_trees];
	struct stat st;
	int r;

	if (fstat(call->cwd, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(e, -ENOTDIR, "the working directory is no directory");
	h->cwd = call->cwd;
	r = read_path(call->cwd, "the working directory", &h->cwd_path, e);
	if (r < 0)
		return r;
	if (strcmp(h->cwd_path, "/") == 0 || view_base_has(call->base, h->cwd_path))
		return 0;
	for (size_t i = 0; i < h->n_trees; i++)
		if (view_path_below(h->cwd_path, h->trees[i].path))
			return 0;
	*t = (struct handed_tree){ .fd = call->cwd, .tree = -1, .alias = "" };
	h->n_trees++;
	return look_at(t, call->caller, e);
}

static int take_items(const struct handed_call *call, struct handed *h, struct error *e)
{
	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++) {
		const struct view_item *item = &call->request->view[i];
		struct handed_tree *t = &h->trees[h->n_trees];
		int r;

		if (!view_kind_has_fd(item->kind))
			continue;
		*t = (struct handed_tree){ .kind = (enum view_kind)item->kind,
					   .fd = call->fds[h->n_trees],
					   .tree = -1,
					   .alias = item->text,
					   .item = i };
		h->n_trees++;
		r = look_at(t, call->caller, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A pin holds against what the guest does in its directory, not above it. */
static int check_nesting(const struct handed *h, struct error *e)
{
	for (size_t i = 0; i < h->n_trees; i++)
		for (size_t j = 0; j < h->n_trees; j++)
			if (i != j && h->trees[i].kind == VIEW_RW && h->trees[j].kind == VIEW_RW &&
			    view_path_below(h->trees[i].path, h->trees[j].path))
				return error_set(
					e, -EINVAL,
					"--rw: %s lies in %s, which is given as well; give "
					"one of them",
					h->trees[i].path, h->trees[j].path);
	return 0;
}

/* ---- in the caller's mount namespace ---- */

static int clone_tree(struct handed_tree *t, int proc, struct error *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (t->kind == VIEW_RO ? MOUNT_ATTR_RDONLY : 0),
				   .propagation = MS_PRIVATE };
	int below = t->kind == VIEW_RW ? 0 : AT_RECURSIVE, r = 0;

	if (t->kind == VIEW_RW)
		r = mounts_refuse_below(proc, t->fd, t->path, e);
	if (r < 0)
		return r;
	t->tree = open_tree(t->fd, "",
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | (unsigned)below);
	if (t->tree < 0)
		return error_errno(e, -errno, "%s: %s cannot be bound", kind_name(t->kind),
				   t->path);
	if (mount_setattr(t->tree, "", AT_EMPTY_PATH | (unsigned)below, &attr, sizeof(attr)) < 0)
		return error_errno(e, -errno, "%s: %s cannot be made nosuid", kind_name(t->kind),
				   t->path);
	return 0;
}

static int clone_trees(struct handed *h, int proc, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < h->n_trees && r == 0; i++)
		r = clone_tree(&h->trees[i], proc, e);
	return r;
}

static int same_namespace(int a, int b)
{
	struct stat sa, sb;

	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return -errno;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* A mount namespace whose user namespace is ours: made by root, so entering it is harmless. */
static int check_namespace(int mntns, struct error *e)
{
	_cleanup_close_ int owner = -1, own = -1;

	if (ioctl(mntns, NS_GET_NSTYPE) != CLONE_NEWNS)
		return error_set(e, -EINVAL, "the caller's mount namespace is no such thing");
	owner = ioctl(mntns, NS_GET_USERNS);
	own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (owner < 0 || own < 0 || same_namespace(owner, own) != 1)
		return error_set(e, -EPERM,
				 "the caller's mount namespace belongs to another user namespace; "
				 "call from outside of that container");
	return 0;
}

static int clone_trees_in(int mntns, struct handed *h, struct error *e)
{
	_cleanup_close_ int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int same = own < 0 || proc < 0 ? -errno : same_namespace(own, mntns);
	int r;

	if (same < 0)
		return error_errno(e, same, "mount namespaces cannot be compared");
	if (same)
		return clone_trees(h, proc, e);
	if (check_namespace(mntns, e) < 0)
		return -EPERM;
	if (setns(mntns, CLONE_NEWNS) < 0)
		return error_errno(e, -errno, "the caller's mount namespace cannot be entered");
	r = clone_trees(h, proc, e);
	if (setns(own, CLONE_NEWNS) < 0)
		_exit(1); /* nothing may go on in there */
	return r;
}

/* ---- the whole ---- */

/* What contains others comes first: they are attached inside of it. Of one path given twice the
 * later is on top. */
static int compare_trees(const void *a, const void *b)
{
	const struct handed_tree *ta = a, *tb = b;
	size_t la = strlen(ta->path), lb = strlen(tb->path);

	return la != lb ? (la > lb) - (la < lb) : (ta->item > tb->item) - (ta->item < tb->item);
}

int handed_open(const struct handed_call *call, struct handed *ret, struct error *e)
{
	int r = take_items(call, ret, e);

	if (r == 0)
		r = check_nesting(ret, e);
	if (r == 0)
		r = take_cwd(call, ret, e);
	if (r == 0 && ret->n_trees > 0)
		r = clone_trees_in(call->mntns, ret, e);
	if (r < 0) {
		handed_close(ret);
		return r;
	}
	qsort(ret->trees, ret->n_trees, sizeof(ret->trees[0]), compare_trees);
	return 0;
}

/* Files that the guest makes belong to the directory's group, if the caller is in it. */
static uint32_t disk_gid(const struct caller *caller, uint32_t gid)
{
	for (uint32_t i = 0; i < caller->n_groups; i++)
		if (caller->groups[i] == gid)
			return gid;
	return caller->gid;
}

int handed_map(struct handed *h, const struct caller *caller, uint32_t uid, struct error *e)
{
	const struct id_pair guest = { uid, uid };

	for (size_t i = 0; i < h->n_trees; i++) {
		struct handed_tree *t = &h->trees[i];
		struct id_pair disk = { caller->uid, 0 };
		int r;

		if (t->kind != VIEW_RW)
			continue;
		disk.gid = disk_gid(caller, t->gid);
		r = idmap_mount(t->tree, &disk, &guest, e);
		if (r < 0)
			return error_wrap(e, r, "--rw %s", t->path);
	}
	return 0;
}

/* ---- where mounts can be taken away ---- */

static int refuse_passing(const char *option, const char *text, const char *profile,
			  struct error *e)
{
	return error_set(e, -EPERM,
			 "--%s %s: would not hold with profile %s, whose guests may make user "
			 "namespaces; take another with --net",
			 option, text, profile);
}

static bool is_in_writable(const struct handed *h, const struct handed_tree *t)
{
	for (size_t i = 0; i < h->n_trees; i++)
		if (h->trees[i].kind != VIEW_RO && view_path_below(t->path, h->trees[i].path))
			return true;
	return false;
}

int handed_check_lasting(const struct handed *h, const struct request *q, const char *profile,
			 struct error *e)
{
	static const char *const passing[VIEW_KIND_COUNT] = {
		[VIEW_PIN] = "pin",
		[VIEW_PIN_RO] = "pin",
		[VIEW_HIDE] = "hide",
	};

	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++)
		if (passing[q->view[i].kind])
			return refuse_passing(passing[q->view[i].kind], q->view[i].text, profile,
					      e);
	for (size_t i = 0; i < h->n_trees; i++)
		if (h->trees[i].kind == VIEW_RO && is_in_writable(h, &h->trees[i]))
			return refuse_passing("ro", h->trees[i].path, profile, e);
	return 0;
}

void handed_close(struct handed *h)
{
	for (size_t i = 0; i < h->n_trees; i++) {
		close_fd(&h->trees[i].tree);
		free(h->trees[i].path);
	}
	free(h->cwd_path);
	*h = (struct handed){ .cwd = -1 };
}
