/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Uids that come back: free again when nothing of them is left, which is looked at now and then. */
#include "common/clock.h"
#include "governor/daemon/asks.h"
#include "governor/daemon/journal.h"

#define DIRTY_USEC	(10 * USEC_PER_SEC) /* until a uid that was not clean is looked at again */
#define QUARANTINE_USEC (USEC_PER_SEC / 5)  /* one look for all uids of that time */

static void uid_held(uint32_t uid, const char *why)
{
	journal_error("uid %u of the pool is not used: %s", uid, why);
}

static void look_later(struct daemon *d, uint64_t usec)
{
	sd_event_source_set_time_relative(d->quarantine, usec);
	sd_event_source_set_enabled(d->quarantine, SD_EVENT_ONESHOT);
}

/* Not put off by what comes back meanwhile. */
static uint64_t until_all(const struct daemon *d)
{
	uint64_t passed = clock_usec(CLOCK_MONOTONIC) - d->looked_usec;

	return passed < DIRTY_USEC ? DIRTY_USEC - passed : 0;
}

static void verify_all(struct daemon *d)
{
	struct error e = ERROR_NULL;

	d->looked_usec = clock_usec(CLOCK_MONOTONIC);
	if (identity_verify(d->pool, uid_held, &e) < 0)
		journal_error("the quarantine cannot be looked at: %s", e.text);
	if (identity_n_quarantined(d->pool) > 0)
		look_later(d, DIRTY_USEC);
}

/* What came back; and now and then, however much does, all that was not clean. */
static int on_quarantine(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)usec;
	daemon_verify_uids(d);
	if (identity_n_quarantined(d->pool) > 0 && until_all(d) == 0)
		verify_all(d);
	asks_admit_waiting(d);
	return 0;
}

void daemon_quarantine(struct daemon *d, uint32_t uid)
{
	identity_return(d->pool, uid);
	if (d->unverified)
		return;
	d->unverified = true;
	look_later(d, QUARANTINE_USEC);
}

void daemon_verify_uids(struct daemon *d)
{
	if (!d->unverified)
		return;
	d->unverified = false;
	identity_verify_returned(d->pool, uid_held);
	if (identity_n_quarantined(d->pool) > 0)
		look_later(d, until_all(d));
}

int daemon_make_pool(struct daemon *d, struct error *e)
{
	int r = identity_pool_new(d->config->first_uid, d->config->uid_count, &d->pool);

	if (r < 0)
		return error_errno(e, r, "the pool of uids");
	d->looked_usec = clock_usec(CLOCK_MONOTONIC);
	return identity_verify(d->pool, uid_held, e);
}

int daemon_add_pool_source(struct daemon *d)
{
	int r = sd_event_add_time_relative(d->event, &d->quarantine, CLOCK_MONOTONIC, DIRTY_USEC, 0,
					   on_quarantine, d);

	if (r >= 0 && identity_n_quarantined(d->pool) == 0)
		r = sd_event_source_set_enabled(d->quarantine, SD_EVENT_OFF);
	return r;
}
