/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/units.h"
#include "governor/view_ground.h"
#include "governor/view_handed.h"
#include "governor/view_make.h"
#include "governor/view_users.h"

#define ROOT_OPTIONS   "mode=755,size=1M,nr_inodes=4096"
#define PRIVATE_INODES 65536

/* ---- step 1: what everybody sees of the host, in its namespace ---- */

/* Trees of mounts, closed already, that are nowhere yet; they go at exec. */
struct host {
	int places[VIEW_BASE_MAX]; /* of those that are no links */
	int resolver;		   /* -1 = it is in one of them, or the guest may not ask */
	char resolver_path[PATH_MAX];
};

static int pick_up(int fd, const char *path, unsigned int flags, const char *name, int *ret,
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

/* The file that /etc/resolv.conf points to, where that leads out of the view. */
static int pick_up_resolver(const struct view_plan *plan, struct host *ret, struct error *e)
{
	_cleanup_close_ int fd = open("/etc/resolv.conf", O_PATH | O_CLOEXEC);
	char link[32];
	ssize_t n;

	ret->resolver = -1;
	if (!plan->resolver || fd < 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret->resolver_path, sizeof(ret->resolver_path) - 1);
	if (n <= 0)
		return error_errno(e, -errno, "/etc/resolv.conf");
	ret->resolver_path[n] = '\0';
	if (view_base_has(plan->base, ret->resolver_path))
		return 0;
	return pick_up(fd, "", AT_EMPTY_PATH, ret->resolver_path, &ret->resolver, e);
}

static int pick_up_host(const struct view_plan *plan, struct host *ret, struct error *e)
{
	int r = pick_up_resolver(plan, ret, e);

	for (size_t i = 0; i < plan->base->n_places && r == 0; i++) {
		const struct view_place *p = &plan->base->places[i];

		if (!p->link[0])
			r = pick_up(AT_FDCWD, p->path, AT_RECURSIVE, p->path, &ret->places[i], e);
	}
	return r;
}

/* ---- step 2: the empty root, in a namespace of its own ---- */

static const struct {
	const char *path; /* relative, as all in this step */
	unsigned int mode;
} directories[] = {
	{ "dev", 0755 },  { "dev/pts", 0755 }, { "dev/shm", 0755 }, { "dev/mqueue", 0755 },
	{ "home", 0755 }, { "proc", 0755 },    { "root", 0700 },    { "run", 0755 },
	{ "tmp", 0755 },  { "var", 0755 },     { "var/tmp", 0755 },
};

/* Documentation/admin-guide/devices.txt */
static const struct {
	const char *path;
	unsigned int major, minor;
} devices[] = {
	{ "dev/null", 1, 3 },	{ "dev/zero", 1, 5 },	 { "dev/full", 1, 7 },
	{ "dev/random", 1, 8 }, { "dev/urandom", 1, 9 }, { "dev/tty", 5, 0 },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "dev/fd", "/proc/self/fd" },	     { "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" },
};

static int make_root(int ground, struct error *e)
{
	if (setns(ground, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return error_errno(e, -errno, "no mount namespace");
	if (mount("harpe-gov", VIEW_GROUND_ROOT, "tmpfs", MS_NOSUID | MS_NOEXEC, ROOT_OPTIONS) <
		    0 ||
	    chdir(VIEW_GROUND_ROOT) < 0)
		return view_cannot("mounted", "/", e);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (mkdir(directories[i].path, directories[i].mode) < 0)
			return view_cannot("made", directories[i].path, e);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlink(links[i].target, links[i].path) < 0)
			return view_cannot("made", links[i].path, e);
	return 0;
}

static int make_devices(struct error *e)
{
	umask(0);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (mknod(devices[i].path, S_IFCHR | 0666,
			  makedev(devices[i].major, devices[i].minor)) < 0)
			return view_cannot("made", devices[i].path, e);
	umask(022);
	return 0;
}

/* ---- step 3: the host's, and the guest's own ---- */

static int show_tree(int tree, const char *path, struct error *e)
{
	if (view_attach(tree, AT_FDCWD, path + 1) < 0) /* below the new root */
		return error_errno(e, -errno, "%s cannot be shown to the guest", path);
	return 0;
}

static int show_place(const struct view_place *p, int tree, struct error *e)
{
	int r;

	if (p->link[0])
		return symlink(p->link, p->path + 1) < 0 ? view_cannot("made", p->path, e) : 0;
	r = view_make_mount_point(p->path + 1, p->is_directory, e);
	return r < 0 ? r : show_tree(tree, p->path, e);
}

/* The built-in places; not yet what the guest has of its own. */
static int show_host(const struct view_base *b, const struct host *host, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n_built_in && r == 0; i++)
		r = show_place(&b->places[i], host->places[i], e);
	return r;
}

static int mount_private_directories(uint64_t bytes, struct error *e)
{
	static const char *const paths[] = { "tmp", "var/tmp", "dev/shm" };
	char options[96], size[32] = "50%";

	if (bytes != LIMIT_INFINITY)
		snprintf(size, sizeof(size), "%" PRIu64, bytes);
	snprintf(options, sizeof(options), "mode=1777,size=%s,nr_inodes=%d", size, PRIVATE_INODES);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (mount("tmpfs", paths[i], "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
			return view_cannot("mounted", paths[i], e);
	return 0;
}

/* Those of the configuration may lie in them. */
static int show_more(const struct view_base *b, const struct host *host, struct error *e)
{
	int r = 0;

	for (size_t i = b->n_built_in; i < b->n_places && r == 0; i++)
		r = show_place(&b->places[i], host->places[i], e);
	if (r < 0 || host->resolver < 0)
		return r;
	r = view_make_mount_point(host->resolver_path + 1, false, e);
	return r < 0 ? r : show_tree(host->resolver, host->resolver_path, e);
}

/* ---- step 4: it becomes the root ---- */

/* As switch_root(8) does; what stays beneath is empty. */
static int change_root(struct error *e)
{
	if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return error_errno(e, -errno, "the guest's root cannot be entered");
	return 0;
}

/* ---- step 5 is view_take_handed(); step 6: the kernel's own ---- */

/* Last: in /proc are links to everywhere, which root can follow, and so what the caller handed over
 * must not lead there before. hidepid: processes of others are not even named (proc(5)). The kernel
 * counts pseudo-terminals host-wide, but lets nobody but the host's own instance have the last of
 * them (devpts.rst). */
static const struct {
	const char *type, *path, *options;
	unsigned long flags;
	bool pts, optional;
} kernel_mounts[] = {
	{ "proc", "proc", "hidepid=invisible", MS_NODEV | MS_NOEXEC, false, false },
	{ "devpts", "dev/pts", "newinstance,ptmxmode=666,mode=600,max=64", MS_NOEXEC, true, false },
	{ "mqueue", "dev/mqueue", NULL, MS_NODEV | MS_NOEXEC, false, true },
};

static int mount_kernels(bool own_pts, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_mounts); i++) {
		if (kernel_mounts[i].pts && !own_pts)
			continue;
		if (mount(kernel_mounts[i].type, kernel_mounts[i].path, kernel_mounts[i].type,
			  MS_NOSUID | kernel_mounts[i].flags, kernel_mounts[i].options) < 0 &&
		    !(kernel_mounts[i].optional && errno == ENODEV))
			return view_cannot("mounted", kernel_mounts[i].path, e);
	}
	return 0;
}

/* ---- the whole ---- */

static int close_root(struct error *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0)
		return view_cannot("made read-only", "/", e);
	return 0;
}

int view_build(const struct view_plan *plan, struct error *e)
{
	struct host host;
	int r = pick_up_host(plan, &host, e);

	if (r == 0)
		r = make_root(plan->ground, e);
	if (r == 0)
		r = make_devices(e);
	if (r == 0)
		r = show_host(plan->base, &host, e);
	if (r == 0)
		r = view_users_show(plan->uid, e);
	if (r == 0)
		r = mount_private_directories(plan->tmp_bytes, e);
	if (r == 0)
		r = show_more(plan->base, &host, e);
	if (r == 0)
		r = change_root(e);
	if (r == 0)
		r = view_take_handed(plan, e);
	if (r == 0)
		r = mount_kernels(plan->own_pts, e);
	return r == 0 ? close_root(e) : r;
}

int view_enter_cwd(const struct handed *h, struct error *e)
{
	struct stat here, there;

	if (chdir(h->cwd_path) < 0)
		return error_errno(e, -errno,
				   "%s: the guest cannot enter the working directory; call with "
				   "--rw and a directory of your own (as somebody else than "
				   "root), or work in one that others may enter (chmod o+x)",
				   h->cwd_path);
	if (strcmp(h->cwd_path, "/") == 0)
		return 0;
	if (fstat(h->cwd, &there) < 0 || stat(".", &here) < 0 || here.st_ino != there.st_ino ||
	    here.st_dev != there.st_dev)
		return error_set(e, -EXDEV,
				 "%s: is another directory for a guest than for the caller; call "
				 "from one that the host has there, or give it with --ro",
				 h->cwd_path);
	return 0;
}

static int verify_root(pid_t pid, struct error *e)
{
	struct stat own, theirs;
	struct statfs fs;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (statfs(path, &fs) < 0 || stat(path, &theirs) < 0 || stat("/", &own) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", path);
	if (theirs.st_dev == own.st_dev || fs.f_type != TMPFS_MAGIC || !(fs.f_flags & ST_RDONLY) ||
	    !(fs.f_flags & ST_NOSUID))
		return error_set(e, -ESTALE, "the guest has no read-only root of its own");
	return 0;
}

int view_verify(pid_t pid, int ground, int *ret_mounts, struct error *e)
{
	struct stat own, theirs, shared;
	char path[32];
	int r = verify_root(pid, e);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	*ret_mounts = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_mounts < 0 || fstat(*ret_mounts, &theirs) < 0 || fstat(ground, &shared) < 0 ||
	    stat("/proc/self/ns/mnt", &own) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", path);
	if (theirs.st_ino == own.st_ino)
		return error_set(e, -ESTALE, "the guest is in the host's mount namespace");
	if (theirs.st_ino == shared.st_ino)
		return error_set(e, -ESTALE,
				 "the guest is in the mount namespace that all views begin with");
	return 0;
}
