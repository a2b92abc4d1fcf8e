/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slots have a copy of what the host has mounted where all views show it: they follow its changes.
 */
#include "governor/daemon/daemon_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "governor/daemon/slots.h"
#include "governor/guest/mounts.h"

static uint64_t look(const struct daemon *d)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/self/mountinfo", "re");

	return file ? mounts_fingerprint(file, &d->view) : 0;
}

static int on_mounts(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	uint64_t now = look(d);

	(void)source;
	(void)fd;
	(void)revents;
	if (now == d->mounts_seen)
		return 0;
	d->mounts_seen = now;
	slots_drop(d);
	slots_need(d);
	return 0;
}

int daemon_watch_mounts(struct daemon *d)
{
	sd_event_source *source = NULL;
	int r;

	d->mountinfo = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	d->mounts_seen = look(d);
	if (d->mountinfo < 0)
		return -errno;
	r = sd_event_add_io(d->event, &source, d->mountinfo, EPOLLPRI, on_mounts, d);
	if (r >= 0) /* others can mount as often as they like */
		r = sd_event_source_set_ratelimit(source, USEC_PER_SEC, 1);
	if (r >= 0)
		r = sd_event_source_set_floating(source, true);
	sd_event_source_unref(source);
	return r;
}
