/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/pair.h"

#include <errno.h>
#include <sys/socket.h>

int pair_send(int fd, const void *record, size_t size)
{
	ssize_t n = send(fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
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

int pair_answer(int fd, enum pair_verb verb, struct pair_reply *reply, struct error *e)
{
	int r;

	do
		r = pair_receive(fd, reply, sizeof(*reply));
	while (r == 0 && reply->verb != PAIR_STOP && reply->to != verb);
	if (r < 0)
		return error_errno(e, -ECONNRESET, "the daemon is gone");
	if (reply->verb == PAIR_STOP)
		return error_set(e, -ECANCELED, "stopped while starting (%s)",
				 ended_names[reply->stop % ENDED_COUNT]);
	if (reply->verb == PAIR_REFUSED)
		return error_set(e, -EACCES, "%s", reply->refused.text);
	return 0;
}

int pair_call(int fd, const struct pair_ask *ask, struct pair_reply *reply, struct error *e)
{
	if (pair_send(fd, ask, sizeof(*ask)) < 0)
		return error_errno(e, -ECONNRESET, "the daemon is gone");
	return pair_answer(fd, ask->verb, reply, e);
}
