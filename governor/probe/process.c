/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/probe/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE	       12
#define AIM_MAX	       8192
#define LINE_MAX_BYTES 512

struct place {
	const struct probe *probe; /* NULL = free */
	int fd;
	pid_t pid;
	long started_ms;
	bool told;
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One write for a line, so that lines of several processes do not mix. */
static void print_line(const struct probe *p, const struct seen *s)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s\t%.*s\t%.*s", p->id, SEEN_OUTCOME_MAX - 1,
			 s->outcome, SEEN_DETAIL_MAX - 1, s->detail);

	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n + 1) < 0)
		exit(1);
}

/* ---- the child ---- */

static void run_probe(const struct asked *a, int fd) __attribute__((noreturn));
static void run_probe(const struct asked *a, int fd)
{
	const char *aim = a->aim ? a->aim : a->probe->text;
	static char copy[AIM_MAX];
	struct seen s = { "", "" };

	if (fd != TELL_FD && dup2(fd, TELL_FD) < 0)
		_exit(1);
	fcntl(TELL_FD, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(copy, sizeof(copy), "%s", aim ? aim : "");
	a->probe->try(a->probe, copy, &s);
	seen_tell(&s);
	_exit(0);
}

static void start(struct place *place, const struct asked *a)
{
	int fds[2];

	*place = (struct place){ .probe = a->probe, .fd = -1, .started_ms = now_ms() };
	if (pipe2(fds, O_CLOEXEC) < 0)
		exit(1);
	place->pid = fork();
	if (place->pid < 0)
		exit(1);
	if (place->pid == 0) {
		close(fds[0]);
		run_probe(a, fds[1]);
	}
	close(fds[1]);
	place->fd = fds[0];
}

/* ---- the parent ---- */

static struct place *free_place(struct place places[AT_ONCE])
{
	for (int i = 0; i < AT_ONCE; i++)
		if (!places[i].probe)
			return &places[i];
	return NULL;
}

/* How a probe ended that told nothing. */
static void tell_end(const struct place *place, int status)
{
	struct seen s = { "", "" };

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		seen_set(&s, "nothing", "within %d ms", PROBE_LIMIT_MS);
	else if (WIFSIGNALED(status))
		seen_set(&s, "killed", "signal %d", WTERMSIG(status));
	else
		seen_set(&s, "ended", "exit code %d", WEXITSTATUS(status));
	print_line(place->probe, &s);
}

static void end(struct place *place)
{
	int status = 0;

	close(place->fd);
	waitpid(place->pid, &status, 0);
	if (!place->told)
		tell_end(place, status);
	place->probe = NULL;
}

static void serve(struct place *place)
{
	struct told told;

	if (read(place->fd, &told, sizeof(told)) != sizeof(told)) {
		end(place);
		return;
	}
	told.seen.outcome[SEEN_OUTCOME_MAX - 1] = told.seen.detail[SEEN_DETAIL_MAX - 1] = '\0';
	print_line(place->probe, &told.seen);
	place->told = true;
	if (told.held) { /* it is not waited for: it lives until this program ends */
		close(place->fd);
		place->probe = NULL;
	}
}

static void hurry(const struct place *place)
{
	if (!place->probe->endless && now_ms() - place->started_ms >= PROBE_LIMIT_MS)
		kill(place->pid, SIGALRM);
}

static int serve_all(struct place places[AT_ONCE])
{
	struct pollfd polled[AT_ONCE];
	int busy = 0;

	for (int i = 0; i < AT_ONCE; i++) {
		polled[i] = (struct pollfd){ .fd = places[i].probe ? places[i].fd : -1,
					     .events = POLLIN };
		busy += places[i].probe != NULL;
	}
	if (busy == 0 || poll(polled, AT_ONCE, 50) < 0)
		return busy;
	for (int i = 0; i < AT_ONCE; i++) {
		if (places[i].probe && polled[i].revents)
			serve(&places[i]);
		if (places[i].probe)
			hurry(&places[i]);
	}
	return busy;
}

void try_all(const struct asked *asked, size_t n)
{
	static struct place places[AT_ONCE];

	for (size_t i = 0; i < n; i++) {
		struct place *place;

		while (!(place = free_place(places)))
			serve_all(places);
		start(place, &asked[i]);
	}
	while (serve_all(places) > 0)
		;
}
