/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What more than one check looks at, read once. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/state.h"
#include "common/wire.h"
#include "governor/audit/audit.h"

#define STATUS_MAX    16384 /* of a process in very many groups */
#define PROCESSES_MAX 65536
#define ROUNDS	      5 /* readings of what others may change meanwhile */
#define HARPE	      "/" SLICE

/* ---- processes ---- */

static int number_after(const char *text, const char *key, int base, uint64_t *ret)
{
	const char *at = strstr(text, key);
	char *end;

	if (!at)
		return -EINVAL;
	at += strlen(key);
	*ret = strtoull(at, &end, base);
	return end == at ? -EINVAL : 0;
}

static int parse_uids(const char *text, uint32_t uid[4])
{
	const char *line = strstr(text, "\nUid:");

	return line && sscanf(line, "\nUid: %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &uid[0],
			      &uid[1], &uid[2], &uid[3]) == 4
		       ? 0
		       : -EINVAL;
}

int audit_parse_status(const char *text, struct audit_process *ret)
{
	static const char *const sets[] = { "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:",
					    "\nCapAmb:" };
	struct audit_process p = { 0 };
	uint64_t pid, privs, seccomp, set;
	int r = number_after(text, "\nPid:", 10, &pid) ?: parse_uids(text, p.uid);

	r = r ?: number_after(text, "\nNoNewPrivs:", 10, &privs);
	r = r ?: number_after(text, "\nSeccomp:", 10, &seccomp);
	for (size_t i = 0; i < ARRAY_SIZE(sets) && r == 0; i++) {
		r = number_after(text, sets[i], 16, &set);
		p.capabilities |= r == 0 ? set : 0;
	}
	if (r < 0 || strncmp(text, "Name:\t", 6) != 0)
		return -EINVAL;
	snprintf(p.name, sizeof(p.name), "%.*s", (int)strcspn(text + 6, "\n"), text + 6);
	p.pid = (pid_t)pid;
	p.no_new_privs = privs == 1;
	p.filtered = seccomp == 2;
	*ret = p;
	return 0;
}

/* Behind the slice of a profile, and behind the part of it if there is one (part.h); NULL when it
 * is in none. */
static const char *behind_slices(const char *group)
{
	char profile[AUDIT_GROUP_MAX], child[AUDIT_GROUP_MAX + 16];
	char part[3];
	int n = 0, more = 0;

	if (sscanf(group, HARPE "/harpe-%255[a-z0-9].slice/%n", profile, &n) < 1 || n == 0)
		return NULL;
	group += n;
	snprintf(child, sizeof(child), "harpe-%s-", profile);
	if (strncmp(group, child, strlen(child)) != 0)
		return group;
	group += strlen(child);
	if (sscanf(group, "%2[0-9].slice/%n", part, &more) < 1 || more == 0 || part[0] == '0')
		return NULL;
	return group + more;
}

bool audit_parse_group(const char *group, char ret_id[AUDIT_ID_MAX])
{
	const char *scope = behind_slices(group);
	char id[AUDIT_ID_MAX];
	int n = 0;

	if (!scope || sscanf(scope, "harpe-%63[0-9a-f].scope/guest%n", id, &n) < 1 || n == 0 ||
	    (scope[n] != '\0' && scope[n] != '/'))
		return false;
	snprintf(ret_id, AUDIT_ID_MAX, "%s", id);
	return true;
}

static void read_group(const char *directory, struct audit_process *p)
{
	char path[300], text[2 * AUDIT_GROUP_MAX];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%s/cgroup", directory);
	if (read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return;
	line = strncmp(text, "0::", 3) == 0 ? text + 3 : strstr(text, "\n0::");
	if (!line)
		return;
	line += line[0] == '\n' ? 4 : 0;
	snprintf(p->group, sizeof(p->group), "%.*s", (int)strcspn(line, "\n"), line);
}

static bool is_below_slice(const char *group)
{
	size_t n = strlen(HARPE);

	return strncmp(group, HARPE, n) == 0 && (group[n] == '\0' || group[n] == '/');
}

bool audit_is_pool_uid(const struct audit *a, uint32_t uid)
{
	const struct config *c = a->wanted.config;

	return uid >= c->first_uid && uid - c->first_uid < c->uid_count;
}

bool audit_has_pool_uid(const struct audit *a, const struct audit_process *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->uid); i++)
		if (audit_is_pool_uid(a, p->uid[i]))
			return true;
	return false;
}

static int keep_process(struct audit *a, const struct audit_process *p)
{
	struct audit_process *more;

	if (a->n_processes == PROCESSES_MAX)
		return -E2BIG;
	more = reallocarray(a->process, a->n_processes + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	a->process = more;
	more[a->n_processes++] = *p;
	return 0;
}

/* One that is gone meanwhile is none. */
static int read_process(struct audit *a, const char *directory)
{
	static char text[STATUS_MAX];
	struct audit_process p;
	char path[300];
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/%s/status", directory);
	n = read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n == -ENOENT || n == -ESRCH)
		return 0;
	r = n < 0 ? (int)n : audit_parse_status(text, &p);
	if (r < 0)
		return r;
	read_group(directory, &p);
	return audit_has_pool_uid(a, &p) || is_below_slice(p.group) ? keep_process(a, &p) : 0;
}

static int read_processes(struct audit *a, struct error *e)
{
	_cleanup_(close_directory) DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = proc ? 0 : error_errno(e, -errno, "/proc cannot be read");

	while (r == 0 && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = read_process(a, entry->d_name);
		if (r < 0)
			error_errno(e, r, "/proc/%.16s cannot be read", entry->d_name);
	}
	return r;
}

/* ---- the daemon ---- */

/* Who holds the lock on the file that the serving daemon holds (common/state.h). */
static pid_t find_daemon(void)
{
	_cleanup_close_ int fd = open(STATE_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type != F_WRLCK)
		return 0;
	return lock.l_pid;
}

/* ---- the firewall ---- */

/* Another network namespace has another ruleset. */
static int check_namespace(const struct audit *a, struct error *e)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", a->daemon);
	if (a->daemon == 0 || stat(path, &theirs) < 0 || stat("/proc/self/ns/net", &ours) < 0)
		return 0;
	if (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
		return 0;
	return error_set(e, -EXDEV,
			 "the audit was started in another network namespace than the daemon's: "
			 "start it on the host itself");
}

static int read_survey(struct audit *a, struct firewall *fw)
{
	return a->firewall.r = firewall_survey(fw, &a->wanted.policy, &a->survey, &a->firewall.e);
}

/* All other tables, in the generation of the survey, which is made anew when that has passed. */
static int read_others(struct audit *a, struct firewall *fw, struct error *e)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t generation = 0;
		int r = foreign_read(&a->foreign, e);

		if (r == 0)
			r = firewall_generation(fw, &generation, e);
		if (r < 0 || generation == a->survey.generation)
			return r;
		foreign_free(&a->foreign);
		a->foreign = FOREIGN_NULL;
		if (read_survey(a, fw) < 0)
			break;
	}
	return error_set(e, -EAGAIN, "the ruleset kept changing: all of it was not read at once");
}

static int open_firewall(struct audit *a, struct firewall **ret, struct error *e)
{
	int r = a->policy.r;

	if (r < 0)
		return error_set(e, r, "what is wanted is not known: %s", a->policy.e.text);
	r = check_namespace(a, e);
	return r < 0 ? r : firewall_open(ret, e);
}

static void read_firewall(struct audit *a)
{
	struct firewall *fw = NULL;

	a->firewall.r = open_firewall(a, &fw, &a->firewall.e);
	if (a->firewall.r == 0)
		read_survey(a, fw);
	a->others = a->firewall;
	if (a->firewall.r == 0)
		a->others.r = read_others(a, fw, &a->others.e);
	firewall_free(fw);
}

/* ---- all ---- */

void audit_gather(struct audit *a)
{
	a->daemon = find_daemon();
	a->config.r = daemon_read_config(&a->wanted.config, &a->config.e);
	a->policy = a->config;
	if (a->config.r == 0)
		a->policy.r = daemon_make_policy(&a->wanted, &a->policy.e);
	read_firewall(a);
	a->rows.r = rows_ask(WIRE_SOCKET, NULL, &a->before, &a->rows.e);
	a->processes = a->config;
	if (a->config.r == 0)
		a->processes.r = read_processes(a, &a->processes.e);
	if (a->rows.r == 0)
		a->rows.r = rows_ask(WIRE_SOCKET, NULL, &a->after, &a->rows.e);
}

void audit_release(struct audit *a)
{
	rows_free(&a->before);
	rows_free(&a->after);
	foreign_free(&a->foreign);
	free(a->process);
	daemon_free_policy(&a->wanted);
	daemon_free_config(&a->wanted.config);
}
