/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/fd.h"

/* The client's end does not block; that of the guest is as any program expects it. */
static int make_pipe(int ends[2], int client_end, struct error *e)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(e, -errno, "cannot make a pipe for the terminal");
	fcntl(ends[client_end], F_SETFL, O_NONBLOCK);
	return 0;
}

static int relay_open(struct relay *r, int stream, struct error *e)
{
	int output = stream != STDIN_FILENO, ends[2];
	int result = make_pipe(ends, !output, e);

	if (result < 0)
		return result;
	r->from = output ? ends[0] : stream;
	r->to = output ? stream : ends[1];
	r->guest_end = ends[output];
	if (!output) /* in the background, read(2) fails instead of stopping the client */
		signal(SIGTTIN, SIG_IGN);
	return 0;
}

int relays_open(struct relays *r, int fds[3], struct error *e)
{
	for (int i = 0; i < 3; i++) {
		int result = 0;

		fds[i] = i;
		if (!isatty(i))
			continue;
		result = relay_open(&r->relay[i], i, e);
		if (result < 0)
			return result;
		fds[i] = r->relay[i].guest_end;
	}
	return 0;
}

static void close_end(int *fd)
{
	if (*fd > STDERR_FILENO)
		close(*fd);
	*fd = -1;
}

static void relay_close(struct relay *r)
{
	close_end(&r->from);
	close_end(&r->to);
	close_end(&r->guest_end);
}

void relays_close(struct relays *r)
{
	for (int i = 0; i < 3; i++)
		relay_close(&r->relay[i]);
}

void relays_close_guest_ends(struct relays *r)
{
	for (int i = 0; i < 3; i++)
		close_end(&r->relay[i].guest_end);
}

static int again(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* One read when the buffer is empty, one write when it is not. */
static void relay_step(struct relay *r)
{
	ssize_t n;

	if (r->used == 0) {
		n = read(r->from, r->buf, sizeof(r->buf));
		if (n > 0)
			r->used = (size_t)n;
	} else {
		n = write(r->to, r->buf + r->done, r->used - r->done);
		if (n > 0)
			r->done += (size_t)n;
		if (r->done == r->used)
			r->done = r->used = 0;
	}
	if (n <= 0 && !again(n))
		relay_close(r);
}

static struct pollfd relay_poll(const struct relay *r)
{
	if (r->used > 0)
		return (struct pollfd){ .fd = r->to, .events = POLLOUT };
	return (struct pollfd){ .fd = r->from, .events = POLLIN };
}

int relays_copy(struct relays *r, int sock, const sigset_t *waiting)
{
	struct pollfd fds[4] = { [3] = { .fd = sock, .events = POLLIN } };

	for (;;) {
		for (int i = 0; i < 3; i++)
			fds[i] = relay_poll(&r->relay[i]);
		fds[3].revents = 0;
		if (ppoll(fds, 4, NULL, waiting) < 0)
			return errno != EINTR;
		if (fds[3].revents)
			return 1;
		for (int i = 0; i < 3; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				relay_step(&r->relay[i]);
	}
}

static void relay_drain(struct relay *r)
{
	ssize_t n;

	if (r->from < 0)
		return;
	n = (ssize_t)(r->used - r->done);
	do {
		if (write_whole(r->to, r->buf + r->done, (size_t)n) < 0)
			return;
		r->done = 0;
		do
			n = read(r->from, r->buf, sizeof(r->buf));
		while (n < 0 && errno == EINTR);
	} while (n > 0);
}

void relays_drain(struct relays *r)
{
	relay_drain(&r->relay[STDOUT_FILENO]);
	relay_drain(&r->relay[STDERR_FILENO]);
}
