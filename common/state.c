/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"

#define STATE_PATH_MAX 256

/* Always a new file, which nobody can open before it is locked. */
static int make_new(const char *name)
{
	int fd;

	if (unlink(name) < 0 && errno != ENOENT)
		return -errno;
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int put_in_place(int fd, const char *name, const char *path)
{
	return fchmod(fd, 0644) < 0 || rename(name, path) < 0 ? -errno : 0;
}

static int lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_SETLK, &lock) < 0 ? -errno : 0;
}

int state_hold(const char *path, struct error *e)
{
	_cleanup_close_ int fd = -1;
	char name[STATE_PATH_MAX];
	int r;

	snprintf(name, sizeof(name), "%s.new", path);
	r = fd = make_new(name);
	if (r >= 0)
		r = lock(fd);
	if (r >= 0)
		r = put_in_place(fd, name, path);
	if (r < 0) {
		unlink(name);
		return error_errno(e, r, "%s: cannot be written", path);
	}
	return TAKE_FD(fd);
}

static int is_held(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

void state_refuse(const char *path, const char *sentence)
{
	_cleanup_close_ int old = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), fd = -1;
	char name[STATE_PATH_MAX];

	if (old >= 0 && is_held(old))
		return;
	snprintf(name, sizeof(name), "%s.new", path);
	fd = make_new(name);
	if (fd < 0)
		return;
	if (write_whole(fd, sentence, strlen(sentence)) < 0 || put_in_place(fd, name, path) < 0)
		unlink(name);
}

enum state state_read(const char *path, char *ret_refusal, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[ERROR_TEXT_MAX];
	ssize_t n;

	ret_refusal[0] = '\0';
	if (fd < 0)
		return STATE_UNKNOWN;
	if (is_held(fd))
		return STATE_SERVES;
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text_escape(text, ret_refusal, size);
	return STATE_ABSENT;
}
