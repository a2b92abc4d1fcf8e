/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of uids. A uid is leased to at most one guest; it comes back only when nothing of that
 * guest is left, and then waits at the end of the queue, so that the longest unused is taken first.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct identity_pool;

int identity_pool_new(uint32_t first_uid, uint32_t count, struct identity_pool **ret);
void identity_pool_free(struct identity_pool *p);

/* Leases the longest unused uid. -EUSERS when all are out. */
int identity_lease(struct identity_pool *p, uint32_t *ret_uid, struct error *e);

/* Gives back a leased uid. */
void identity_return(struct identity_pool *p, uint32_t uid);

/* Takes every uid that a live process has, according to /proc, out of the pool for good; called
 * before the first lease. Returns how many, or a negative errno. */
int identity_hold_back_busy(struct identity_pool *p, struct error *e);

uint32_t identity_leased(const struct identity_pool *p);
