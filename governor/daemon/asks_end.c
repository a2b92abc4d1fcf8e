/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PAIR_END: the guest is dead; why, and what becomes of its scope. */
#include <signal.h>

#include "governor/daemon/asks.h"
#include "governor/daemon/runs.h"
#include "governor/daemon/slots.h"

/* Strings of a record are as trustworthy as a process that talked to a peer. */
static void take_report(struct run *r, const struct report *report)
{
	r->report = *report;
	r->report.ended %= ENDED_COUNT;
	r->report.drops_uid = r->report.drops_slice = REPORT_UNKNOWN; /* ours to say */
	r->report.profile[sizeof(r->report.profile) - 1] = '\0';
	r->report.error[sizeof(r->report.error) - 1] = '\0';
}

/* With the slot that its scope becomes, or NULL. */
static void end(struct run *r, struct run *slot)
{
	holder_kill(&r->holder);
	r->state = RUN_ENDING;
	if (r->job && r->silent)
		run_end_early(r);
	else if (!r->has_scope || slot || run_scope_is_gone(r))
		run_finish(r);
	else
		run_set_timer(r, SCOPE_USEC);
	if (slot)
		slots_prepare(slot); /* nobody waits for that */
	else
		slots_need(r->d);
}

/* A holder that died by itself did so because the whole scope was stopped. */
static void end_as_stopped(struct run *r, bool is_stopped)
{
	if (is_stopped || holder_is_dead(&r->holder))
		r->report.ended = ENDED_KILLED;
	end(r, is_stopped ? NULL : slots_take_back(r));
}

void ask_end_unanswered(struct run *r)
{
	r->question = sd_bus_slot_unref(r->question);
	end_as_stopped(r, false);
}

static int on_active(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct run *r = userdata;

	(void)unused;
	r->question = sd_bus_slot_unref(r->question);
	end_as_stopped(r, !scope_may_be_active(m));
	return 0;
}

/* Somebody else killed it. When systemd stops a scope it kills one process after the other, the
 * guest before the holder: only itself knows that it is at it. */
static bool was_killed(const struct run *r)
{
	return r->has_scope && !r->job && r->report.ended == ENDED_SIGNALED &&
	       r->report.signal == SIGKILL;
}

void ask_end(struct run *r, const struct pair_ask *ask)
{
	if (r->question) /* it said so already */
		return;
	take_report(r, &ask->report);
	if (!was_killed(r))
		end(r, slots_take_back(r));
	else if (!holder_is_dead(&r->holder) &&
		 scope_ask_active(r->d->scopes, r->scope, on_active, r, &r->question) >= 0)
		run_set_timer(r, REQUEST_USEC);
	else
		end_as_stopped(r, false);
}
