/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/connect.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/fd.h"

/* What the user can do about it. */
static const struct {
	int number;
	const char *remedy;
} remedies[] = {
	{ ENOENT, "the daemon is not running: systemctl start harpe-gov.socket" },
	{ ECONNREFUSED, "the daemon is not running: systemctl start harpe-gov.socket" },
	{ EACCES,
	  "no permission: join group harpe-gov (usermod -aG harpe-gov USER, as root), then log "
	  "in again or restart the service" },
};

static int refuse_connect(const char *path, int number, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].number == number)
			return error_set(e, -number, "cannot connect to %s: %s", path,
					 remedies[i].remedy);
	return error_errno(e, -number, "cannot connect to %s", path);
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
	do
		r = connect(sock, (const struct sockaddr *)&address, sizeof(address));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return refuse_connect(path, errno, e);
	return TAKE_FD(sock);
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
