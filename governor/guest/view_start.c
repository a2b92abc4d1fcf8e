/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_start.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/units.h"
#include "governor/guest/view_ground.h"
#include "governor/guest/view_make.h"

#define ROOT_OPTIONS   "mode=755,size=1M,nr_inodes=4096"
#define PRIVATE_INODES 65536
#define PRIVATE_FLAGS  (MS_NOSUID | MS_NODEV)

/* ---- the empty root, in a namespace of its own ---- */

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

/* ---- the private directories ---- */

static const char *const private_directories[] = { "tmp", "var/tmp", "dev/shm" };

static int mount_private_directories(unsigned long flags, uint64_t bytes, struct error *e)
{
	char options[96], size[32] = "50%";

	if (bytes != LIMIT_INFINITY)
		snprintf(size, sizeof(size), "%" PRIu64, bytes);
	snprintf(options, sizeof(options), "mode=1777,size=%s,nr_inodes=%d", size, PRIVATE_INODES);
	for (size_t i = 0; i < ARRAY_SIZE(private_directories); i++)
		if (mount("tmpfs", private_directories[i], "tmpfs", PRIVATE_FLAGS | flags,
			  options) < 0)
			return view_cannot("mounted", private_directories[i], e);
	return 0;
}

/* ---- the whole ---- */

/* As switch_root(8) does; what stays beneath is empty. */
static int change_root(struct error *e)
{
	if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return error_errno(e, -errno, "the guest's root cannot be entered");
	return 0;
}

int view_start_make(const struct view_start *start, struct error *e)
{
	const struct view_base *b = start->base;
	int trees[VIEW_BASE_MAX];
	int r = view_pick_up_places(b, 0, b->n_built_in, trees, e);

	umask(022);
	if (r == 0)
		r = make_root(start->ground, e);
	if (r == 0)
		r = make_devices(e);
	if (r == 0)
		r = view_show_places(b, 0, b->n_built_in, trees, e);
	if (r == 0)
		r = mount_private_directories(0, start->tmp_bytes, e);
	return r == 0 ? change_root(e) : r;
}

int view_start_enter(int made, uint64_t tmp_bytes, const struct view_start *start, struct error *e)
{
	umask(022);
	if (setns(made, CLONE_NEWNS) < 0)
		return error_errno(e, -errno, "the mount namespace cannot be entered");
	return tmp_bytes == start->tmp_bytes
		       ? 0
		       : mount_private_directories(MS_REMOUNT, start->tmp_bytes, e);
}
