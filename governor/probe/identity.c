/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who the guest is and what it was given: as it began, and what it can make of it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define IOPRIO_WHO_PROCESS_ 1
#define IOPRIO_REAL_TIME    (1 << 13)

/* The values of those lines of /proc/self/status. */
static void try_status(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	strcpy(s->outcome, "seen");
	for (char *key; (key = next_word(&aim));) {
		char line[80], *at, *value;

		snprintf(line, sizeof(line), "\n%s:", key);
		at = strstr(beginning.status, line);
		if (!at)
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
		for (value = line; (at = strsep(&value, " \t"));)
			if (*at)
				seen_word(s, at);
	}
}

static void try_descriptors(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_set(s, "seen", "%zu %s", beginning.n_descriptors, beginning.descriptors);
}

static void try_environment(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	strcpy(s->outcome, "seen");
	for (char **e = environ; *e; e++)
		seen_word(s, *e);
}

static void try_change(const struct probe *p, char *aim, struct seen *s)
{
	gid_t root = 0;

	(void)p;
	(void)aim;
	seen_attempt(s, "setgroups", setgroups(1, &root));
	seen_attempt(s, "setresgid", setresgid(0, 0, 0));
	seen_attempt(s, "setresuid", setresuid(0, 0, 0));
	seen_attempt(s, "another uid", setresuid(getuid() + 1, getuid() + 1, getuid() + 1));
}

static void try_capabilities(const struct probe *p, char *aim, struct seen *s)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { 1u << CAP_CHOWN, 1u << CAP_CHOWN, 0 }, { 0 } };

	(void)p;
	(void)aim;
	seen_attempt(s, "capset", syscall(SYS_capset, &header, all));
	seen_attempt(s, "ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0));
	if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		seen_attempt(s, "no_new_privs", 0);
}

static long write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), saved;
	long r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text));
	saved = errno;
	close(fd);
	errno = saved;
	return r;
}

static void try_oom(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for (char *word; (word = next_word(&aim));)
		seen_attempt(s, word, write_text("/proc/self/oom_score_adj", word));
}

static void try_priority(const struct probe *p, char *aim, struct seen *s)
{
	struct sched_param param = { .sched_priority = 1 };

	(void)p;
	(void)aim;
	seen_attempt(s, "nice -5", setpriority(PRIO_PROCESS, 0, -5));
	seen_attempt(s, "SCHED_FIFO", sched_setscheduler(0, SCHED_FIFO, &param));
	seen_attempt(s, "real-time disk",
		     syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS_, 0, IOPRIO_REAL_TIME));
}

static void try_personality(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_set(s, "seen", "%x", (unsigned int)personality(0xffffffff));
}

static void try_terminal(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	seen_attempt(s, aim, open(aim, O_RDWR | O_CLOEXEC | O_NOCTTY));
}

const struct probe identity_probes[] = {
	{ "identity.ids", try_status, { 0 }, "Uid,Gid", false },
	{ "identity.groups", try_status, { 0 }, "Groups", false },
	{ "identity.capabilities", try_status, { 0 }, "CapInh,CapPrm,CapEff,CapBnd,CapAmb", false },
	{ "identity.no-new-privs", try_status, { 0 }, "NoNewPrivs", false },
	{ "identity.filter", try_status, { 0 }, "Seccomp", false },
	{ "identity.signals", try_status, { 0 }, "SigBlk,SigIgn,SigCgt", false },
	{ "identity.descriptors", try_descriptors, { 0 }, NULL, false },
	{ "identity.environment", try_environment, { 0 }, NULL, false },
	{ "identity.change", try_change, { 0 }, NULL, false },
	{ "identity.raise", try_capabilities, { 0 }, NULL, false },
	{ "identity.oom", try_oom, { 0 }, "-1000,-1", false },
	{ "identity.priority", try_priority, { 0 }, NULL, false },
	{ "identity.personality", try_personality, { 0 }, NULL, false },
	{ "identity.terminal", try_terminal, { 0 }, "/dev/tty", false },
	{ 0 },
};
