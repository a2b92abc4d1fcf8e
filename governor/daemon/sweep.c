/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/daemon/part.h"
#include "governor/guest/cgroup_counters.h"
#include "governor/supervisor/ledger.h"

#define ROUNDS	 100	   /* in which none goes */
#define ROUND_NS 100000000 /* 0.1 s */

static int has_suffix(const char *name, const char *suffix)
{
	const char *dot = strrchr(name, '.');

	return dot && strcmp(dot, suffix) == 0;
}

/* One of ours, of a guest or a pin. Others may have put theirs there: the audit names them. */
static int is_own_scope(const char *name)
{
	return strncmp(name, "harpe-", strlen("harpe-")) == 0 && has_suffix(name, ".scope");
}

struct left {
	unsigned int n;
	char last[512]; /* the path of one */
	bool forgotten; /* by systemd, which gives up as well: empty ones are ours to remove */
};

static void kill_scope(int slice, const char *path, const char *name, struct left *left)
{
	_cleanup_close_ int fd = openat(slice, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return; /* gone meanwhile */
	cgroup_kill_scope(fd);
	snprintf(left->last, sizeof(left->last), "%s/%s", path, name);
	left->n++;
	if (left->forgotten)
		cgroup_remove_scope(left->last);
}

/* Kills what is in the scopes of the slice @path, and in those of its child slices. */
static int kill_scopes(const char *path, bool has_parts, struct left *left, struct error *e)
{
	_cleanup_(close_directory) DIR *slice = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!slice)
		return errno == ENOENT ? 0 : error_errno(e, -errno, "%s: cannot be read", path);
	while (r == 0 && (entry = readdir(slice))) {
		char below[512];

		if (is_own_scope(entry->d_name))
			kill_scope(dirfd(slice), path, entry->d_name, left);
		if (!has_parts || !has_suffix(entry->d_name, ".slice"))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		r = kill_scopes(below, false, left, e);
	}
	return r;
}

struct sweep {
	const char *slice;
	sweep_found found;
};

/* In which part of its profile's slice it is, nobody wrote down. */
static bool find_scope(const char *slice, const struct report *r, char ret[PATH_TEXT_MAX + 256])
{
	char unit[PART_UNIT_MAX], profile[PATH_TEXT_MAX / 2], path[PATH_TEXT_MAX];

	snprintf(profile, sizeof(profile), "%s/%s", slice, part_unit(r->profile, 0, unit));
	for (unsigned int i = 0; i < PARTS_MAX; i++) {
		part_path(profile, r->profile, i, path);
		snprintf(ret, PATH_TEXT_MAX + 256, "%s/%s", path, r->scope);
		if (access(ret, F_OK) == 0)
			return true;
	}
	return false;
}

static void on_found(void *userdata, struct report *r)
{
	const struct sweep *s = userdata;
	char scope[PATH_TEXT_MAX + 256];

	if (profile_name_valid(r->profile) && r->scope[0] && find_scope(s->slice, r, scope))
		cgroup_counters_at(scope, r);
	s->found(r);
}

int sweep_ledger(const char *slice, const char *ledger, sweep_found found, struct error *e)
{
	struct sweep s = { .slice = slice, .found = found };

	return ledger_settle(ledger, on_found, &s, e);
}

/* All profiles' slices at once. */
static int kill_all(const char *slice, struct left *left, struct error *e)
{
	_cleanup_(close_directory) DIR *slices = opendir(slice);
	struct dirent *entry;
	int r = 0;

	*left = (struct left){ .forgotten = left->forgotten };
	if (!slices)
		return error_errno(e, -errno, "%s: cannot be read", slice);
	while (r == 0 && (entry = readdir(slices))) {
		char path[512];

		if (!has_suffix(entry->d_name, ".slice"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", slice, entry->d_name);
		r = kill_scopes(path, true, left, e);
	}
	return r;
}

/* As long as they get fewer: systemd takes its time for many. */
int sweep_slices(const char *slice, struct error *e)
{
	struct timespec pause = { .tv_nsec = ROUND_NS };
	unsigned int least = UINT_MAX;
	struct left left;

	for (int i = 0; i < ROUNDS; i++) {
		int r;

		left.forgotten = i >= ROUNDS / 2;
		r = kill_all(slice, &left, e);

		if (r < 0 || left.n == 0)
			return r;
		if (left.n < least) {
			least = left.n;
			i = 0;
		}
		nanosleep(&pause, NULL);
	}
	return error_set(e, -EBUSY, "%s: an earlier run's scope does not go away (%u of them)",
			 left.last, left.n);
}
