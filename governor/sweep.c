/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "governor/cgroup_counters.h"
#include "governor/ledger.h"

#define ROUNDS	 100
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

/* Kills what is in there; the number of scopes, the name of one in @last. */
static int kill_scopes(const char *path, char *last, size_t size, struct error *e)
{
	_cleanup_(close_directory) DIR *slice = opendir(path);
	struct dirent *entry;
	int n = 0;

	if (!slice)
		return error_errno(e, -errno, "%s: cannot be read", path);
	while ((entry = readdir(slice))) {
		_cleanup_close_ int fd = -1;

		if (!is_own_scope(entry->d_name))
			continue;
		fd = openat(dirfd(slice), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue; /* gone meanwhile */
		cgroup_kill_scope(fd);
		snprintf(last, size, "%s", entry->d_name);
		n++;
	}
	return n;
}

struct sweep {
	const char *slice;
	sweep_found found;
};

static void on_found(void *userdata, struct report *r)
{
	const struct sweep *s = userdata;
	char scope[512];

	if (profile_name_valid(r->profile) && r->scope[0]) {
		snprintf(scope, sizeof(scope), "%s/harpe-%s.slice/%s", s->slice, r->profile,
			 r->scope);
		cgroup_counters_at(scope, r);
	}
	s->found(r);
}

int sweep_ledger(const char *slice, const char *ledger, sweep_found found, struct error *e)
{
	struct sweep s = { .slice = slice, .found = found };

	return ledger_settle(ledger, on_found, &s, e);
}

static int sweep_slice(const char *path, struct error *e)
{
	struct timespec pause = { .tv_nsec = ROUND_NS };
	char last[256] = "";
	int n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		n = kill_scopes(path, last, sizeof(last), e);
		if (n <= 0)
			return n;
		nanosleep(&pause, NULL);
	}
	return error_set(e, -EBUSY, "%s/%s: an earlier run's scope does not go away (%d of them)",
			 path, last, n);
}

int sweep_slices(const char *slice, struct error *e)
{
	_cleanup_(close_directory) DIR *slices = opendir(slice);
	struct dirent *entry;
	int r = 0;

	if (!slices)
		return error_errno(e, -errno, "%s: cannot be read", slice);
	while (r == 0 && (entry = readdir(slices))) {
		char path[512];

		if (!has_suffix(entry->d_name, ".slice"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", slice, entry->d_name);
		r = sweep_slice(path, e);
	}
	return r;
}
