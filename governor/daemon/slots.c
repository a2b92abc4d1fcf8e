/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/slots.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/place.h"
#include "governor/daemon/policy.h"
#include "governor/guest/cgroup.h"
#include "governor/guest/descriptors.h"
#include "governor/guest/spaces.h"

#define PAUSE_USEC (USEC_PER_SEC / 10) /* for the run that took one to get going */
#define AT_ONCE	   4
#define LIFE_USEC  (3600 * USEC_PER_SEC) /* then a slot goes, and comes back with the next run */

static bool is_ready(const struct run *r)
{
	return r->slot && r->state == RUN_WARM && r->supervisor == 0 && !r->late;
}

/* Later, since this may free it: the list is not to change under whoever goes through it. */
static void expire(struct run *r)
{
	r->late = true;
	run_set_timer(r, 0);
}

/* ---- making one: the part that a process of its own does ---- */

/* What the kernel may take its time for. */
static int prepare_place(const struct run *r, int ground, struct spaces *ret_spaces,
			 struct error *e)
{
	const struct view_start start = { .ground = ground,
					  .base = &r->d->view,
					  .tmp_bytes = r->made.value[LIMIT_MEMORY] };
	struct cgroup cg = CGROUP_NULL;
	struct limits unasked;
	int ret;

	limits_clear(&unasked);
	cg.untold = limits_untold(&unasked, &r->made);
	ret = r->served ? cgroup_renew(&cg, r->path, &r->made, e)
			: cgroup_make(&cg, r->path, r->holder.pid, e);
	return ret < 0 ? ret : spaces_make(&start, r->slice->own_network, ret_spaces, e);
}

static void prepare(struct run *r, int pair)
{
	struct pair_ask ask = { .verb = PAIR_WARM };
	struct spaces spaces = SPACES_NULL;
	int ground = r->d->ground;
	int *const list[] = { &pair, &ground };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (keep_descriptors(list, ARRAY_SIZE(list), STDERR_FILENO + 1, 0) < 0)
		return;
	prepare_place(r, ground, &spaces, &ask.error);
	pair_send_with(pair, &ask, sizeof(ask), &spaces);
}

static pid_t fork_preparer(struct run *r, int pair)
{
	pid_t pid = fork();

	if (pid == 0) {
		prepare(r, pair);
		_exit(0);
	}
	return pid < 0 ? -errno : pid;
}

/* ---- making one: the daemon's part ---- */

static void fail(struct run *r, const struct error *e)
{
	journal_error("no warm slot: %s", e->text);
	run_lose(r);
}

static uint64_t rest_of_life(const struct run *r)
{
	uint64_t age = clock_usec(CLOCK_MONOTONIC) - r->born_usec;

	return age < LIFE_USEC ? LIFE_USEC - age : 0;
}

static int on_warm(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct run *r = userdata;
	struct pair_ask ask;

	(void)revents;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (pair_receive_with(fd, &ask, sizeof(ask), &r->spaces) < 0 || ask.verb != PAIR_WARM)
		return 0; /* it ended: that is seen by itself */
	if (ask.error.text[0])
		journal_error("no warm slot: %s", ask.error.text);
	if (r->spaces.mounts < 0 || r->late)
		return 0;
	r->state = RUN_WARM;
	run_set_timer(r, rest_of_life(r));
	slots_need(r->d);
	return 0;
}

void slots_prepare(struct run *r)
{
	struct error e = ERROR_NULL;
	int ret = run_start(r, fork_preparer, on_warm);

	if (ret < 0) {
		error_errno(&e, ret, "no process to prepare it");
		fail(r, &e);
		return;
	}
	r->state = RUN_PREPARING;
	run_set_timer(r, SETUP_USEC);
}

static void on_started(void *userdata, int ret, const struct error *error)
{
	struct run *r = userdata;
	struct error e = *error;

	if (ret == -EINPROGRESS)
		return; /* the timer ends it */
	r->job = false;
	if (r->state != RUN_STARTING) {
		place_leave(r);
		return;
	}
	if (ret == 0)
		ret = place_check(r, &e);
	if (ret == 0)
		slots_prepare(r);
	else
		fail(r, &e);
}

/* The limits and the profile of a run that asks for nothing. Whether its caller may have them is
 * asked when there is one: not all may be allowed the default profile. */
static int settle(struct run *r, struct error *e)
{
	const struct config *c = r->d->config;
	struct limit_origins origins;
	struct limits unasked;
	int ret;

	r->slice = daemon_slice(r->d, c->net);
	limits_clear(&unasked);
	ret = policy_limits(c, &c->access[0], &unasked, &r->made, &origins, e);
	if (ret == 0)
		ret = place_name(r, e);
	if (ret == 0 && r->made.value[LIMIT_TIME] != LIMIT_INFINITY)
		r->made.value[LIMIT_TIME] += LIFE_USEC; /* systemd counts from now on */
	return ret;
}

/* Nothing runs there: there is nothing to tell of it. */
static struct run *new_slot(struct daemon *d)
{
	struct run *r = run_new(d);

	if (r)
		r->slot = r->journaled = true;
	return r;
}

static int make(struct daemon *d)
{
	struct run *r = new_slot(d);
	struct error e = ERROR_NULL;
	char description[64];
	int ret;

	if (!r)
		return -ENOMEM;
	r->born_usec = clock_usec(CLOCK_MONOTONIC);
	r->epoch = d->slot_epoch;
	ret = settle(r, &e);
	snprintf(description, sizeof(description), "Guest %s, warm at first", r->id);
	if (ret == 0)
		ret = place_take(r, description, on_started, &e);
	if (ret < 0) {
		journal_error("no warm slot: %s", e.text);
		run_free(r);
	}
	return ret;
}

/* ---- how many there are ---- */

/* Will its scope be a slot again? One that is too old is no longer counted: who stays for long
 * would keep others from having slots. */
static bool comes_back(const struct run *r)
{
	return r->d->config->recycle && r->was_warm && r->has_scope && r->state < RUN_ENDING &&
	       r->epoch == r->d->slot_epoch && rest_of_life(r) > 0;
}

static uint32_t count(const struct daemon *d)
{
	uint32_t n = 0;

	for (const struct run *r = d->runs; r; r = r->next)
		n += (r->slot && r->state < RUN_ENDING && !r->late) || comes_back(r);
	return n;
}

static uint32_t count_unready(const struct daemon *d)
{
	uint32_t n = 0;

	for (const struct run *r = d->runs; r; r = r->next)
		n += r->slot && r->state < RUN_WARM;
	return n;
}

/* Not with the last uid: that is for who asks. And a few at a time, since runs that ask systemd as
 * well wait behind them: each that is ready brings the next. */
static int on_need(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)usec;
	while (!d->stopping && count(d) < d->config->warm && count_unready(d) < AT_ONCE &&
	       identity_n_free(d->pool) > 1)
		if (make(d) < 0)
			break; /* the next run brings another try */
	return 0;
}

int slots_add_source(struct daemon *d)
{
	int r = sd_event_add_time_relative(d->event, &d->slots, CLOCK_MONOTONIC, 0, 0, on_need, d);

	if (r >= 0)
		r = sd_event_source_set_enabled(d->slots, SD_EVENT_OFF);
	return r;
}

void slots_need(struct daemon *d)
{
	int pending = SD_EVENT_OFF;

	sd_event_source_get_enabled(d->slots, &pending);
	if (d->config->warm == 0 || pending != SD_EVENT_OFF)
		return;
	sd_event_source_set_time_relative(d->slots, PAUSE_USEC);
	sd_event_source_set_enabled(d->slots, SD_EVENT_ONESHOT);
}

void slots_drop(struct daemon *d)
{
	d->slot_epoch++; /* those that have a guest now do not come back */
	for (struct run *r = d->runs; r; r = r->next)
		if (r->slot && r->state < RUN_ENDING)
			expire(r);
}

/* One that is still being made holds a uid as well. */
static bool can_yield(const struct run *r)
{
	return r->slot && r->state < RUN_ENDING && !r->late;
}

void slots_yield(struct daemon *d)
{
	struct run *r = d->runs;

	while (r && !can_yield(r))
		r = r->next;
	if (!r)
		return;
	daemon_quarantine(d, r->uid);
	r->uid = 0;
	expire(r);
}

/* ---- taking one ---- */

/* What only the scope can have, and what guest/ can have less of. The rest is no matter of the
 * scope's. */
static const enum limit same[] = { LIMIT_IO_WEIGHT, LIMIT_IO_READ, LIMIT_IO_WRITE };
static const enum limit no_more[] = { LIMIT_MEMORY, LIMIT_SWAP, LIMIT_CPU };

/* systemd's own end of the scope must not come before the guest's. */
static bool fits_time(uint64_t made, uint64_t time)
{
	return made == LIMIT_INFINITY || (time < made && made - time >= LIFE_USEC);
}

bool slots_fit(const struct limits *made, const struct limits *limits)
{
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (limits->value[same[i]] != made->value[same[i]])
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(no_more); i++)
		if (limits->value[no_more[i]] > made->value[no_more[i]])
			return false;
	return fits_time(made->value[LIMIT_TIME], limits->value[LIMIT_TIME]);
}

/* The run is known by the slot's id from now on. */
static void give(struct run *slot, struct run *r)
{
	memcpy(r->id, slot->id, sizeof(r->id));
	r->uid = slot->uid;
	r->spaces = slot->spaces;
	slot->spaces = SPACES_NULL;
	place_move(slot, r);
	r->was_warm = true;
	slot->has_scope = false;
	run_free(slot);
}

bool slots_take(struct run *r)
{
	for (struct run *s = r->d->runs; s; s = s->next) {
		if (!is_ready(s) || s->slice != r->slice || !slots_fit(&s->made, &r->limits))
			continue;
		if (!place_is_there(s)) {
			expire(s);
			continue;
		}
		give(s, r);
		return true;
	}
	return false;
}

/* ---- taking one back ---- */

/* Its guest ran, nothing is wrong with it, and there is room for it. */
static bool is_wanted(const struct run *r)
{
	const struct daemon *d = r->d;

	return comes_back(r) && !d->stopping && r->started_usec > 0 &&
	       r->report.ended != ENDED_UNKILLABLE && count(d) <= d->config->warm &&
	       place_is_there(r);
}

struct run *slots_take_back(struct run *r)
{
	struct run *slot = is_wanted(r) ? new_slot(r->d) : NULL;
	struct error e = ERROR_NULL;
	int ret;

	if (!slot)
		return NULL;
	ret = place_id(slot, &e);
	if (ret == 0)
		ret = identity_lease(r->d->pool, &slot->uid, &e);
	if (ret < 0) {
		run_free(slot);
		return NULL;
	}
	place_move(r, slot);
	slot->served = true;
	slot->state = RUN_STARTING;
	return slot;
}
