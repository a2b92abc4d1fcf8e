/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/connect.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/state.h"

#define PATIENCE_MSEC 3500 /* until there is a daemon behind the socket; 5 s for all in all */
#define PAUSE_MSEC    50

/* ---- what the user can do about it ---- */

static int is_booted(void)
{
	return access("/run/systemd/system", F_OK) == 0;
}

static const struct {
	int number;
	const char *remedy;
} remedies[] = {
	{ ENOENT, "it is not there: systemctl start harpe-gov.socket" },
	{ ECONNREFUSED, "nobody listens there: systemctl start harpe-gov.socket" },
	{ EACCES,
	  "no permission: join group harpe-gov (usermod -aG harpe-gov USER, as root), then log "
	  "in again or restart the service" },
};

static int refuse_connect(const char *path, int number, struct error *e)
{
	if (number == ENOENT && !is_booted())
		return error_set(e, -number,
				 "cannot connect to %s: systemd is not running here (no "
				 "/run/systemd/system), and without it there is no harpe-gov",
				 path);
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].number == number)
			return error_set(e, -number, "cannot connect to %s: %s", path,
					 remedies[i].remedy);
	return error_errno(e, -number, "cannot connect to %s", path);
}

static int refuse_absent(const char *refusal, struct error *e)
{
	if (refusal[0])
		return error_set(e, -ENOTCONN, "harpe-gov.service does not start: %s", refusal);
	return error_set(
		e, -ENOTCONN,
		"harpe-gov.service is not running: see systemctl status harpe-gov.service, "
		"then systemctl start harpe-gov.service");
}

/* ---- connecting ---- */

/* The state file lies beside the socket. */
static int state_path(const char *socket, char *path, size_t size)
{
	const char *slash = strrchr(socket, '/');
	int len = slash ? (int)(slash - socket) + 1 : 0;
	const char *name = strrchr(STATE_FILE, '/') + 1;

	return (size_t)snprintf(path, size, "%.*s%s", len, socket, name) < size;
}

static enum state look(const char *socket, char refusal[ERROR_TEXT_MAX])
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(STATE_FILE)];

	refusal[0] = '\0';
	return state_path(socket, path, sizeof(path)) ? state_read(path, refusal, ERROR_TEXT_MAX)
						      : STATE_UNKNOWN;
}

/* systemd starts the daemon when somebody connects, which takes a moment; nothing was said yet that
 * a later daemon could act on. Where the state is unknown, waiting is all there is. */
static int wait_daemon(const char *socket, int patience_msec, struct error *e)
{
	char refusal[ERROR_TEXT_MAX];
	uint64_t end = clock_usec(CLOCK_MONOTONIC) + (uint64_t)patience_msec * 1000;

	while (look(socket, refusal) == STATE_ABSENT) {
		if (clock_usec(CLOCK_MONOTONIC) >= end)
			return refuse_absent(refusal, e);
		poll(NULL, 0, PAUSE_MSEC);
	}
	return 0;
}

/* A full queue of callers makes connect(2) wait; not for ever when nobody takes them. */
static int connect_in_time(int sock, const struct sockaddr_un *address, struct error *e)
{
	struct timeval none = { 0 }, patience = {
		.tv_sec = PATIENCE_MSEC / 1000,
		.tv_usec = PATIENCE_MSEC % 1000 * 1000,
	};
	int r;

	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	do
		r = connect(sock, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno
											  : 0;
	while (r == -EINTR || (r == -EAGAIN && wait_daemon(address->sun_path, 0, e) == 0));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	return r == 0 || r == -EAGAIN ? r : refuse_connect(address->sun_path, -r, e);
}

int connect_daemon(const char *path, struct error *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int sock = -1;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_errno(e, -ENAMETOOLONG, "cannot connect to %s", path);
	strcpy(address.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return error_errno(e, -errno, "cannot make a socket");
	r = connect_in_time(sock, &address, e);
	if (r == 0)
		r = wait_daemon(path, PATIENCE_MSEC, e);
	return r < 0 ? r : TAKE_FD(sock);
}

int send_request(int sock, enum wire_type type, const struct request *q, const int *fds,
		 size_t n_fds, struct error *e)
{
	WIRE_BUFFER(buf);
	ssize_t len = wire_encode(type, request_fields, request_n_fields, q, buf, sizeof(buf));
	int r = (int)len;

	if (len > 0)
		r = wire_send(sock, buf, (size_t)len, fds, n_fds);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return error_errno(e, r, "cannot send the request to the daemon");
	return 0;
}

ssize_t receive_answer(int sock, void *buf, int *ret_fd, struct error *e)
{
	int fds[WIRE_FDS_MAX];
	size_t n_fds;
	ssize_t n = wire_receive(sock, buf, WIRE_SIZE_MAX, fds, &n_fds);

	/* The peer left our request unread; the kernel says so once, before what the peer sent. */
	if (n == -ECONNRESET)
		n = wire_receive(sock, buf, WIRE_SIZE_MAX, fds, &n_fds);
	if (n < 0)
		return error_errno(e, (int)n, "cannot read the daemon's answer");
	if (ret_fd)
		*ret_fd = n_fds > 0 ? fds[--n_fds] : -1;
	while (n_fds > 0)
		close(fds[--n_fds]);
	return n;
}
