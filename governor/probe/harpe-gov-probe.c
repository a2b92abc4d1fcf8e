/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * harpe-gov-probe ID[=AIM]...: tries those; --list names all. Not for users: some of them hurt whom
 * nothing protects.
 *
 * "ready" and "end" are lines as well. Behind each it waits for a byte, or for the end, of standard
 * input: so that verify can look at the guest while it lives.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "governor/probe/probe.h"
#include "governor/probe/process.h"

#define ASKED_MAX	128
#define DESCRIPTORS_MAX 1024

struct beginning beginning;

static const struct probe *const tables[] = { limit_probes,  network_probes, socket_probes,
					      door_probes,   file_probes,    process_probes,
					      ipc_probes,    key_probes,     identity_probes,
					      syscall_probes };
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

/* ---- how it began ---- */

static void note_status(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, beginning.status, sizeof(beginning.status) - 1) < 0)
		beginning.status[0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* By asking the kernel for each: /proc may not be there. */
static void note_descriptors(void)
{
	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++) {
		size_t used = strlen(beginning.descriptors);

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		beginning.n_descriptors++;
		snprintf(beginning.descriptors + used, sizeof(beginning.descriptors) - used, "%d ",
			 fd);
	}
}

/* ---- what is asked ---- */

static const struct probe *find(const char *id, size_t len)
{
	for (size_t i = 0; i < N_TABLES; i++)
		for (const struct probe *p = tables[i]; p->id; p++)
			if (strlen(p->id) == len && strncmp(p->id, id, len) == 0)
				return p;
	return NULL;
}

static size_t take_words(char **words, struct asked ret[ASKED_MAX])
{
	size_t n = 0;

	for (; *words && n < ASKED_MAX; words++) {
		size_t len = strcspn(*words, "=");
		const struct probe *p = find(*words, len);

		if (p)
			ret[n++] = (struct asked){ p, (*words)[len] ? *words + len + 1 : NULL };
		else
			fprintf(stderr, "harpe-gov-probe: there is no probe \"%s\"\n", *words);
	}
	return n;
}

static int list(void)
{
	for (size_t i = 0; i < N_TABLES; i++)
		for (const struct probe *p = tables[i]; p->id; p++)
			puts(p->id);
	return 0;
}

static void say_and_wait(const char *word)
{
	char line[16], byte;
	int n = snprintf(line, sizeof(line), "%s\t\t\n", word);

	if (write(STDOUT_FILENO, line, (size_t)n) != n || read(STDIN_FILENO, &byte, 1) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	static struct asked asked[ASKED_MAX];
	size_t n;

	note_status();
	note_descriptors();
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	signal(SIGUSR2, SIG_IGN); /* of the probe that signals everybody */
	signal(SIGPIPE, SIG_IGN);
	n = take_words(argv + 1, asked);
	say_and_wait("ready");
	try_all(asked, n);
	say_and_wait("end");
	return 0;
}
