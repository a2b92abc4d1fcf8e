/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The benchmark's clock: starts commands and says how long each took from before its start until it
 * was waited for, in nanoseconds.
 *
 *	stopwatch rounds N PAUSE-MS < COMMANDS
 *	stopwatch crowd JOBS SECONDS < COMMAND
 *
 * A command is a line of fields with a tab between them: name, user, path, arguments. rounds runs
 * all commands N times, in each round in another order, with a pause before each, in which what an
 * earlier one left to others to do is done. It prints a line "NAME NANOSECONDS STATUS" for each.
 * crowd keeps JOBS processes of one command alive and prints how many of them ended within SECONDS,
 * how many of these failed, and the nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 64
#define WORDS_MAX    64
#define GROUPS_MAX   64
#define LINE_SIZE    8192
#define CANNOT_START 127

struct command {
	char line[LINE_SIZE];
	const char *name;
	uid_t uid;
	gid_t gid, groups[GROUPS_MAX];
	int n_groups;
	char *argv[WORDS_MAX + 1];
};

static struct command commands[COMMANDS_MAX];
static size_t n_commands;
static FILE *results;

static void die(const char *what, const char *which)
{
	fprintf(stderr, "stopwatch: %s: %s\n", what, which);
	exit(2);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the commands ---- */

static void take_user(struct command *c, const char *name)
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		die("there is no such user", name);
	c->uid = user->pw_uid;
	c->gid = user->pw_gid;
	c->n_groups = GROUPS_MAX;
	if (getgrouplist(name, c->gid, c->groups, &c->n_groups) < 0)
		die("too many groups", name);
}

static void take_line(struct command *c)
{
	char *rest = c->line, *word;
	size_t n = 0;

	c->line[strcspn(c->line, "\n")] = '\0';
	c->name = strsep(&rest, "\t");
	word = strsep(&rest, "\t");
	if (!word || !rest)
		die("this is no command", c->name);
	take_user(c, word);
	while ((word = strsep(&rest, "\t"))) {
		if (n == WORDS_MAX)
			die("too many words", c->name);
		c->argv[n++] = word;
	}
}

static void read_commands(void)
{
	while (n_commands < COMMANDS_MAX && fgets(commands[n_commands].line, LINE_SIZE, stdin))
		take_line(&commands[n_commands++]);
	if (n_commands == 0)
		die("nothing to run", "standard input is empty");
}

/* The plain system calls, since this process's memory is shared until the command is executed. */
static pid_t start(const struct command *c)
{
	pid_t pid = vfork();

	if (pid == 0) {
		if (syscall(SYS_setgroups, c->n_groups, c->groups) == 0 &&
		    syscall(SYS_setresgid, c->gid, c->gid, c->gid) == 0 &&
		    syscall(SYS_setresuid, c->uid, c->uid, c->uid) == 0)
			execv(c->argv[0], c->argv);
		_exit(CANNOT_START);
	}
	if (pid < 0)
		die("cannot fork", strerror(errno));
	return pid;
}

/* As a shell says it. */
static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What the commands read and write is nobody's business. */
static void keep_streams(void)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_RDWR);

	results = out < 0 ? NULL : fdopen(out, "w");
	if (!results || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		die("cannot keep the streams", strerror(errno));
	close(null);
}

/* ---- rounds ---- */

static void time_one(const struct command *c, int pause_ms)
{
	uint64_t begin, end;
	int status;
	pid_t pid;

	poll(NULL, 0, pause_ms);
	begin = now();
	pid = start(c);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	end = now();
	fprintf(results, "%s %" PRIu64 " %d\n", c->name, end - begin, status_of(status));
	fflush(results);
}

/* Another order each time, and the same ones in every benchmark. */
static void shuffle(size_t order[])
{
	for (size_t i = n_commands; i > 1; i--) {
		size_t j = (size_t)random() % i, kept = order[i - 1];

		order[i - 1] = order[j];
		order[j] = kept;
	}
}

static void run_rounds(unsigned long rounds, int pause_ms)
{
	size_t order[COMMANDS_MAX];

	for (size_t i = 0; i < n_commands; i++)
		order[i] = i;
	for (unsigned long round = 0; round < rounds; round++) {
		shuffle(order);
		for (size_t i = 0; i < n_commands; i++)
			time_one(&commands[order[i]], pause_ms);
	}
}

/* ---- a crowd ---- */

static void run_crowd(unsigned long jobs, unsigned long seconds)
{
	uint64_t begin = now(), end = begin + seconds * 1000000000u, at = begin;
	unsigned long ended = 0, failed = 0;
	int status;

	for (unsigned long i = 0; i < jobs; i++)
		start(&commands[0]);
	while (wait(&status) > 0 && (at = now()) < end) {
		ended++;
		failed += status_of(status) != 0;
		start(&commands[0]);
	}
	fprintf(results, "%lu %lu %" PRIu64 "\n", ended, failed, at - begin);
	fflush(results);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	unsigned long a = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long b = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;

	if (a == 0)
		die("usage", "stopwatch rounds N PAUSE-MS | crowd JOBS SECONDS");
	read_commands();
	keep_streams();
	if (strcmp(argv[1], "rounds") == 0)
		run_rounds(a, (int)b);
	else if (strcmp(argv[1], "crowd") == 0)
		run_crowd(a, b);
	else
		die("there is no such mode", argv[1]);
	return 0;
}
