/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_ground.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"

/* Where it is made: there for sure. */
#define SCAFFOLD "/run/harpe-gov"

/* In the namespace that is to become it. */
static int lay(void)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						 MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("harpe-gov", SCAFFOLD, "tmpfs", 0, "mode=755,size=4K,nr_inodes=4") < 0 ||
	    chdir(SCAFFOLD) < 0 || mkdir("." VIEW_GROUND_ROOT, 0755) < 0 ||
	    mount_setattr(AT_FDCWD, ".", 0, &closed, sizeof(closed)) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	return 0;
}

int view_ground_make(struct error *e)
{
	_cleanup_close_ int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), ground = -1;
	int r = own < 0 || unshare(CLONE_NEWNS) < 0 ? -errno : 0;

	if (r < 0)
		return error_errno(e, r, "no mount namespace for the guests' views");
	ground = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	r = ground < 0 ? -errno : lay();
	if (setns(own, CLONE_NEWNS) < 0)
		_exit(1); /* nothing may go on in there */
	return r < 0 ? error_errno(e, r, "the mount namespace for the guests' views")
		     : TAKE_FD(ground);
}
