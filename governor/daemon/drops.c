/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/drops.h"

static void look(const struct run *r, uint64_t *ret_uid, uint64_t *ret_strays)
{
	*ret_uid = *ret_strays = FIREWALL_UNKNOWN;
	firewall_uid_drops(r->d->firewall, r->uid, ret_uid, NULL);
	firewall_stray_drops(r->d->firewall, r->scope_id, ret_strays, NULL);
}

void drops_begin(struct run *r)
{
	if (r->served) {
		look(r, &r->drops_before, &r->strays_before);
		return;
	}
	r->drops_before = FIREWALL_UNKNOWN;
	firewall_uid_drops(r->d->firewall, r->uid, &r->drops_before, NULL);
}

/* Unchanged when one of them is not known, or the counter was made anew by somebody. */
static void add(uint64_t kept, uint64_t before, uint64_t now, uint64_t *ret)
{
	if (kept != FIREWALL_UNKNOWN && before != FIREWALL_UNKNOWN && now != FIREWALL_UNKNOWN &&
	    now >= before)
		*ret = kept + now - before;
}

/* Of a released run, so far; unchanged where that is not known. */
static void count(const struct run *r, uint64_t *ret_uid, uint64_t *ret_strays)
{
	uint64_t uid, strays;

	if (r->started_usec == 0)
		return;
	look(r, &uid, &strays);
	add(r->drops_kept, r->drops_before, uid, ret_uid);
	add(r->strays_kept, r->strays_before, strays, ret_strays);
}

void drops_count(struct run *r)
{
	if (r->has_scope)
		count(r, &r->report.drops_uid, &r->report.drops_slice);
}

void drops_look(struct daemon *d)
{
	for (struct run *r = d->runs; r; r = r->next) {
		r->drops_seen = r->strays_seen = r->started_usec ? FIREWALL_UNKNOWN : 0;
		if (r->has_scope)
			count(r, &r->drops_seen, &r->strays_seen);
	}
}

void drops_begin_anew(struct daemon *d)
{
	for (struct run *r = d->runs; r; r = r->next) {
		r->drops_kept = r->drops_seen;
		r->strays_kept = r->strays_seen;
		r->drops_before = r->strays_before = 0;
	}
}
