/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place for a guest: a uid of the pool, and a scope of systemd's with a holder in it. */
#pragma once

#include "governor/daemon/run.h"

/* An id for @r. */
int place_id(struct run *r, struct error *e);

/* The same, and the scope is called after it. */
int place_name(struct run *r, struct error *e);

/* The part of r->slice, which is settled, in which a scope would be made now. */
unsigned int place_part(const struct run *r);

/* Leases a uid and asks systemd for the scope, in r->slice with the limits r->made; @started is
 * called with @r as for scope_start(). On failure nothing is left. */
int place_take(struct run *r, const char *description, scope_callback started, struct error *e);

/* Is the scope where it has to be, and the holder in it? Notes its cgroup id. */
int place_check(struct run *r, struct error *e);

/* Is it still there, some time later? */
bool place_is_there(const struct run *r);

/* Hands @from's place over to @to, which has none: all but the uid and the id. */
void place_move(struct run *from, struct run *to);

/* Systemd has answered when nobody wanted the scope any more. */
void place_leave(struct run *r);
