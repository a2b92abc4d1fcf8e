/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/stdio_check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "common/fd.h"

#define MQUEUE_MAGIC 0x19800202 /* ipc/mqueue.c; in no header */

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

/* They look like regular files and are doors to kernel objects. */
static int check_file(int fd, const char *name, struct error *e)
{
	static const long objects[] = { NSFS_MAGIC, PROC_SUPER_MAGIC, MQUEUE_MAGIC,
					SECRETMEM_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return error_errno(e, -errno, "%s cannot be looked at", name);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		if (fs.f_type == objects[i])
			return refuse(name, "a file of the kernel's", e);
	return 0;
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
