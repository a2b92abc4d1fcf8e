/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scope with limits that stays: the slice that it is in keeps its controllers switched on,
 * without which every start of a guest's scope would have to switch them on and off again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "governor/daemon/holder.h"
#include "governor/daemon/scope.h"

struct pin {
	struct holder holder;	   /* pid 0: there is none */
	char name[SCOPE_NAME_MAX]; /* of the last one */
	unsigned int count;	   /* so far */
	uint64_t failed_usec;	   /* CLOCK_MONOTONIC, the last failure; 0 = none */
};

/* Starts the pin of the unit @slice, harpe-NAME.slice, if there is none. A failure is written to
 * the journal and harms no guest; another call is another try, after ten seconds. */
void pin_keep(struct pin *p, struct scopes *s, const char *slice);

/* The scope @name is gone. Was it the pin? */
bool pin_lost(struct pin *p, struct scopes *s, const char *name);

/* Ends its process; systemd takes the scope away. */
void pin_stop(struct pin *p);
