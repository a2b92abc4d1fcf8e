/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The work that a guest is there for, and too much of it. Those that do not end say "begun" first;
 * what ends them is what is probed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define CHUNK	   (1L << 20)
#define CHUNKS_MAX 4096
#define FORKS_MAX  512
#define PRIMES_TO  10000

static void tell_begun(void)
{
	struct seen s = { "begun", "" };

	seen_tell(&s);
}

static bool is_prime(int n)
{
	for (int i = 2; i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n > 1;
}

static void try_calculation(const struct probe *p, char *aim, struct seen *s)
{
	long sum = 0;

	(void)p;
	(void)aim;
	for (int n = 0; n < PRIMES_TO; n++)
		sum += is_prime(n) ? n : 0;
	seen_set(s, "done", "%ld", sum);
}

static void try_log(const struct probe *p, char *aim, struct seen *s)
{
	static const char line[] = "{\"tool\": \"" PROBE_TOKEN "\"}\n";
	int fd = open(aim, O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)p;
	seen_attempt(s, aim, fd < 0 ? -1 : write(fd, line, sizeof(line) - 1));
}

static void try_loop(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	(void)s;
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	tell_begun();
	for (volatile unsigned long n = 0;; n++)
		;
}

/* Every page is written to. */
static void try_memory(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	tell_begun();
	for (long i = 0; i < CHUNKS_MAX; i++) {
		char *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		if (chunk == MAP_FAILED) {
			seen_attempt(s, "mmap", -1);
			return;
		}
		memset(chunk, 1, CHUNK);
	}
	seen_set(s, "done", "%d MiB", CHUNKS_MAX);
}

static void try_forks(const struct probe *p, char *aim, struct seen *s)
{
	static pid_t pids[FORKS_MAX];
	int n = 0;

	(void)p;
	(void)aim;
	while (n < FORKS_MAX) {
		pids[n] = fork();
		if (pids[n] == 0)
			for (;;)
				pause();
		if (pids[n] < 0)
			break;
		n++;
	}
	if (n < FORKS_MAX)
		seen_set(s, strerrorname_np(errno), "%d", n);
	else
		seen_set(s, "done", "%d", n);
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
}

static void stay(struct seen *s) __attribute__((noreturn));
static void stay(struct seen *s)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	seen_set(s, "begun", "%d", getpid());
	seen_hold(s);
}

/* A grandchild in a session of its own, whose parent is gone. It keeps standard output. */
static void try_tree(const struct probe *p, char *aim, struct seen *s)
{
	pid_t pid = fork();

	(void)p;
	(void)aim;
	if (pid == 0) {
		setsid();
		if (fork() == 0)
			stay(s);
		_exit(0);
	}
	if (pid < 0)
		seen_attempt(s, "fork", -1);
	else
		waitpid(pid, NULL, 0);
	if (pid > 0)
		_exit(0);
}

/* ---- core dumps ---- */

static int abort_in_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	waitpid(pid, &status, 0);
	return status;
}

static void try_core(const struct probe *p, char *aim, struct seen *s)
{
	struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };

	(void)p;
	(void)aim;
	seen_attempt(s, "setrlimit", setrlimit(RLIMIT_CORE, &more));
	seen_attempt(s, "prlimit", prlimit(0, RLIMIT_CORE, &more, NULL));
	if (WCOREDUMP(abort_in_child()))
		seen_attempt(s, "a core was dumped", 0);
}

/* ---- its own limits ---- */

/* The cgroup that /proc names, below where the host has cgroupfs. */
static void try_raise(const struct probe *p, char *aim, struct seen *s)
{
	char line[512] = "0::", path[1024];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	(void)p;
	if (fd >= 0 && read(fd, line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	if (fd >= 0)
		close(fd);
	line[strcspn(line, "\n")] = '\0';
	for (char *name; (name = next_word(&aim));) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", line + strlen("0::"), name);
		seen_attempt(s, name, open(path, O_WRONLY | O_CLOEXEC));
	}
}

const struct probe limit_probes[] = {
	{ "run.calculation", try_calculation, { 0 }, NULL, false },
	{ "run.log", try_log, { 0 }, NULL, false },
	{ "limits.wall-clock", try_loop, { 0 }, NULL, true },
	{ "limits.cpu-time", try_loop, { 0 }, NULL, true },
	{ "limits.cpu", try_loop, { 0 }, NULL, true },
	{ "limits.memory", try_memory, { 0 }, NULL, true },
	{ "limits.pids", try_forks, { 0 }, NULL, false },
	{ "limits.tree", try_tree, { 0 }, NULL, true },
	{ "limits.core", try_core, { 0 }, NULL, false },
	{ "limits.raise",
	  try_raise,
	  { 0 },
	  "memory.max,pids.max,cpu.max,cgroup.procs,cgroup.freeze,../memory.max,../cpu.max,../"
	  "cgroup.procs",
	  false },
	{ 0 },
};
