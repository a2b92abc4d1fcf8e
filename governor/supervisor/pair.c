/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/pair.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/wire.h"

int pair_send(int fd, const void *record, size_t size)
{
	ssize_t n = send(fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

int pair_send_with(int fd, const void *record, size_t size, const struct spaces *with)
{
	int fds[SPACES_MAX];
	size_t n_fds = spaces_list(with, fds);

	return wire_try_send(fd, record, size, fds, n_fds);
}

int pair_receive(int fd, void *record, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, record, size, MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	return (size_t)n == size ? 0 : -EPROTO;
}

int pair_receive_with(int fd, void *record, size_t size, struct spaces *ret_with)
{
	int fds[WIRE_FDS_MAX], r;
	size_t n_fds;
	ssize_t n = wire_receive(fd, record, size, fds, &n_fds);

	*ret_with = SPACES_NULL;
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -ECONNRESET;
	r = (size_t)n == size ? spaces_take(fds, n_fds, ret_with) : -EPROTO;
	while (r < 0 && n_fds > 0)
		close(fds[--n_fds]);
	return r;
}

/* Those that come with a late answer, or with none that was asked for, are closed. */
int pair_answer(int fd, enum pair_verb verb, struct pair_reply *reply, struct spaces *ret_with,
		struct error *e)
{
	_cleanup_(spaces_close) struct spaces with = SPACES_NULL;
	int r;

	do {
		spaces_close(&with);
		r = pair_receive_with(fd, reply, sizeof(*reply), &with);
	} while (r == 0 && reply->verb != PAIR_STOP && reply->to != verb);
	if (r < 0)
		return error_errno(e, -ECONNRESET, "the daemon is gone");
	if (reply->verb == PAIR_STOP)
		return error_set(e, -ECANCELED, "stopped while starting (%s)",
				 ended_names[reply->stop % ENDED_COUNT]);
	if (reply->verb == PAIR_REFUSED)
		return error_set(e, -EACCES, "%s", reply->refused.text);
	if (ret_with) {
		*ret_with = with;
		with = SPACES_NULL;
	}
	return 0;
}

int pair_call(int fd, const struct pair_ask *ask, struct pair_reply *reply, struct error *e)
{
	if (pair_send(fd, ask, sizeof(*ask)) < 0)
		return error_errno(e, -ECONNRESET, "the daemon is gone");
	return pair_answer(fd, ask->verb, reply, NULL, e);
}
