/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What uids of the pool left where the next guest with the uid would find it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"

#define FILES_MAX    100000 /* looked at, of all directories together */
#define IPC_LINE_MAX 512

/* ---- files ---- */

static void judge_file(struct audit_walk *w, const char *path, const struct stat *st)
{
	char shown[256];

	if (audit_is_pool_uid(w->a, st->st_uid))
		finding_add(w->f, VERDICT_FAIL, "%s belongs to uid %u",
			    text_escape(path, shown, sizeof(shown)), st->st_uid);
}

static void look_files(const struct audit *a, struct finding *f)
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue",
					      "/run/lock" };
	struct audit_walk w = { .a = a, .f = f, .found = judge_file, .max = FILES_MAX };

	if (a->config.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		audit_walk(&w, places[i]);
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "%zu files, none of them belongs to a uid of the pool",
			    w.n);
}

/* ---- IPC ---- */

static const struct {
	const char *path;
	unsigned int uid, creator; /* columns */
} ipc[] = {
	{ "/proc/sysvipc/shm", 7, 9 },
	{ "/proc/sysvipc/sem", 4, 6 },
	{ "/proc/sysvipc/msg", 7, 9 },
};

/* Column @n, from 0 on, of a line of numbers. */
static bool column(const char *line, unsigned int n, uint32_t *ret)
{
	for (; n > 0 && line; n--) {
		line += strspn(line, " ");
		line = strchr(line, ' ');
	}
	return line && sscanf(line, "%" SCNu32, ret) == 1;
}

bool audit_ipc_uids(const char *line, size_t kind, uint32_t *ret_uid, uint32_t *ret_creator)
{
	return column(line, ipc[kind].uid, ret_uid) && column(line, ipc[kind].creator, ret_creator);
}

/* The first line has the columns' names. */
static size_t look_ipc_file(const struct audit *a, size_t kind, FILE *file, struct finding *f)
{
	char line[IPC_LINE_MAX];
	size_t n = 0;

	while (fgets(line, sizeof(line), file)) {
		uint32_t id, uid, creator;

		if (!audit_ipc_uids(line, kind, &uid, &creator))
			continue;
		n++;
		if (audit_is_pool_uid(a, uid) || audit_is_pool_uid(a, creator))
			finding_add(f, VERDICT_FAIL, "%s: id %" PRIu32 " belongs to uid %" PRIu32,
				    ipc[kind].path, column(line, 1, &id) ? id : 0, uid);
	}
	return n;
}

static void look_ipc(const struct audit *a, struct finding *f)
{
	size_t n = 0;

	if (a->config.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ipc); i++) {
		_cleanup_(close_file) FILE *file = fopen(ipc[i].path, "re");

		if (file)
			n += look_ipc_file(a, i, file, f);
		else if (errno != ENOENT) /* else the kernel has no such thing */
			finding_add(f, VERDICT_UNKNOWN, "%s cannot be read: %s", ipc[i].path,
				    strerror(errno));
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "%zu object%s, none of a uid of the pool", n,
			    PLURAL(n));
}

/* ---- keys ---- */

struct key_search {
	const struct audit *a;
	struct finding *f;
};

static bool is_leased(const struct audit *a, uint32_t uid)
{
	const struct rows *all[] = { &a->before, &a->after };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (size_t j = 0; j < all[i]->n; j++)
			if (all[i]->row[j].uid == uid)
				return true;
	return false;
}

static void found_key(void *userdata, uint32_t uid)
{
	struct key_search *s = userdata;

	if (audit_is_pool_uid(s->a, uid) && !is_leased(s->a, uid))
		finding_add(s->f, VERDICT_FAIL, "keys belong to uid %" PRIu32, uid);
}

static void look_keys(const struct audit *a, struct finding *f)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/key-users", "re");
	struct key_search s = { a, f };

	if (a->config.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
	else if (!file && errno == ENOENT)
		finding_add(f, VERDICT_PASS, "the kernel has no keys");
	else if (!file)
		finding_add(f, VERDICT_UNKNOWN, "/proc/key-users cannot be read: %s",
			    strerror(errno));
	else
		identity_parse_key_users(file, found_key, &s);
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "none");
}

const struct audit_check audit_leftover_checks[] = {
	{ "HG-RUN-008", "No uid of the pool owns a file where everybody may write",
	  "/tmp, /var/tmp, /dev/shm, /dev/mqueue and /run/lock, wholly, up to 100000 files",
	  "The next guest that gets the uid can read and change it.",
	  "Remove it; a caller whose directory it lies in has to clean up after its guest",
	  look_files },
	{ "HG-RUN-009", "No uid of the pool owns a System V IPC object", "/proc/sysvipc",
	  "The next guest that gets the uid could read and change it.",
	  "ipcrm it; find out who made it: guests have an IPC namespace of their own", look_ipc },
	{ "HG-RUN-010", "No uid of the pool without a guest owns keys", "/proc/key-users",
	  "The uid is held back: no guest gets it as long as the key is there.",
	  "Revoke it (keyctl); find out who made it: guests cannot", look_keys },
	{ 0 },
};
