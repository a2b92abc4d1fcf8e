/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/units.h"

static const struct private_directory {
	const char *path;
	unsigned int mode;
	unsigned long flags;
} private_directories[] = {
	{ "/tmp", 01777, 0 },
	{ "/var/tmp", 01777, 0 },
	{ "/dev/shm", 01777, 0 },
	{ "/run", 0755, MS_NOEXEC },
};

#define PRIVATE_INODES 65536

/* The private directory that @path is or lies in, with the rest of the path; NULL when in none. */
static const char *below_private(const char *path, const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(private_directories); i++) {
		const char *top = private_directories[i].path;
		size_t len = strlen(top);

		if (strncmp(path, top, len) != 0 || (path[len] != '/' && path[len] != '\0'))
			continue;
		*ret_rest = path + len;
		return top;
	}
	return NULL;
}

/* ---- in the supervisor ---- */

static int same_namespace(int a, int b)
{
	struct stat sa, sb;

	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return -errno;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* A mount namespace whose user namespace is ours: made by root, so entering it is harmless. */
static int check_namespace(int mntns_fd, struct error *e)
{
	_cleanup_close_ int owner = -1, own = -1;

	if (ioctl(mntns_fd, NS_GET_NSTYPE) != CLONE_NEWNS)
		return error_set(e, -EINVAL, "the caller's mount namespace is no such thing");
	owner = ioctl(mntns_fd, NS_GET_USERNS);
	own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (owner < 0 || own < 0 || same_namespace(owner, own) != 1)
		return error_set(e, -EPERM,
				 "the caller's mount namespace belongs to another user namespace; "
				 "call from outside of that container");
	return 0;
}

static int clone_tree(int cwd_fd, struct error *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };
	_cleanup_close_ int tree =
		open_tree(cwd_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0)
		return error_errno(e, -errno, "the working directory cannot be bound");
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return error_errno(e, -errno, "the working directory cannot be made nosuid");
	return TAKE_FD(tree);
}

static int clone_tree_in(int mntns_fd, int cwd_fd, struct error *e)
{
	_cleanup_close_ int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int same = own < 0 ? -errno : same_namespace(own, mntns_fd);
	int tree;

	if (same < 0)
		return error_errno(e, same, "mount namespaces cannot be compared");
	if (same)
		return clone_tree(cwd_fd, e);
	if (check_namespace(mntns_fd, e) < 0)
		return -EPERM;
	if (setns(mntns_fd, CLONE_NEWNS) < 0)
		return error_errno(e, -errno, "the caller's mount namespace cannot be entered");
	tree = clone_tree(cwd_fd, e);
	if (setns(own, CLONE_NEWNS) < 0)
		_exit(1); /* nothing may go on in there */
	return tree;
}

int view_cwd_open(int cwd_fd, int mntns_fd, struct view_cwd *ret, struct error *e)
{
	const char *top, *rest;
	char link[32];
	struct stat st;
	ssize_t n;

	if (fstat(cwd_fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(e, -ENOTDIR, "the working directory is no directory");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", cwd_fd);
	n = readlink(link, ret->path, sizeof(ret->path) - 1);
	if (n < 0 || (size_t)n >= sizeof(ret->path) - 1)
		return error_set(e, -ENAMETOOLONG, "the working directory's path is too long");
	ret->path[n] = '\0';
	if (st.st_nlink == 0 || ret->path[0] != '/')
		return error_set(e, -ENOENT, "%s: the working directory has been removed",
				 ret->path);
	ret->fd = cwd_fd;
	top = below_private(ret->path, &rest);
	if (!top)
		return 0;
	if (!rest[0])
		return error_set(e, -EINVAL,
				 "the working directory is %s, of which every guest has its own; "
				 "change to a directory below it",
				 top);
	ret->tree = clone_tree_in(mntns_fd, cwd_fd, e);
	return ret->tree < 0 ? ret->tree : 0;
}

void view_cwd_close(struct view_cwd *cwd)
{
	close_fd(&cwd->tree);
	*cwd = VIEW_CWD_NULL;
}

/* ---- in the child ---- */

static int mount_private(const struct private_directory *d, uint64_t bytes, struct error *e)
{
	char options[96], size[32] = "50%";

	if (bytes != LIMIT_INFINITY)
		snprintf(size, sizeof(size), "%" PRIu64, bytes);
	snprintf(options, sizeof(options), "mode=%o,size=%s,nr_inodes=%d", d->mode, size,
		 PRIVATE_INODES);
	if (mount("tmpfs", d->path, "tmpfs", MS_NOSUID | MS_NODEV | d->flags, options) < 0)
		return error_errno(e, -errno, "%s: a private one cannot be mounted", d->path);
	return 0;
}

/* No error when the kernel or the host has none that would have to be hidden. */
static int mount_mqueue(struct error *e)
{
	if (mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 ||
	    errno == ENOENT || errno == ENODEV)
		return 0;
	return error_errno(e, -errno, "/dev/mqueue: a private one cannot be mounted");
}

/* mkdir -p. The path is the kernel's own (no "..", no symlinks) and lies in a fresh tmpfs. */
static int make_directories(char *path, struct error *e)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return error_errno(e, -errno, "%s: cannot be made", path);
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int place_cwd(const struct view_cwd *cwd, struct error *e)
{
	char path[VIEW_PATH_MAX];
	int r;

	if (cwd->tree < 0)
		return 0;
	snprintf(path, sizeof(path), "%s", cwd->path);
	r = make_directories(path, e);
	if (r < 0)
		return r;
	if (move_mount(cwd->tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_errno(e, -errno, "%s: the working directory cannot be bound there",
				   path);
	return 0;
}

int view_build(const struct view_cwd *cwd, uint64_t tmp_bytes, struct error *e)
{
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_errno(e, -errno, "mounts cannot be made private");
	for (size_t i = 0; i < ARRAY_SIZE(private_directories); i++) {
		r = mount_private(&private_directories[i], tmp_bytes, e);
		if (r < 0)
			return r;
	}
	r = mount_mqueue(e);
	if (r < 0)
		return r;
	return place_cwd(cwd, e);
}

int view_enter_cwd(const struct view_cwd *cwd, struct error *e)
{
	struct stat here, there;

	if (chdir(cwd->path) < 0)
		return error_errno(
			e, -errno,
			"%s: the guest cannot enter the working "
			"directory; work in one that others may enter (chmod o+x, on the "
			"whole path)",
			cwd->path);
	if (fstat(cwd->fd, &there) < 0 || stat(".", &here) < 0 || here.st_ino != there.st_ino ||
	    here.st_dev != there.st_dev)
		return error_set(e, -EXDEV,
				 "%s: is another directory for a guest than for the caller",
				 cwd->path);
	return 0;
}
