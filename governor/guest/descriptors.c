/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

static int place(int *fd, int number)
{
	if (*fd < 0)
		close(number);
	else if (dup3(*fd, number, number <= STDERR_FILENO ? 0 : O_CLOEXEC) < 0)
		return -errno;
	else
		*fd = number;
	return 0;
}

/* First out of the way of the numbers that they get. */
int keep_descriptors(int *const list[], int n, int first, unsigned int flags)
{
	int r = 0;

	for (int i = 0; i < n; i++)
		if (*list[i] >= 0) {
			*list[i] = fcntl(*list[i], F_DUPFD_CLOEXEC, first + n);
			if (*list[i] < 0)
				return -errno;
		}
	for (int i = 0; i < n && r == 0; i++)
		r = place(list[i], first + i);
	if (r == 0 && close_range((unsigned int)(first + n), ~0U, flags) < 0)
		r = -errno;
	return r;
}
