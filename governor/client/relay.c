/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/client/signals.h"

#define DRAIN_MAX (64u << 10) /* several times what a pty holds: somebody else writes to it */

/* How often to look whether the client came into the foreground, or the guest opened its terminal
 * again: of neither there is an event. */
static const struct timespec look_again = { .tv_sec = 1 };

/* ---- the caller's terminal ---- */

/* O_NONBLOCK on what was inherited would be the caller's as well. A user who does not own the
 * terminal (su, sudo) cannot open it anew: then a write may block. */
static int open_anew(int fd, int flags)
{
	char path[32];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own < 0 ? fd : own;
}

static int first_terminal(uint32_t terminals, const int order[3])
{
	for (int i = 0; i < 3; i++)
		if (terminals & (1u << order[i]))
			return order[i];
	return -1;
}

/* A terminal that is not ours to control (no session has it, or another) has no background. */
static int in_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp();
}

/* In the background the shell's line editor may hold the terminal: what it has switched off must
 * not be off for the guest. */
static void undo_line_editor(struct termios *t)
{
	t->c_iflag |= ICRNL | IXON;
	t->c_oflag |= OPOST | ONLCR;
	t->c_lflag |= ISIG | ICANON | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
}

void relay_open(struct relay *r, struct request *q)
{
	static const int shown_on[3] = { STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO };
	static const int typed_on[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

	for (int i = 2; i >= 0; i--)
		if (tcgetattr(i, &r->saved) == 0)
			q->terminals |= 1u << i;
	if (!q->terminals)
		return;
	/* in the background: reading fails and writing works, instead of stopping the client */
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	tcgetattr(first_terminal(q->terminals, typed_on), &r->saved);
	q->terminal.modes = r->saved;
	if (!in_foreground(first_terminal(q->terminals, typed_on)))
		undo_line_editor(&q->terminal.modes);
	r->out = open_anew(first_terminal(q->terminals, shown_on), O_WRONLY);
	if (q->terminals & 1)
		r->in = open_anew(STDIN_FILENO, O_RDONLY);
	else /* the caller's terminal stays as it is and ends the lines itself */
		q->terminal.modes.c_oflag &= (tcflag_t)~OPOST;
	ioctl(r->out, TIOCGWINSZ, &q->terminal.size);
}

void relay_enter(struct relay *r)
{
	struct termios raw;

	if (r->master < 0 || r->in < 0 || !in_foreground(r->in))
		return;
	if (!r->raw && tcgetattr(r->in, &r->saved) < 0)
		return;
	raw = r->saved;
	cfmakeraw(&raw);
	r->raw = tcsetattr(r->in, TCSANOW, &raw) == 0;
	relay_resize(r);
}

/* What was typed and not read goes: it was not meant for the shell's prompt, and answers to what
 * the guest's output asked of the terminal even less. */
void relay_leave(struct relay *r)
{
	if (!r->raw)
		return;
	r->raw = 0;
	if (!in_foreground(r->in))
		return;
	tcsetattr(r->in, TCSANOW, &r->saved);
	tcflush(r->in, TCIFLUSH);
}

int relay_resize(struct relay *r)
{
	struct winsize size;

	if (r->master < 0)
		return 0;
	if (ioctl(r->out, TIOCGWINSZ, &size) == 0)
		ioctl(r->master, TIOCSWINSZ, &size); /* signals the guest if it is another */
	return 1;
}

void relay_start(struct relay *r, int master)
{
	close_fd(&r->master);
	r->master = master;
	fcntl(r->master, F_SETFL, O_NONBLOCK);
	relay_enter(r);
}

/* ---- copying ---- */

static int again(int r)
{
	return r == -EAGAIN || r == -EINTR;
}

static int flow_read(struct flow *f, int fd)
{
	ssize_t n = read(fd, f->buf, sizeof(f->buf));

	if (n <= 0)
		return n == 0 ? -EIO : -errno;
	f->used = (size_t)n;
	return 0;
}

static int flow_write(struct flow *f, int fd)
{
	ssize_t n = write(fd, f->buf + f->done, f->used - f->done);

	if (n < 0)
		return -errno;
	f->done += (size_t)n;
	if (f->done == f->used)
		f->done = f->used = 0;
	return 0;
}

/* The caller's terminal is gone: then the guest's is, too, which its kernel tells it by SIGHUP. */
static void hang_up(struct relay *r)
{
	close_fd(&r->master);
	r->master = -1;
}

/* Where in what was typed is the key that stops the guest? -1: nowhere. The guest's own session
 * stands in the foreground of its pty unless it has job control. */
static ssize_t find_stop_key(const struct relay *r)
{
	const struct flow *f = &r->to_guest;
	struct termios t;

	if (tcgetattr(r->master, &t) < 0 || !(t.c_lflag & ISIG) || t.c_cc[VSUSP] == _POSIX_VDISABLE)
		return -1;
	for (size_t i = 0; i < f->used; i++)
		if ((cc_t)f->buf[i] == t.c_cc[VSUSP])
			return tcgetpgrp(r->master) == tcgetsid(r->master) && signals_can_stop()
				       ? (ssize_t)i
				       : -1;
	return -1;
}

/* 1 = the key for SIGTSTP was pressed: what was typed behind it goes, as a terminal does it. */
static int read_keys(struct relay *r)
{
	int result = flow_read(&r->to_guest, r->in);
	ssize_t key;

	if (result < 0) {
		if (!again(result) && in_foreground(r->in))
			hang_up(r);
		else if (!again(result))
			r->raw = 0; /* whoever has the foreground now has set its own modes */
		return 0;
	}
	key = find_stop_key(r);
	if (key >= 0)
		r->to_guest.used = (size_t)key;
	return key >= 0;
}

static void read_output(struct relay *r)
{
	int result = flow_read(&r->to_caller, r->master);

	r->no_slave = result == -EIO;
	if (result < 0 && !again(result) && !r->no_slave)
		hang_up(r);
}

static void write_keys(struct relay *r)
{
	int result = flow_write(&r->to_guest, r->master);

	if (result < 0 && !again(result)) /* there is nobody to read them */
		r->to_guest.used = r->to_guest.done = 0;
}

static void write_output(struct relay *r)
{
	int result = flow_write(&r->to_caller, r->out);

	if (result < 0 && !again(result))
		hang_up(r);
}

enum { P_SOCK, P_IN, P_OUT, P_MASTER, P_COUNT };

/* poll(2) ignores descriptor -1. POLLHUP and POLLERR come unasked, so what waits for nothing is -1.
 */
static void choose(const struct relay *r, int sock, struct pollfd p[P_COUNT])
{
	short master = 0;

	for (int i = 0; i < P_COUNT; i++)
		p[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	p[P_SOCK].fd = sock;
	if (r->master < 0)
		return;
	if (r->raw && r->to_guest.used == 0)
		p[P_IN].fd = r->in;
	if (r->to_caller.used > 0)
		p[P_OUT] = (struct pollfd){ .fd = r->out, .events = POLLOUT };
	else
		master |= POLLIN;
	if (r->to_guest.used > 0)
		master |= POLLOUT;
	if (master && !r->no_slave)
		p[P_MASTER] = (struct pollfd){ .fd = r->master, .events = master };
}

/* 1 = the key for SIGTSTP was pressed. */
static int copy(struct relay *r, const struct pollfd p[P_COUNT])
{
	if (p[P_OUT].revents)
		write_output(r);
	if (p[P_MASTER].revents && r->to_guest.used > 0)
		write_keys(r);
	if (p[P_MASTER].revents && r->master >= 0 && r->to_caller.used == 0)
		read_output(r);
	return p[P_IN].revents && r->master >= 0 && read_keys(r);
}

enum relay_event relay_wait(struct relay *r, int sock, const sigset_t *waiting)
{
	struct pollfd p[P_COUNT];

	for (;;) {
		int in_background = r->master >= 0 && r->in >= 0 && !r->raw, n;

		choose(r, sock, p);
		n = ppoll(p, P_COUNT, in_background || r->no_slave ? &look_again : NULL, waiting);
		if (n < 0)
			return errno == EINTR ? RELAY_SIGNAL : RELAY_MESSAGE;
		if (p[P_SOCK].revents)
			return RELAY_MESSAGE;
		if (copy(r, p))
			return RELAY_STOP;
		if (n == 0)
			r->no_slave = 0;
		if (n == 0 && in_background)
			relay_enter(r);
	}
}

static int cut_short(void)
{
	int number;

	do
		number = signals_next();
	while (number != 0 && !signal_is_deadly(number));
	return number != 0;
}

/* A read finds all that a pty holds: the kernel looks for more before it says EAGAIN, or EIO when
 * no slave is open. */
void relay_drain(struct relay *r, const sigset_t *waiting)
{
	size_t total = 0;

	while (r->master >= 0 && total < DRAIN_MAX) {
		struct pollfd out = { .fd = r->out, .events = POLLOUT };

		if (r->to_caller.used == 0 && flow_read(&r->to_caller, r->master) < 0)
			return;
		if (ppoll(&out, 1, NULL, waiting) < 0) {
			if (errno != EINTR || cut_short())
				return;
			continue;
		}
		total += r->to_caller.used;
		write_output(r);
	}
}

static void close_anew(int *fd)
{
	if (*fd > STDERR_FILENO)
		close(*fd);
	*fd = -1;
}

void relay_close(struct relay *r)
{
	relay_leave(r);
	close_anew(&r->in);
	close_anew(&r->out);
	close_fd(&r->master);
	r->master = -1;
}
