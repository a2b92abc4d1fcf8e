/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of others. An aim is a pid: of a process of verify's own, so that nobody is hurt. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define PROCESSES_MAX 64 /* that are tried */
#define FIRST_PIDS    400
#define NEAR_PIDS     2000

static void try_signal(const struct probe *p, char *aim, struct seen *s)
{
	for (char *word; (word = next_word(&aim));)
		seen_attempt(s, word, kill(atoi(word), (int)p->arg[0]));
}

/* Everybody who may be signalled; those of this program ignore it. Not where it would hurt the one
 * that is known: then others would be hurt as well. */
static void try_signal_all(const struct probe *p, char *aim, struct seen *s)
{
	if (kill(atoi(aim), 0) == 0)
		seen_set(s, "unsafe", "a process of the caller's may be signalled");
	else
		seen_attempt(s, "kill(-1)", kill(-1, (int)p->arg[0]));
}

static void try_ptrace(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for (char *word; (word = next_word(&aim));) {
		pid_t pid = atoi(word);

		if (seen_attempt(s, "PTRACE_SEIZE", ptrace(PTRACE_SEIZE, pid, NULL, NULL)))
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
}

static void try_memory(const struct probe *p, char *aim, struct seen *s)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)try_memory, 1 };
	char path[64];

	(void)p;
	for (char *word; (word = next_word(&aim));) {
		seen_attempt(s, "process_vm_readv",
			     process_vm_readv(atoi(word), &here, 1, &there, 1, 0));
		snprintf(path, sizeof(path), "/proc/%s/mem", word);
		seen_attempt(s, path, open(path, O_RDONLY | O_CLOEXEC));
	}
}

static void try_descriptor(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for (char *word; (word = next_word(&aim));) {
		int fd = (int)syscall(SYS_pidfd_open, atoi(word), 0);

		if (fd < 0)
			seen_attempt(s, "pidfd_open", -1);
		else
			seen_attempt(s, "pidfd_getfd", syscall(SYS_pidfd_getfd, fd, 0, 0));
	}
}

static void try_proc(const struct probe *p, char *aim, struct seen *s)
{
	static const char *const names[] = { "environ", "root/", "cwd/", "fd/0", "maps" };
	char path[64], byte;

	(void)p;
	for (char *word; (word = next_word(&aim));)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			int fd;

			snprintf(path, sizeof(path), "/proc/%s/%s", word, names[i]);
			fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
			if (fd >= 0 && read(fd, &byte, 1) < 0 && errno != EISDIR)
				seen_attempt(s, path, -1);
			else
				seen_attempt(s, path, fd);
			if (fd >= 0)
				close(fd);
		}
}

static void try_change(const struct probe *p, char *aim, struct seen *s)
{
	cpu_set_t all;

	(void)p;
	for (char *word; (word = next_word(&aim));) {
		pid_t pid = atoi(word);
		struct rlimit limit;

		seen_attempt(s, "prlimit", prlimit(pid, RLIMIT_NOFILE, NULL, &limit));
		seen_attempt(s, "setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 1));
		if (sched_getaffinity(0, sizeof(all), &all) == 0)
			seen_attempt(s, "sched_setaffinity",
				     sched_setaffinity(pid, sizeof(all), &all));
	}
}

/* ---- who is there ---- */

/* Calls @f for every process of another uid that /proc shows. */
static void for_each_stranger(struct seen *s, void (*f)(const char *pid, struct seen *s))
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	while (directory && n < PROCESSES_MAX && (entry = readdir(directory))) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s", entry->d_name);
		if (!isdigit(entry->d_name[0]) || stat(path, &st) < 0 || st.st_uid == getuid())
			continue;
		f(entry->d_name, s);
		n++;
	}
	if (directory)
		closedir(directory);
}

static void name(const char *pid, struct seen *s)
{
	char path[300], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0)
		seen_attempt(s, path, 0);
	close(fd);
}

static void try_others(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	errno = ENOENT;
	seen_attempt(s, aim, -1);
	for_each_stranger(s, name);
}

static bool is_own(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 && st.st_uid == getuid();
}

/* Signal 0 checks the right and sends nothing. One of its own that ends meanwhile is no longer
 * there for the second. */
static void signal_nobody(pid_t pid, struct seen *s)
{
	char word[16];

	snprintf(word, sizeof(word), "%d", pid);
	if (kill(pid, 0) < 0)
		seen_attempt(s, word, -1);
	else if (!is_own(pid) && kill(pid, 0) == 0)
		seen_attempt(s, word, 0);
}

/* The first processes of the host, and those that are about as old as this one: of other guests. */
static void try_signal_others(const struct probe *p, char *aim, struct seen *s)
{
	pid_t self = getpid();

	(void)p;
	(void)aim;
	for (pid_t pid = 1; pid < FIRST_PIDS; pid++)
		signal_nobody(pid, s);
	for (pid_t pid = self - NEAR_PIDS; pid < self + NEAR_PIDS; pid++)
		if (pid >= FIRST_PIDS)
			signal_nobody(pid, s);
}

const struct probe process_probes[] = {
	{ "processes.signal", try_signal, { SIGUSR2 }, NULL, false },
	{ "processes.signal-all", try_signal_all, { SIGUSR2 }, NULL, false },
	{ "processes.signal-others", try_signal_others, { 0 }, NULL, false },
	{ "processes.ptrace", try_ptrace, { 0 }, NULL, false },
	{ "processes.memory", try_memory, { 0 }, NULL, false },
	{ "processes.descriptor", try_descriptor, { 0 }, NULL, false },
	{ "processes.proc", try_proc, { 0 }, NULL, false },
	{ "processes.change", try_change, { 0 }, NULL, false },
	{ "processes.others", try_others, { 0 }, "/proc", false },
	{ 0 },
};
