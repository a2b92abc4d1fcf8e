/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guests that try: one for everything that ends by itself, and one for each limit that ends its
 * guest. All of them side by side, by the ordinary client. While one lives it is looked at from
 * outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/verify/verify_guests.h"

#define TIME_MS	      120000		 /* for all of it */
#define LINGER_USEC   (2 * USEC_PER_SEC) /* for a pipe to close once nobody holds it */
#define ARGUMENTS_MAX (VERIFY_CHECKS_MAX + 24)
#define REPORT_MAX    65536

static const struct {
	const char *options[4];
	bool looked_at; /* from outside, while it lives */
} kinds[VERIFY_RUNS] = {
	[RUN_MAIN] = { { NULL }, true },
	[RUN_WALL] = { { "--memory=32M", "--time=5s" }, false },
	[RUN_CPU_TIME] = { { "--memory=32M", "--time=30s", "--cpu-time=2s" }, false },
	[RUN_CPU] = { { "--memory=32M", "--time=30s", "--cpu=20%" }, true },
	[RUN_MEMORY] = { { "--memory=16M", "--time=30s" }, false },
	[RUN_PIDS] = { { "--memory=32M", "--time=30s", "--pids=16" }, false },
	[RUN_TREE] = { { "--memory=32M", "--time=30s" }, false },
};

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
	interrupted = number;
}

/* ---- starting ---- */

struct arguments {
	char *argv[ARGUMENTS_MAX];
	size_t n;
};

static void argue(struct arguments *a, const char *before, const char *text)
{
	char *word = NULL;

	if (a->n + 1 < ARGUMENTS_MAX && asprintf(&word, "%s%s", before, text) >= 0)
		a->argv[a->n++] = word;
}

/* Each probe of this run, with what it is aimed at. */
static void argue_probes(struct arguments *a, const struct verify *v, enum verify_run run)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct verify_check *c = v->checks[i];
		char *before = NULL;

		if (c->run != run || c->no_probe)
			continue;
		if (c->aim == AIM_NONE)
			argue(a, "", c->id);
		else if (asprintf(&before, "%s=", c->id) >= 0)
			argue(a, before, v->prepared.aim[c->aim]);
		free(before);
	}
}

static void make_arguments(struct arguments *a, const struct verify *v, enum verify_run run,
			   int report)
{
	char name[GUEST_NAME_SIZE], number[16];

	guest_name(v, run, name);
	snprintf(number, sizeof(number), "%d", report);
	argue(a, "", "harpe-gov");
	argue(a, "", "run");
	if (v->net)
		argue(a, "--net=", v->net);
	argue(a, "--name=", name);
	argue(a, "--report=fd:", number);
	argue(a, "--wait=", "30s");
	for (size_t i = 0; i < ARRAY_SIZE(kinds[run].options) && kinds[run].options[i]; i++)
		argue(a, "", kinds[run].options[i]);
	argue(a, "--", "");
	argue(a, "", HARPE_GOV_PROBE);
	argue_probes(a, v, run);
}

/* In the child. A descriptor of the caller's stays open, for the guest not to have. */
static void become_client(const struct verify *v, enum verify_run run, const int stdio[3])
	__attribute__((noreturn));
static void become_client(const struct verify *v, enum verify_run run, const int stdio[3])
{
	char variable[64];
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", variable, NULL };
	struct arguments a = { .n = 0 };
	int report = dup(v->runs[run].report), left = dup(v->runs[run].errors);

	snprintf(variable, sizeof(variable), "HARPE_GOV_VERIFY=%s", v->prepared.nonce);
	make_arguments(&a, v, run, report);
	if (chdir(run == RUN_MAIN ? v->prepared.work : v->prepared.other) < 0 || left < 0)
		_exit(125);
	for (int i = 0; i < 3; i++)
		if (dup2(stdio[i], i) < 0)
			_exit(125);
	execve("/proc/self/exe", a.argv, envp);
	_exit(125);
}

static void close_input(struct guest_run *g)
{
	close_fd(&g->in);
	g->in = -1;
}

static void let_go_on(struct guest_run *g)
{
	if (g->in >= 0 && write(g->in, "g", 1) != 1)
		close_input(g);
}

static int start(struct verify *v, enum verify_run run, struct error *e)
{
	struct guest_run *g = &v->runs[run];
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };

	g->report = memfd_create("report", MFD_CLOEXEC);
	g->errors = memfd_create("errors", MFD_CLOEXEC);
	if (g->report < 0 || g->errors < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return error_errno(e, -errno, "no pipes for a guest");
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	g->in = in[1];
	g->out = out[0];
	if (!kinds[run].looked_at)
		let_go_on(g); /* as soon as it is there */
	g->client = fork();
	if (g->client == 0)
		become_client(v, run, (const int[]){ in[0], out[1], g->errors });
	close(in[0]);
	close(out[1]);
	return g->client < 0 ? error_errno(e, -errno, "no process for a guest") : 0;
}

/* ---- hearing ---- */

struct hearing {
	struct verify *v;
	enum verify_run run;
};

static bool is_probe_of(const struct verify *v, int check, enum verify_run run)
{
	return check >= 0 && v->checks[check]->run == run && !v->checks[check]->no_probe;
}

static void show_progress(const struct verify *v, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->said[i].n > 0;
	if (v->progress)
		fprintf(stderr, "\r%zu of %zu  %-32.32s", n, v->n, id);
}

static void take_line(void *userdata, char *line)
{
	struct hearing *h = userdata;
	struct verify *v = h->v;
	struct guest_run *g = &v->runs[h->run];
	int check;

	if (strcmp(line, "ready\t\t") == 0 && !g->ready) {
		g->ready = true;
		g->ready_usec = clock_usec(CLOCK_MONOTONIC);
		if (kinds[h->run].looked_at) {
			look_for_row(v, h->run);
			let_go_on(g);
		}
		return;
	}
	if (strcmp(line, "end\t\t") == 0 && !g->over) {
		g->over = true;
		if (h->run == RUN_MAIN)
			look_at_main(v);
		close_input(g);
		return;
	}
	check = said_add(line, v->ids, v->n, v->said);
	if (!is_probe_of(v, check, h->run))
		return;
	if (!g->begun_usec)
		g->begun_usec = clock_usec(CLOCK_MONOTONIC);
	show_progress(v, v->ids[check]);
}

/* Once a round: one that never stops writing must not keep the others waiting. */
static void hear(struct verify *v, enum verify_run run)
{
	struct guest_run *g = &v->runs[run];
	struct hearing h = { v, run };
	char data[4096];
	ssize_t n = read(g->out, data, sizeof(data));

	if (n > 0)
		said_feed(&g->lines, data, (size_t)n, take_line, &h);
	if (n == 0) {
		close_fd(&g->out);
		g->out = -1;
	}
}

/* ---- the end of one ---- */

static int64_t number_in(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void read_report(struct guest_run *g)
{
	static char text[REPORT_MAX];
	ssize_t n = pread(g->report, text, sizeof(text), 0);
	json_t *root = json_loadb(text, n > 0 ? (size_t)n : 0, 0, NULL);
	const json_t *drops = json_object_get(root, "drops");
	const char *ended = json_string_value(json_object_get(root, "ended"));

	snprintf(g->ended_by, sizeof(g->ended_by), "%s", ended ?: "");
	g->drops_uid = number_in(drops, "uid");
	g->drops_slice = number_in(drops, "slice");
	g->unroutable = number_in(drops, "unroutable");
	json_decref(root);
}

static void reap(struct verify *v, enum verify_run run)
{
	struct guest_run *g = &v->runs[run];

	if (g->client <= 0 || waitpid(g->client, &g->status, WNOHANG) != g->client)
		return;
	g->client = 0;
	g->ended = true;
	g->ended_usec = clock_usec(CLOCK_MONOTONIC);
	close_input(g);
	read_report(g);
	if (run == RUN_MAIN)
		look_for_processes(v);
}

/* Nothing more is to be heard of it. */
static bool is_done(struct guest_run *g)
{
	if (!g->ended)
		return false;
	if (g->out < 0)
		return true;
	if (clock_usec(CLOCK_MONOTONIC) - g->ended_usec < LINGER_USEC)
		return false;
	g->lingered = true;
	return true;
}

/* ---- all ---- */

static bool serve(struct verify *v)
{
	struct pollfd polled[VERIFY_RUNS];
	bool done = true;

	for (int i = 0; i < VERIFY_RUNS; i++)
		polled[i] = (struct pollfd){ .fd = v->runs[i].out, .events = POLLIN };
	poll(polled, VERIFY_RUNS, 20);
	for (int i = 0; i < VERIFY_RUNS; i++) {
		if (v->runs[i].out >= 0)
			hear(v, (enum verify_run)i);
		reap(v, (enum verify_run)i);
		done &= is_done(&v->runs[i]);
	}
	measure_cpu(v);
	prepared_hear(&v->prepared);
	return done;
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction act = { .sa_handler = note_signal };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &act, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void end_all(struct verify *v)
{
	for (int i = 0; i < VERIFY_RUNS; i++) {
		struct guest_run *g = &v->runs[i];

		if (g->client > 0 && kill(g->client, SIGKILL) == 0)
			waitpid(g->client, &g->status, 0);
		close_fd(&g->in);
		close_fd(&g->out);
		close_fd(&g->report);
	}
	if (v->progress)
		fprintf(stderr, "\r%48s\r", "");
}

int verify_run_all(struct verify *v, struct error *e)
{
	uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + UINT64_C(1000) * TIME_MS;
	int r = 0;

	catch_signals();
	for (int i = 0; i < VERIFY_RUNS; i++)
		v->runs[i] = (struct guest_run){ .in = -1, .out = -1, .report = -1, .errors = -1 };
	for (int i = 0; i < VERIFY_RUNS && r == 0; i++)
		r = start(v, (enum verify_run)i, e);
	while (r == 0 && !serve(v)) {
		if (interrupted)
			r = error_set(e, -EINTR, "stopped by a signal");
		else if (clock_usec(CLOCK_MONOTONIC) > deadline)
			break;
	}
	look_for_group(v);
	look_at_log(v);
	end_all(v);
	return r;
}
