/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"

static int open_number(struct report_file *f, const char *number, struct error *e)
{
	uint64_t fd;
	int flags;
	char shown[72];

	if (strspn(number, "0123456789") != strlen(number) || parse_u64_prefix(number, &fd) < 0 ||
	    fd > INT32_MAX)
		return error_set(e, -EINVAL, "--report: \"%s\" is no descriptor: write fd:3",
				 text_escape(f->name, shown, sizeof(shown)));
	flags = fcntl((int)fd, F_GETFL);
	if (flags < 0)
		return error_set(e, -EBADF, "--report: descriptor %s is not open", number);
	if ((flags & O_ACCMODE) == O_RDONLY)
		return error_set(e, -EBADF, "--report: descriptor %s is not open for writing",
				 number);
	f->fd = (int)fd;
	return 0;
}

static int open_path(struct report_file *f, struct error *e)
{
	/* O_NONBLOCK: a FIFO fails instead of waiting for a reader */
	_cleanup_close_ int fd =
		open(f->name,
		     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
		     0666);
	int number = fd < 0 ? errno : 0;
	struct stat st;
	char shown[REPORT_SHOWN_MAX];

	text_escape(f->name, shown, sizeof(shown));
	if (number == ELOOP)
		return error_set(e, -ELOOP, "--report: %s is a symbolic link: name the file itself",
				 shown);
	if (fd < 0 && number != ENXIO)
		return error_errno(e, -number, "--report: cannot write %s", shown);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(e, -EINVAL,
				 "--report: %s is not a regular file: open it and use fd:N", shown);
	f->fd = TAKE_FD(fd);
	f->owned = 1;
	return 0;
}

int report_file_open(struct report_file *f, const char *text, struct error *e)
{
	f->name = text;
	return strncmp(text, "fd:", 3) == 0 ? open_number(f, text + 3, e) : open_path(f, e);
}

int report_file_write(const struct report_file *f, const struct report *report, struct error *e)
{
	_cleanup_free_ char *line = NULL;
	char shown[REPORT_SHOWN_MAX];
	int r;

	if (f->fd < 0)
		return 0;
	line = report_json(report);
	r = line ? write_whole(f->fd, line, strlen(line)) : -ENOMEM;
	if (r < 0)
		return error_errno(e, r, "cannot write the report to %s",
				   text_escape(f->name, shown, sizeof(shown)));
	return 0;
}

void report_file_close(struct report_file *f)
{
	if (f->owned)
		close(f->fd);
	*f = REPORT_FILE_NULL;
}
