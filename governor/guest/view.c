/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/view_handed.h"
#include "governor/guest/view_make.h"
#include "governor/guest/view_users.h"

/* ---- what of the host is looked at anew for every guest ---- */

/* Trees of mounts, closed already, that are nowhere yet; they go at exec. */
struct host {
	int places[VIEW_BASE_MAX]; /* of those that are no links */
	int resolver;		   /* -1 = it is in one of them, or the guest may not ask */
	char resolver_path[PATH_MAX];
};

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
	if (view_base_has(plan->start.base, ret->resolver_path))
		return 0;
	return view_pick_up(fd, "", AT_EMPTY_PATH, ret->resolver_path, &ret->resolver, e);
}

/* In the host's namespace. */
static int pick_up_host(const struct view_plan *plan, struct host *ret, struct error *e)
{
	const struct view_base *b = plan->start.base;
	int r = pick_up_resolver(plan, ret, e);

	return r == 0 ? view_pick_up_places(b, b->n_built_in, b->n_places, ret->places, e) : r;
}

/* The places of the configuration may lie in what the guest has of its own. */
static int show_host(const struct view_plan *plan, const struct host *host, struct error *e)
{
	const struct view_base *b = plan->start.base;
	int r = view_show_places(b, b->n_built_in, b->n_places, host->places, e);

	if (r < 0 || host->resolver < 0)
		return r;
	r = view_make_mount_point(host->resolver_path + 1, false, e);
	return r < 0 ? r : view_show_tree(host->resolver, host->resolver_path, e);
}

/* ---- the kernel's own ---- */

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

static int enter_root(const struct view_plan *plan, struct error *e)
{
	if (plan->prepared < 0)
		return view_start_make(&plan->start, e);
	return view_start_enter(plan->prepared, plan->prepared_tmp_bytes, &plan->start, e);
}

int view_build(const struct view_plan *plan, struct error *e)
{
	struct host host;
	int r = pick_up_host(plan, &host, e);

	if (r == 0)
		r = enter_root(plan, e);
	if (r == 0)
		r = view_users_show(plan->uid, e);
	if (r == 0)
		r = show_host(plan, &host, e);
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
	struct stat theirs, shared;
	char path[32];
	int r = verify_root(pid, e);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	*ret_mounts = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_mounts < 0 || fstat(*ret_mounts, &theirs) < 0 || fstat(ground, &shared) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", path);
	if (theirs.st_ino == shared.st_ino)
		return error_set(e, -ESTALE,
				 "the guest is in the mount namespace that all views begin with");
	return 0;
}
