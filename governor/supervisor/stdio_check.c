/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/stdio_check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "common/fd.h"

static int refuse(const char *name, const char *what, struct error *e)
{
	return error_set(e, -EINVAL,
			 "%s is %s, which a guest may not have; use a file, a pipe or /dev/null",
			 name, what);
}

static bool is_harmless_device(dev_t device)
{
	/* Documentation/admin-guide/devices.txt, major 1 */
	static const unsigned int minors[] = { 3, 5, 7, 8, 9 }; /* null zero full random urandom */

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++)
		if (device == makedev(1, minors[i]))
			return true;
	return false;
}

static int get_option(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

static int check_socket(int fd, const char *name, struct error *e)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	if (get_option(fd, SO_DOMAIN) != AF_UNIX)
		return refuse(name, "a network socket", e);
	if (get_option(fd, SO_TYPE) != SOCK_STREAM)
		return refuse(name, "a Unix socket that is no stream", e);
	if (get_option(fd, SO_ACCEPTCONN) != 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
		return refuse(name, "a Unix socket that is not connected", e);
	return 0;
}

static bool is_one_of(long type, const long *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (type == types[i])
			return true;
	return false;
}

/* What looks like a regular file in procfs, sysfs, cgroupfs, debugfs, nsfs and their like is a door
 * to the kernel. All of them have no size: statfs(2) is simple_statfs() of the kernel's fs/libfs.c,
 * which knows none. That also holds for those that are still to be written, which no list would
 * name. The first list has those that tell a size all the same, the second what may have none. */
static bool is_kernels_own(const struct statfs *fs)
{
	static const long sized[] = { EFIVARFS_MAGIC, HUGETLBFS_MAGIC };
	static const long storage[] = { TMPFS_MAGIC, RAMFS_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC };

	if (fs->f_blocks > 0)
		return is_one_of(fs->f_type, sized, ARRAY_SIZE(sized));
	return !is_one_of(fs->f_type, storage, ARRAY_SIZE(storage));
}

static int check_file(int fd, const char *name, struct error *e)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", name);
	return is_kernels_own(&fs) ? refuse(name, "a file of the kernel's", e) : 0;
}

int stdio_check(int fd, const char *name, struct error *e)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", name);
	if (flags & O_PATH)
		return refuse(name, "an O_PATH descriptor", e);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return check_file(fd, name, e);
	case S_IFIFO:
		return 0;
	case S_IFSOCK:
		return check_socket(fd, name, e);
	case S_IFCHR:
		return is_harmless_device(st.st_rdev) ? 0 : refuse(name, "a terminal or device", e);
	case S_IFDIR:
		return refuse(name, "a directory", e);
	default:
		return refuse(name, "of a kind that is not allowed", e);
	}
}
