/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unix sockets of others, which send or start programs for whoever asks. */
#include <errno.h>
#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define WALK_MAX    8192 /* files */
#define WALK_FDS    16
#define ABSTRACT_AT '@'

static long connect_by(int type, const struct sockaddr_un *sun, socklen_t len)
{
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), saved;
	long r;

	if (fd < 0)
		return -1;
	r = connect(fd, (const struct sockaddr *)sun, len);
	saved = errno;
	close(fd);
	errno = saved;
	return r == 0 || saved == EAGAIN ? 0 : -1; /* EAGAIN: it lets us in, but is busy */
}

/* @path may be "@name", of an abstract one. Whatever type it is of. */
static long connect_to(const char *path)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	long r = -1;

	if (len >= sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sun.sun_path, path, len);
	if (path[0] == ABSTRACT_AT)
		sun.sun_path[0] = '\0';
	else
		len++;
	len += offsetof(struct sockaddr_un, sun_path);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		r = connect_by(types[i], &sun, (socklen_t)len);
		if (r == 0 || errno != EPROTOTYPE)
			break;
	}
	return r;
}

static void try_connect(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for (char *path; (path = next_word(&aim));)
		seen_attempt(s, path, connect_to(path));
}

/* ---- whatever there is ---- */

static struct seen *walk_seen;
static int walked;

static int look_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	if (S_ISSOCK(st->st_mode))
		seen_attempt(walk_seen, path, connect_to(path));
	return ++walked >= WALK_MAX;
}

static void try_all_sockets(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	walk_seen = s;
	errno = ENOENT;
	seen_attempt(s, aim, -1);
	for (char *path; (path = next_word(&aim));)
		if (nftw(path, look_at, WALK_FDS, FTW_PHYS | FTW_MOUNT) > 0) {
			seen_set(s, "nothing", "more than %d files in %s", WALK_MAX, path);
			return;
		}
}

const struct probe door_probes[] = {
	{ "doors.resolved",
	  try_connect,
	  { 0 },
	  "/run/systemd/resolve/io.systemd.Resolve,"
	  "/run/systemd/resolve/io.systemd.Resolve.Monitor",
	  false },
	{ "doors.bus",
	  try_connect,
	  { 0 },
	  "/run/dbus/system_bus_socket,/var/run/dbus/system_bus_socket",
	  false },
	{ "doors.containers",
	  try_connect,
	  { 0 },
	  "/run/docker.sock,/var/run/docker.sock,/run/containerd/containerd.sock,"
	  "/run/podman/podman.sock,/run/crio/crio.sock,/run/libvirt/libvirt-sock,"
	  "/run/lxd.socket,/run/k3s/containerd/containerd.sock",
	  false },
	{ "doors.services",
	  try_connect,
	  { 0 },
	  "/run/systemd/private,/run/systemd/notify,/run/systemd/journal/socket,"
	  "/run/systemd/journal/stdout,/run/systemd/journal/dev-log,/dev/log,/run/udev/control,"
	  "/run/nscd/socket,/run/avahi-daemon/socket,/run/cups/cups.sock,/run/snapd.socket,"
	  "/run/harpe-gov/socket,/tmp/.X11-unix/X0,/run/systemd/userdb/io.systemd.DynamicUser",
	  false },
	{ "doors.all", try_all_sockets, { 0 }, "/run,/tmp,/var/tmp,/dev,.", false },
	{ "doors.path", try_connect, { 0 }, NULL, false },
	{ "doors.abstract", try_connect, { 0 }, NULL, false },
	{ 0 },
};
