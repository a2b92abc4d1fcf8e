/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/request.h"
#include "common/wire.h"
#include "governor/guest/cgroup_counters.h"
#include "governor/supervisor/deadline.h"
#include "governor/supervisor/pair.h"
#include "governor/supervisor/sample.h"

#define CPU_CHECK_MIN_USEC 1000u /* the finest that is worth waking up for */

static int arm(int fd, uint64_t usec)
{
	struct itimerspec t = { .it_value = clock_timespec(usec) };

	return timerfd_settime(fd, 0, &t, NULL) < 0 ? -errno : 0;
}

/* A timer that fires after @usec, or never: poll(2) ignores descriptor -1. */
static int timer_new(uint64_t usec, int *ret)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (usec == LIMIT_INFINITY)
		return 0;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = arm(fd, usec);
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 0;
}

/* The tree uses at most one second of CPU time per second and processor, so the limit cannot be
 * passed before that much time is over: one wake-up, re-armed, instead of polling. */
static uint64_t earliest_usec(uint64_t left)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t wait = left / (uint64_t)(cpus > 0 ? cpus : 1);

	return wait < CPU_CHECK_MIN_USEC ? CPU_CHECK_MIN_USEC : wait;
}

/* 1 = used up; else the timer is armed again. */
static int check_cpu(const struct watch *w, int timer)
{
	uint64_t used;

	if (cgroup_cpu_usage(w->cgroup, &used) < 0 || used >= w->cpu_usec)
		return 1; /* a limit that cannot be checked is not in force */
	return arm(timer, earliest_usec(w->cpu_usec - used)) < 0;
}

static enum ended daemon_says(int daemon)
{
	struct pair_reply reply;

	if (pair_receive(daemon, &reply, sizeof(reply)) < 0)
		return ENDED_GOVERNOR_LOST;
	if (reply.verb == PAIR_STOP && reply.stop < ENDED_COUNT)
		return (enum ended)reply.stop;
	return ENDED_GOVERNOR_LOST;
}

/* One message without its descriptors: what the kernel drops with them may be hostile and block, so
 * the deadline is running. Returns the length, 0 at the end, a negative errno. */
static ssize_t receive_bare(int client, void *buf)
{
	ssize_t n;

	deadline_begin();
	n = recv(client, buf, WIRE_SIZE_MAX, MSG_DONTWAIT | MSG_TRUNC);
	n = n < 0 ? -errno : n;
	deadline_end();
	return n;
}

static int decode_signal(const void *buf, ssize_t len, struct error *e)
{
	struct signal_order order = { 0 };
	int r = len > WIRE_SIZE_MAX ? -EPROTO : wire_type(buf, (size_t)len, e);

	if (r != WIRE_SIGNAL)
		return error_set(e, -EPROTO, "it sent something that is no signal");
	r = wire_decode(signal_fields, signal_n_fields, buf, (size_t)len, &order, e);
	if (r < 0)
		return r;
	if (!signal_is_passed(order.number))
		return error_set(e, -EPROTO, "it sent signal %u, which is not passed on",
				 order.number);
	return (int)order.number;
}

/* A flood of signals must not cost root's time as it costs the caller's. */
#define FLOOD_PAUSE_MSEC 1

/* 1 = the caller is gone, or makes no sense, which is the same: @e says what it sent. */
static int serve_client(const struct watch *w, struct error *e)
{
	WIRE_BUFFER(buf);
	ssize_t n = receive_bare(w->client, buf);
	int number;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return 1;
	number = decode_signal(buf, n, e);
	if (number < 0)
		return 1;
	if (number == SIGTSTP || number == SIGCONT)
		cgroup_freeze(w->cgroup, number == SIGTSTP, NULL); /* ENODEV: it just ended */
	else
		syscall(SYS_pidfd_send_signal, w->pidfd, number, NULL, 0); /* ESRCH: so did it */
	poll(NULL, 0, FLOOD_PAUSE_MSEC);
	return 0;
}

static void say_running(int client)
{
	WIRE_BUFFER(buf);
	ssize_t n = wire_encode(WIRE_RUNNING, NULL, 0, NULL, buf, sizeof(buf));

	if (n > 0)
		wire_send(client, buf, (size_t)n, NULL, 0);
}

/* Or end of file? */
static bool has_message(int control)
{
	char byte;

	return recv(control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

enum {
	P_CONTROL,
	P_GUEST,
	P_WALL,
	P_CPU,
	P_DAEMON,
	P_PARENT,
	P_CLIENT,
	P_HOLDER,
	P_SAMPLE,
	P_MEMORY,
	P_COUNT
};

/* 1 = the kernel has killed the guest for its memory. */
static int sample(struct sampler *s, struct pollfd *tick, struct pollfd *hit)
{
	if (tick->revents) {
		sampler_tick(s);
		hit->fd = s->events;
	} else if (hit->revents) {
		hit->fd = -1; /* once between two ticks: a reader of files hits it all the time */
		return sampler_hit(s);
	}
	return 0;
}

static enum ended wait_for_end(const struct watch *w, int wall, int cpu, struct sampler *s,
			       struct error *e)
{
	struct pollfd p[P_COUNT] = {
		[P_CONTROL] = { .fd = w->control, .events = POLLIN },
		[P_GUEST] = { .fd = w->pidfd, .events = POLLIN },
		[P_WALL] = { .fd = wall, .events = POLLIN },
		[P_CPU] = { .fd = cpu, .events = POLLIN },
		[P_DAEMON] = { .fd = w->daemon, .events = POLLIN },
		[P_PARENT] = { .fd = w->parent, .events = POLLIN },
		[P_CLIENT] = { .fd = w->client, .events = POLLRDHUP }, /* signals wait for exec */
		[P_HOLDER] = { .fd = w->holder, .events = POLLIN },
		[P_SAMPLE] = { .fd = s->timer, .events = POLLIN },
		[P_MEMORY] = { .fd = s->events, .events = POLLPRI },
	};

	for (;;) {
		if (poll(p, P_COUNT, -1) < 0) {
			if (errno == EINTR)
				continue;
			return ENDED_GOVERNOR_LOST;
		}
		if (sample(s, &p[P_SAMPLE], &p[P_MEMORY]))
			return ENDED_MEMORY;
		if (p[P_CONTROL].revents & POLLIN && has_message(w->control))
			return ENDED_SETUP_FAILED;
		if (p[P_CONTROL].revents) { /* closed: the command runs, or its process is dead */
			p[P_CONTROL].fd = -1;
			p[P_CLIENT].events |= POLLIN;
			say_running(w->client);
			terminal_send_master(w->terminal, w->client);
		}
		if (p[P_GUEST].revents)
			return ENDED_EXITED;
		if (p[P_DAEMON].revents)
			return daemon_says(w->daemon);
		if (p[P_HOLDER].revents)
			return ENDED_KILLED;
		if (p[P_WALL].revents)
			return ENDED_WALL_CLOCK;
		if (p[P_CPU].revents && check_cpu(w, cpu))
			return ENDED_CPU_TIME;
		if (p[P_PARENT].revents) {
			error_set(e, -ESRCH, "its parent has ended");
			return ENDED_CALLER_GONE;
		}
		if (p[P_CLIENT].revents && serve_client(w, e))
			return ENDED_CALLER_GONE;
	}
}

enum ended watch_guest(const struct watch *w, struct error *e)
{
	_cleanup_close_ int wall = -1, cpu = -1;
	_cleanup_(sampler_close) struct sampler sampler = SAMPLER_NULL;
	int r = timer_new(w->wall_usec, &wall);

	if (r == 0)
		r = timer_new(w->cpu_usec == LIMIT_INFINITY ? LIMIT_INFINITY
							    : earliest_usec(w->cpu_usec),
			      &cpu);
	if (r == 0)
		r = sampler_start(&sampler, w->cgroup, w->report);
	if (r < 0) {
		error_errno(e, r, "the guest's clocks cannot be started");
		return ENDED_GOVERNOR_LOST;
	}
	return wait_for_end(w, wall, cpu, &sampler, e);
}
