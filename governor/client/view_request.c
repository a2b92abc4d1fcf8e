/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/view_request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/client/report_file.h"

static const struct {
	const char *option;
	enum view_kind kind;
} kinds[] = {
	{ "ro", VIEW_RO },
	{ "rw", VIEW_RW },
	{ "pin", VIEW_PIN },
	{ "hide", VIEW_HIDE },
};

static enum view_kind kind_of(const char *option)
{
	size_t i = 0;

	while (strcmp(kinds[i].option, option) != 0)
		i++;
	return kinds[i].kind;
}

static int refuse(const char *option, const char *text, const char *why, struct error *e)
{
	char shown[72];

	return error_set(e, -EINVAL, "--%s: \"%s\" %s", option,
			 text_escape(text, shown, sizeof(shown)), why);
}

static int take_text(struct view_item *item, const char *option, const char *text, size_t len,
		     struct error *e)
{
	if (len > VIEW_TEXT_MAX)
		return refuse(option, text, "is longer than 255 bytes", e);
	memcpy(item->text, text, len);
	item->text[len] = '\0';
	return 0;
}

static int parse_pin(struct view_item *item, const char *text, bool has_rw, struct error *e)
{
	size_t len = strlen(text);
	int r;

	if (len > 3 && strcmp(text + len - 3, ":ro") == 0) {
		item->kind = VIEW_PIN_RO;
		len -= 3;
	}
	r = take_text(item, "pin", text, len, e);
	if (r == 0 && !entry_name_valid(item->text))
		r = refuse("pin", text,
			   "is no name of an entry of the --rw directory, without \"/\"", e);
	if (r == 0 && !has_rw)
		r = refuse("pin", text, "needs --rw DIR in front of it", e);
	return r;
}

static int parse_item(struct view_item *item, const char *option, const char *text, bool has_rw,
		      struct error *e)
{
	int r;

	item->kind = kind_of(option);
	switch (item->kind) {
	case VIEW_PIN:
		return parse_pin(item, text, has_rw, e);
	case VIEW_HIDE:
		r = take_text(item, option, text, strlen(text), e);
		return r < 0 || path_is_plain(item->text)
			       ? r
			       : refuse(option, text,
					"is no absolute path such as /srv/x, without \"//\", \".\" "
					"and \"..\"",
					e);
	default: /* view_request_open() looks */
		if (!text[0])
			return refuse(option, text, "is no path", e);
		return take_text(item, option, text, strlen(text), e);
	}
}

int view_request_parse(const struct option_list *list, struct view_item view[VIEW_ITEMS_MAX],
		       struct error *e)
{
	bool has_rw = false;

	_Static_assert(OPTION_LIST_MAX <= VIEW_ITEMS_MAX, "every option has a place");
	for (size_t i = 0; i < list->n; i++) {
		int r = parse_item(&view[i], list->item[i].option->name, list->item[i].text, has_rw,
				   e);

		if (r < 0)
			return r;
		has_rw |= view[i].kind == VIEW_RW;
	}
	return 0;
}

/* The path as it was written, made absolute; "" when it is too long, or not plain: it is only for
 * symbolic links on the way, so that the guest can use the same words. */
static void make_absolute(struct view_item *item)
{
	char path[PATH_MAX], *end;

	if (item->text[0] == '/')
		snprintf(path, sizeof(path), "%s", item->text);
	else if (!getcwd(path, sizeof(path)) || strcmp(item->text, ".") == 0)
		path[0] = '\0';
	else
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", item->text);
	for (end = path + strlen(path); end > path + 1 && end[-1] == '/';)
		*--end = '\0';
	if (!path_is_plain(path) || strlen(path) > VIEW_TEXT_MAX)
		path[0] = '\0';
	strcpy(item->text, path);
}

int view_request_open(struct view_item view[VIEW_ITEMS_MAX], int *fds, struct error *e)
{
	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++) {
		const char *option = view[i].kind == VIEW_RW ? "rw" : "ro";

		if (!view_kind_has_fd(view[i].kind))
			continue;
		*fds = open(view[i].text, O_PATH | O_CLOEXEC);
		if (*fds < 0)
			return error_errno(e, -errno, "--%s: %s", option, view[i].text);
		fds++;
		make_absolute(&view[i]);
	}
	return 0;
}

/* ---- the report ---- */

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* The directory that the file @path is in. */
static int open_directory_of(const char *path)
{
	char above[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash)
		return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(above, sizeof(above), "%.*s", (int)(slash - path + 1), path);
	return open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Is @fd the directory @top, or below it? Up to the root, whichever names led down. */
static bool is_below(int *fd, int top)
{
	for (;;) {
		_cleanup_close_ int above = -1;

		if (same_file(*fd, top))
			return true;
		above = openat(*fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (above < 0 || same_file(*fd, above))
			return false;
		close(*fd);
		*fd = TAKE_FD(above);
	}
}

int view_request_check_report(const struct view_item view[VIEW_ITEMS_MAX], const int *fds,
			      const char *path, struct error *e)
{
	char shown[REPORT_SHOWN_MAX];

	if (strncmp(path, "fd:", 3) == 0)
		return 0;
	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++) {
		_cleanup_close_ int fd = -1;

		if (!view_kind_has_fd(view[i].kind))
			continue;
		fd = view[i].kind == VIEW_RW ? open_directory_of(path) : -1;
		if (fd >= 0 && is_below(&fd, *fds))
			return error_set(
				e, -EINVAL,
				"--report: %s lies in the directory of --rw, where the guest "
				"could put something else in its place; write it elsewhere",
				text_escape(path, shown, sizeof(shown)));
		fds++;
	}
	return 0;
}
