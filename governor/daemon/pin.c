/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/pin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "governor/daemon/journal.h"

#define PIN_MEMORY (UINT64_C(16) << 20)
#define RETRY_USEC (10 * USEC_PER_SEC)
#define PIN_COUNT  1000u /* names; an earlier one may still be on its way out */

static void on_started(void *userdata, int r, const struct error *error)
{
	struct pin *p = userdata;

	if (r == 0)
		return;
	journal_error("the pin scope is missing, starts are slower: %s", error->text);
	p->failed_usec = clock_usec(CLOCK_MONOTONIC);
	if (r != -EINPROGRESS)
		pin_stop(p);
}

/* What is between "harpe-" and ".slice" tells pins apart. */
static void name(struct pin *p, const char *slice)
{
	const char *which = strchr(slice, '-') + 1;

	p->count = (p->count + 1) % PIN_COUNT;
	snprintf(p->name, sizeof(p->name), "harpe-pin-%.*s-%d-%u.scope", (int)strcspn(which, "."),
		 which, getpid(), p->count);
}

static int start(struct pin *p, struct scopes *s, const char *slice, struct error *e)
{
	char description[96];
	struct limits limits = { .value = { PIN_MEMORY, 0, USEC_PER_SEC, 1, LIMIT_INFINITY,
					    LIMIT_INFINITY, IO_WEIGHT_DEFAULT, LIMIT_INFINITY,
					    LIMIT_INFINITY } };
	struct scope_spec spec = {
		.name = p->name,
		.slice = slice,
		.description = description,
		.limits = &limits,
	};
	int r = holder_start(&p->holder);

	if (r < 0)
		return error_errno(e, r, "no process for it");
	spec.pid = p->holder.pid;
	snprintf(description, sizeof(description), "Keeps the controllers of %s on", slice);
	name(p, slice);
	return scope_start(s, &spec, on_started, p, e);
}

void pin_keep(struct pin *p, struct scopes *s, const char *slice)
{
	struct error e = ERROR_NULL;
	int r;

	if (p->holder.pid > 0 ||
	    (p->failed_usec > 0 && clock_usec(CLOCK_MONOTONIC) - p->failed_usec < RETRY_USEC))
		return;
	r = start(p, s, slice, &e);
	if (r < 0)
		on_started(p, r, &e);
}

bool pin_lost(struct pin *p, struct scopes *s, const char *name)
{
	if (p->holder.pid == 0 || strcmp(p->name, name) != 0)
		return false;
	scope_forget(s, p);
	pin_stop(p);
	return true;
}

void pin_stop(struct pin *p)
{
	holder_stop(&p->holder);
}
