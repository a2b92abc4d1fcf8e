/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/units.h"
#include "governor/view_handed.h"
#include "governor/view_make.h"
#include "governor/view_users.h"

/* Where the new root is until it is the root: there for sure, and of no use to the child. */
#define SCAFFOLD "/run/harpe-gov"

#define ROOT_OPTIONS   "mode=755,size=1M,nr_inodes=4096"
#define PRIVATE_INODES 65536

/* ---- step 1: the empty root ---- */

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

static int make_root(struct error *e)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_errno(e, -errno, "mounts cannot be made private");
	if (mount("harpe-gov", SCAFFOLD, "tmpfs", MS_NOSUID | MS_NOEXEC, ROOT_OPTIONS) < 0 ||
	    chdir(SCAFFOLD) < 0)
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

/* ---- step 2: what everybody sees of the host ---- */

static struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						MOUNT_ATTR_NODEV };

static int bind_place(const struct view_place *p, struct error *e)
{
	const char *path = p->path + 1; /* below the scaffold */
	int r;

	if (p->link[0])
		return symlink(p->link, path) < 0 ? view_cannot("made", p->path, e) : 0;
	r = view_make_mount_point(path, p->is_directory, e);
	if (r < 0)
		return r;
	if (mount(p->path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return error_errno(e, -errno, "%s cannot be shown to the guest", p->path);
	return 0;
}

/* The file that /etc/resolv.conf points to, where that leads out of the view. */
static int bind_resolver(const struct view_plan *plan, struct error *e)
{
	_cleanup_close_ int fd = open("/etc/resolv.conf", O_PATH | O_CLOEXEC);
	char link[32], path[PATH_MAX];
	ssize_t n;
	int r;

	if (!plan->resolver || fd < 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return error_errno(e, -errno, "/etc/resolv.conf");
	path[n] = '\0';
	if (view_base_has(plan->base, path))
		return 0;
	r = view_make_mount_point(path + 1, false, e);
	if (r == 0 && (mount(path, path + 1, NULL, MS_BIND, NULL) < 0 ||
		       mount_setattr(AT_FDCWD, path + 1, 0, &closed, sizeof(closed)) < 0))
		r = error_errno(e, -errno, "%s cannot be shown to the guest", path);
	return r;
}

/* The built-in places, closed all at once; not yet what the guest has of its own. */
static int show_host(const struct view_plan *plan, struct error *e)
{
	/* The root has the devices, and is still to be filled. */
	struct mount_attr root = { .attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV };
	int r = 0;

	for (size_t i = 0; i < plan->base->n_built_in && r == 0; i++)
		r = bind_place(&plan->base->places[i], e);
	if (r < 0)
		return r;
	if (mount_setattr(AT_FDCWD, ".", AT_RECURSIVE, &closed, sizeof(closed)) < 0 ||
	    mount_setattr(AT_FDCWD, ".", 0, &root, sizeof(root)) < 0)
		return view_cannot("made read-only", "/", e);
	return 0;
}

/* ---- step 3: the guest's own ---- */

static const struct {
	const char *path;
	unsigned int mode;
	unsigned long flags;
} private_directories[] = {
	{ "tmp", 01777, 0 },
	{ "var/tmp", 01777, 0 },
	{ "dev/shm", 01777, 0 },
	{ "run", 0755, MS_NOEXEC },
};

static int mount_private_directories(uint64_t bytes, struct error *e)
{
	char options[96], size[32] = "50%";

	if (bytes != LIMIT_INFINITY)
		snprintf(size, sizeof(size), "%" PRIu64, bytes);
	for (size_t i = 0; i < ARRAY_SIZE(private_directories); i++) {
		snprintf(options, sizeof(options), "mode=%o,size=%s,nr_inodes=%d",
			 private_directories[i].mode, size, PRIVATE_INODES);
		if (mount("tmpfs", private_directories[i].path, "tmpfs",
			  MS_NOSUID | MS_NODEV | private_directories[i].flags, options) < 0)
			return view_cannot("mounted", private_directories[i].path, e);
	}
	return 0;
}

/* Those of the configuration may lie in them. */
static int show_more(const struct view_plan *plan, struct error *e)
{
	const struct view_base *b = plan->base;
	int r = 0;

	for (size_t i = b->n_built_in; i < b->n_places && r == 0; i++) {
		r = bind_place(&b->places[i], e);
		if (r == 0 && mount_setattr(AT_FDCWD, b->places[i].path + 1, AT_RECURSIVE, &closed,
					    sizeof(closed)) < 0)
			r = view_cannot("made read-only", b->places[i].path, e);
	}
	return r == 0 ? bind_resolver(plan, e) : r;
}

/* ---- step 4: it becomes the root ---- */

static int change_root(struct error *e)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
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
	int r = make_root(e);

	if (r == 0)
		r = make_devices(e);
	if (r == 0)
		r = show_host(plan, e);
	if (r == 0)
		r = view_users_show(plan->uid, e);
	if (r == 0)
		r = mount_private_directories(plan->tmp_bytes, e);
	if (r == 0)
		r = show_more(plan, e);
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

int view_verify(pid_t pid, struct error *e)
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
