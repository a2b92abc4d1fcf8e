/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/spare.h"

#include <string.h>

#include "governor/daemon/journal.h"
#include "governor/daemon/run.h"
#include "governor/daemon/runs.h"

#define PAUSE_USEC (USEC_PER_SEC / 10) /* for the run that took one to get going */
#define RETRY_USEC USEC_PER_SEC

static bool is_wanted(const struct daemon *d)
{
	return !d->spare && !d->stopping && runs_have_room(d);
}

static void watch_listener(struct daemon *d)
{
	sd_event_source_set_enabled(d->listener, is_wanted(d) ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void set_timer(struct daemon *d, uint64_t usec)
{
	sd_event_source_set_time_relative(d->need_spare, usec);
	sd_event_source_set_enabled(d->need_spare, SD_EVENT_ONESHOT);
}

static void make(struct daemon *d)
{
	int r = 0;

	if (is_wanted(d))
		r = runs_start_supervisor(d, &d->spare);
	if (r == 0) {
		watch_listener(d);
		return;
	}
	journal_error("no supervisor for the next connection, which waits: %s", strerror(-r));
	sd_event_source_set_enabled(d->listener, SD_EVENT_OFF);
	set_timer(d, RETRY_USEC);
}

/* There is no spare, or it would have been faster. */
static int on_connection(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	daemon_keep_slices(userdata);
	make(userdata);
	return 0;
}

static int on_need(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)usec;
	if (d->stopping)
		return 0;
	daemon_keep_slices(d);
	make(d);
	return 0;
}

int spare_add_sources(struct daemon *d, int listener)
{
	int r = sd_event_add_io(d->event, &d->listener, listener, EPOLLIN, on_connection, d);

	d->listen_fd = listener;
	if (r >= 0)
		r = sd_event_add_time_relative(d->event, &d->need_spare, CLOCK_MONOTONIC, 0, 0,
					       on_need, d);
	return r;
}

static bool is_pending(const struct daemon *d)
{
	int pending = SD_EVENT_OFF;

	sd_event_source_get_enabled(d->need_spare, &pending);
	return pending != SD_EVENT_OFF;
}

void spare_need(struct daemon *d, uint64_t usec)
{
	if (is_wanted(d) && (!is_pending(d) || usec == 0))
		set_timer(d, usec);
}

static void leave(struct daemon *d)
{
	d->spare = NULL;
	watch_listener(d);
	spare_need(d, PAUSE_USEC);
}

void spare_taken(struct run *r)
{
	if (r == r->d->spare)
		leave(r->d);
}

/* One that ends by itself may do so again: the next connection waits for a moment. */
void spare_lost(struct run *r)
{
	struct daemon *d = r->d;

	if (r == d->spare) {
		d->spare = NULL;
		journal_error(
			"the supervisor for the next connection ended; there is another one in a "
			"moment");
		set_timer(d, RETRY_USEC);
	} else if (!d->spare && !is_pending(d)) { /* there may be room again */
		leave(d);
	}
}

/* One that has accepted just now serves that connection. */
void spare_renew(struct daemon *d)
{
	struct pair_reply m = { .verb = PAIR_NONE };

	if (d->spare) {
		run_reply(d->spare, 0, &m);
		run_set_timer(d->spare, REQUEST_USEC);
	}
	leave(d);
}
