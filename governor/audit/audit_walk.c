/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"

#define DEPTH_MAX 32
#define PATH_SIZE 1024

static void unknown(struct audit_walk *w, const char *path, const char *why)
{
	char shown[256];

	finding_add(w->f, VERDICT_UNKNOWN, "%s is not looked into: %s",
		    text_escape(path, shown, sizeof(shown)), why);
}

static void look_below(struct audit_walk *w, int fd, const char *path, unsigned int depth);

/* Nobody's link is followed: these are directories in which everybody may write. */
static void look_at(struct audit_walk *w, int fd, const char *path, const char *name,
		    unsigned int depth)
{
	char full[PATH_SIZE];
	struct stat st;
	int below;

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", path, name) >= sizeof(full)) {
		unknown(w, path, "a name is too long");
		return;
	}
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* gone meanwhile */
	w->found(w, full, &st);
	if (!S_ISDIR(st.st_mode))
		return;
	below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below >= 0)
		look_below(w, below, full, depth + 1);
	else if (errno != ENOENT)
		unknown(w, full, strerror(errno));
}

/* Takes @fd over. */
static void look_below(struct audit_walk *w, int fd, const char *path, unsigned int depth)
{
	_cleanup_(close_directory) DIR *directory = fdopendir(fd);
	struct dirent *entry;

	if (!directory)
		close(fd);
	if (!directory || depth > DEPTH_MAX) {
		unknown(w, path, directory ? "it lies too deep" : strerror(errno));
		return;
	}
	while (w->n <= w->max && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		w->n++;
		look_at(w, fd, path, entry->d_name, depth);
	}
}

void audit_walk(struct audit_walk *w, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		look_below(w, fd, path, 0);
	else if (errno != ENOENT)
		unknown(w, path, strerror(errno));
	if (w->n > w->max)
		unknown(w, path, "there are too many files");
}
