/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_users.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/fd.h"

/* passwd(5), group(5). Names of other users are nothing that a guest needs to know. */
#define PASSWD                                                                                     \
	"root:x:0:0:root:/root:/usr/sbin/nologin\n"                                                \
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"                             \
	"guest:x:%" PRIu32 ":%" PRIu32 ":guest of harpe-gov:/tmp:/bin/sh\n"
#define GROUP "root:x:0:\nnogroup:x:65534:\nguest:x:%" PRIu32 ":\n"

/* A file of the new root that is there under the name @path alone. */
static int show(const char *path, const char *text, struct error *e)
{
	static const char draft[] = "draft";
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_close_ int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : write_whole(fd, text, strlen(text));

	if (r == 0 && mount(draft, path, NULL, MS_BIND, NULL) < 0)
		r = -errno;
	if (r == 0 && mount_setattr(AT_FDCWD, path, 0, &read_only, sizeof(read_only)) < 0)
		r = -errno;
	if (r == -ENOENT) /* the host has none that must be replaced */
		r = 0;
	if (r == 0 && unlink(draft) < 0)
		r = -errno;
	return r < 0 ? error_errno(e, r, "/%s of the guest's view cannot be made", path) : 0;
}

int view_users_show(uint32_t uid, struct error *e)
{
	char text[512];
	int r;

	snprintf(text, sizeof(text), PASSWD, uid, uid);
	r = show("etc/passwd", text, e);
	snprintf(text, sizeof(text), GROUP, uid);
	return r == 0 ? show("etc/group", text, e) : r;
}
