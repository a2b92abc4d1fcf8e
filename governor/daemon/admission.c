/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is there a place for a run, and whose turn is it?
 *
 * Two kinds of shortage: of the caller's own quota, which only its own guests can relieve, and of
 * what all share (uids, memory). Who waits for the latter is served before any newcomer, so that a
 * small request cannot overtake a large one for ever; among those who wait, the caller with the
 * fewest live guests comes first, then the oldest request.
 */
#include <errno.h>
#include <stdio.h>

#include "governor/daemon/admission.h"

#include "common/text.h"
#include "governor/daemon/access.h"

static uint64_t memory_of_all(const struct daemon *d)
{
	uint64_t sum = 0;

	for (const struct run *r = d->runs; r; r = r->next)
		if (r->has_scope &&
		    __builtin_add_overflow(sum, r->limits.value[LIMIT_MEMORY], &sum))
			return UINT64_MAX;
	return sum;
}

static int check_memory(const struct run *r, struct error *e)
{
	uint64_t most = r->d->config->pool_memory, taken = memory_of_all(r->d);
	uint64_t wanted = r->limits.value[LIMIT_MEMORY];
	char shown[2][32];

	if (most == LIMIT_INFINITY || (taken <= most && wanted <= most - taken))
		return 0;
	return error_set(
		e, wanted > most ? -EINVAL : -ENOBUFS,
		"--memory: %s more would pass %s, the [pool] memory for all guests together",
		unit_format(UNIT_SIZE, wanted, shown[0], sizeof(shown[0])),
		unit_format(UNIT_SIZE, most, shown[1], sizeof(shown[1])));
}

static int check_quota(const struct run *r, struct error *e)
{
	const struct access *a = access_find(r->d->config, &r->caller);
	const char *blank = a->name[0] ? " " : "";

	if (a->max_guests == 0)
		return error_set(e, -EACCES,
				 "uid %u may run no guests, says [access%s%s] max-guests",
				 r->caller.uid, blank, a->name);
	if (run_caller_has(r, true, a->max_guests))
		return error_set(
			e, -EDQUOT,
			"uid %u has %u guest%s already, the most that [access%s%s] max-guests "
			"allows; wait for one to end, or use --wait",
			r->caller.uid, a->max_guests, PLURAL(a->max_guests), blank, a->name);
	return 0;
}

bool admission_is_shortage(int r)
{
	return r == -EDQUOT || r == -EUSERS || r == -ENOBUFS;
}

/* Does anybody else wait for what all share? */
static bool others_wait(const struct run *r)
{
	for (const struct run *o = r->d->runs; o; o = o->next)
		if (o != r && o->state == RUN_WAITING && check_quota(o, NULL) == 0)
			return true;
	return false;
}

int admission_check(const struct run *r, struct error *e)
{
	int ret = check_quota(r, e);

	if (ret == 0)
		ret = check_memory(r, e);
	if (ret == 0 && r->state != RUN_WAITING && others_wait(r))
		ret = error_set(e, -EUSERS, "others wait for a place already; use --wait");
	return ret;
}

static bool goes_before(const struct run *a, const struct run *b)
{
	uint32_t n_a = run_count_of_caller(a, true), n_b = run_count_of_caller(b, true);

	return n_a != n_b ? n_a < n_b : a->serial < b->serial;
}

struct run *admission_next(const struct daemon *d)
{
	struct run *best = NULL;

	for (struct run *r = d->runs; r; r = r->next) {
		if (r->state != RUN_WAITING || check_quota(r, NULL) < 0)
			continue;
		if (!best || goes_before(r, best))
			best = r;
	}
	return best;
}
