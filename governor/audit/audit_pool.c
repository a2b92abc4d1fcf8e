/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a uid of the pool belong to somebody else? */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"
#include "governor/daemon/overlap.h"

#define NSS_TIMEOUT_MS 20000
#define DYNAMIC	       "/run/systemd/dynamic-uid"

/* ---- local files ---- */

static void look_local(const struct audit *a, struct finding *f)
{
	const struct config *c = a->wanted.config;
	struct error e = ERROR_NULL;
	int r = a->config.r;

	if (r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
		return;
	}
	r = overlap_check(c->first_uid, c->uid_count, &e);
	if (r == -EADDRINUSE)
		finding_add(f, VERDICT_FAIL, "%s", e.text);
	else if (r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", e.text);
	else
		finding_add(f, VERDICT_PASS, "uids %" PRIu32 " to %" PRIu32 " are nobody's",
			    c->first_uid, c->first_uid + c->uid_count - 1);
}

/* ---- name services ---- */

/* In a child, which may hang: a directory that does not answer must not hold the audit up. Writes a
 * line for each name; 0 when all uids were asked for, else an errno. */
static int ask_names(const struct config *c, FILE *to)
{
	for (uint32_t i = 0; i < c->uid_count; i++) {
		uint32_t id = c->first_uid + i;
		const struct passwd *user;
		const struct group *group;

		errno = 0;
		user = getpwuid(id);
		if (user)
			fprintf(to, "uid %" PRIu32 " is user \"%.64s\"\n", id, user->pw_name);
		else if (errno != 0 && errno != ENOENT && errno != ESRCH)
			return errno;
		errno = 0;
		group = getgrgid(id);
		if (group)
			fprintf(to, "gid %" PRIu32 " is group \"%.64s\"\n", id, group->gr_name);
		else if (errno != 0 && errno != ENOENT && errno != ESRCH)
			return errno;
	}
	return 0;
}

static void ask_in_child(const struct config *c, int fd)
{
	FILE *to = fdopen(fd, "w");
	int r = to ? ask_names(c, to) : errno;

	if (to && fclose(to) != 0)
		r = r ?: EIO;
	_exit(r);
}

/* All that the child writes, to be freed; -ETIMEDOUT. */
static int read_names(int fd, char **ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	char buf[4096];
	ssize_t n = -1;
	int r = to ? 0 : -ENOMEM;

	while (r == 0) {
		r = poll(&p, 1, NSS_TIMEOUT_MS) > 0 ? 0 : -ETIMEDOUT;
		n = r == 0 ? read(fd, buf, sizeof(buf)) : 0;
		if (n <= 0)
			break;
		fwrite(buf, 1, (size_t)n, to);
	}
	if (to && fclose(to) != 0)
		r = -ENOMEM;
	if (r < 0 || n < 0)
		free(text);
	else
		*ret = text;
	return r < 0 ? r : n < 0 ? -EIO : 0;
}

static void say_lines(char *text, struct finding *f)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		finding_add(f, VERDICT_FAIL, "%s", line);
}

static void judge_names(const struct config *c, pid_t pid, int fd, struct finding *f)
{
	_cleanup_free_ char *text = NULL;
	int status = 0, r = read_names(fd, &text);

	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text)
		say_lines(text, f);
	if (r < 0)
		finding_add(f, VERDICT_UNKNOWN, "the name services do not answer: %s",
			    strerror(-r));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		finding_add(f, VERDICT_UNKNOWN, "the name services fail: %s",
			    WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "killed");
	else if (f->n == 0)
		finding_add(f, VERDICT_PASS,
			    "no user and no group of the name services has one of %" PRIu32 " ids",
			    c->uid_count);
}

static void look_names(const struct audit *a, struct finding *f)
{
	int fds[2];
	pid_t pid;

	if (a->config.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
		return;
	}
	if (pipe2(fds, O_CLOEXEC) < 0) {
		finding_add(f, VERDICT_UNKNOWN, "no pipe: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0)
		ask_in_child(a->wanted.config, fds[1]);
	close(fds[1]);
	if (pid > 0)
		judge_names(a->wanted.config, pid, fds[0], f);
	else
		finding_add(f, VERDICT_UNKNOWN, "no process: %s", strerror(errno));
	close(fds[0]);
}

/* ---- systemd's dynamic users ---- */

static void look_dynamic(const struct audit *a, struct finding *f)
{
	_cleanup_(close_directory) DIR *directory = opendir(DYNAMIC);
	int why = errno;
	struct dirent *entry;
	size_t n = 0;

	if (a->config.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
	else if (!directory && why == ENOENT)
		finding_add(f, VERDICT_PASS, "there are none");
	else if (!directory)
		finding_add(f, VERDICT_UNKNOWN, DYNAMIC " cannot be read: %s", strerror(why));
	while (a->config.r == 0 && directory && (entry = readdir(directory))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue; /* links from names */
		n++;
		if (audit_is_pool_uid(a, (uint32_t)strtoul(entry->d_name, NULL, 10)))
			finding_add(f, VERDICT_FAIL, "uid %.10s is a dynamic user's",
				    entry->d_name);
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "there are %zu, none with a uid of the pool", n);
}

#define CHOOSE                                                                                     \
	"Choose another [pool] first-uid in " CONFIG_PATH ", or give that account another id; "    \
	"systemctl restart harpe-gov"

const struct audit_check audit_pool_checks[] = {
	{ "HG-POOL-001", "No local account, group or container range overlaps the pool",
	  "/etc/passwd, /etc/group, /etc/subuid, /etc/subgid, the ranges of systemd's own",
	  "An account with a uid of the pool can read, change and kill the guest that has it.",
	  CHOOSE, look_local },
	{ "HG-POOL-002", "No user or group of the name services has a uid of the pool",
	  "getpwuid(3) and getgrgid(3) for each uid of the pool",
	  "Accounts of a directory (LDAP, SSSD) are in no local file, and are as real.", CHOOSE,
	  look_names },
	{ "HG-POOL-003", "No dynamic user of systemd has a uid of the pool", DYNAMIC,
	  "The service that has it is taken for a guest: it loses its network, and a guest can "
	  "kill it.",
	  CHOOSE, look_dynamic },
	{ 0 },
};
