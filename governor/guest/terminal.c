/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <termios.h>
#include <unistd.h>

#include "common/fd.h"

#define PTYS_MAX "64" /* that the guest may have: they are counted host-wide */

static int set_options(int fs, uint32_t uid)
{
	char owner[16];
	const char *const options[][2] = {
		{ "uid", owner },    { "gid", owner },	    { "mode", "600" },
		{ "max", PTYS_MAX }, { "ptmxmode", "666" },
	};

	snprintf(owner, sizeof(owner), "%" PRIu32, uid);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return -errno;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

/* Every devpts is an instance of its own (filesystems/devpts.rst). */
static int make_devpts(uint32_t uid)
{
	_cleanup_close_ int fs = fsopen("devpts", FSOPEN_CLOEXEC);
	int r, mount;

	if (fs < 0)
		return -errno;
	r = set_options(fs, uid);
	if (r < 0)
		return r;
	mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return mount < 0 ? -errno : mount;
}

static int open_pty(struct terminal *t)
{
	int unlocked = 0;

	t->master = openat(t->mount, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || ioctl(t->master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	t->slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return t->slave < 0 ? -errno : 0;
}

int terminal_open(struct terminal *t, uint32_t uid, const struct terminal_look *look,
		  struct error *e)
{
	int r = t->mount = make_devpts(uid);

	if (r < 0)
		return error_errno(e, r, "no devpts for the guest's terminal");
	r = open_pty(t);
	if (r < 0)
		return error_errno(e, r, "no pty for the guest's terminal");
	if (tcsetattr(t->slave, TCSANOW, &look->modes) < 0 ||
	    ioctl(t->slave, TIOCSWINSZ, &look->size) < 0)
		return error_errno(e, -errno, "the guest's terminal cannot be set up");
	return 0;
}

int terminal_enter(int mount, int slave, struct error *e)
{
	if (move_mount(mount, "", AT_FDCWD, "/dev/pts", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_errno(e, -errno, "/dev/pts: the guest's own cannot be mounted");
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return error_errno(e, -errno, "the guest's terminal cannot control it");
	return 0;
}

static void close_one(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

void terminal_close_slave(struct terminal *t)
{
	close_one(&t->mount);
	close_one(&t->slave);
}

void terminal_send_master(struct terminal *t, int client)
{
	WIRE_BUFFER(buf);
	ssize_t n;

	if (t->master < 0)
		return;
	n = wire_encode(WIRE_TERMINAL, NULL, 0, NULL, buf, sizeof(buf));
	if (n > 0)
		wire_send(client, buf, (size_t)n, &t->master, 1);
	close_one(&t->master);
}

void terminal_close(struct terminal *t)
{
	terminal_close_slave(t);
	close_one(&t->master);
}
