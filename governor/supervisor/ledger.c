/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"

#define UNFINISHED "."

int ledger_open(const char *path, struct error *e)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return error_errno(e, -errno, "%s: cannot be made", path);
	return 0;
}

static void entry_path(const char *path, const char *before, const char *id, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s%.*s", path, before, RUN_ID_LEN, id);
}

static int write_entry(const char *file, const void *data, size_t n)
{
	_cleanup_close_ int fd =
		open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : write_whole(fd, data, n);
}

/* Whoever writes it may be killed at any time: the earlier one stays until this one is whole. Where
 * there is no room for both (ENOSPC) this one, or an empty one: the earlier one is no longer true.
 */
int ledger_note(const char *path, const struct report *r, struct error *e)
{
	WIRE_BUFFER(buf);
	char file[512], unfinished[512];
	ssize_t n = wire_encode(WIRE_REPORT, report_fields, report_n_fields, r, buf, sizeof(buf));
	int ret;

	entry_path(path, "", r->id, file, sizeof(file));
	entry_path(path, UNFINISHED, r->id, unfinished, sizeof(unfinished));
	ret = n < 0 ? (int)n : write_entry(unfinished, buf, (size_t)n);
	if (ret == 0 && rename(unfinished, file) < 0)
		ret = -errno;
	if (ret < 0) {
		unlink(unfinished);
		ret = write_entry(file, buf, n < 0 ? 0 : (size_t)n);
	}
	return ret < 0 ? error_errno(e, ret, "%s: cannot be written", file) : 0;
}

void ledger_forget(const char *path, const char *id)
{
	char file[512];

	entry_path(path, "", id, file, sizeof(file));
	unlink(file);
}

static bool is_id(const char *name)
{
	return strlen(name) == RUN_ID_LEN && strspn(name, "0123456789abcdef") == RUN_ID_LEN;
}

/* Of an entry's writer who was killed. */
static bool is_unfinished(const char *name)
{
	return strncmp(name, UNFINISHED, strlen(UNFINISHED)) == 0 &&
	       is_id(name + strlen(UNFINISHED));
}

static void read_entry(int dirfd, const char *id, struct report *r)
{
	_cleanup_close_ int fd = openat(dirfd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	WIRE_BUFFER(buf);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	report_clear(r);
	if (n > 0 && wire_type(buf, (size_t)n, NULL) == WIRE_REPORT)
		wire_decode(report_fields, report_n_fields, buf, (size_t)n, r, NULL);
	r->ended %= ENDED_COUNT;
	memcpy(r->id, id, RUN_ID_LEN);
}

int ledger_settle(const char *path, ledger_found found, void *userdata, struct error *e)
{
	_cleanup_(close_directory) DIR *entries = opendir(path);
	struct dirent *entry;

	if (!entries)
		return error_errno(e, -errno, "%s: cannot be read", path);
	while ((entry = readdir(entries))) {
		struct report r;

		if (is_unfinished(entry->d_name))
			unlinkat(dirfd(entries), entry->d_name, 0);
		if (!is_id(entry->d_name))
			continue;
		read_entry(dirfd(entries), entry->d_name, &r);
		found(userdata, &r);
		unlinkat(dirfd(entries), entry->d_name, 0);
	}
	return 0;
}
