/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of uids. A uid is leased to at most one guest. When nothing of the guest is left it goes
 * into quarantine; only a look at it, off the hot path, makes it free again, at the end of the
 * queue, so that the longest unused is taken first. A uid that is not clean stays in quarantine.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct identity_pool;

/* All uids start in quarantine. */
int identity_pool_new(uint32_t first_uid, uint32_t count, struct identity_pool **ret);
void identity_pool_free(struct identity_pool *p);

/* Leases the longest unused uid. -EUSERS when none is free. */
int identity_lease(struct identity_pool *p, uint32_t *ret_uid, struct error *e);

/* Gives back a leased uid, into quarantine. */
void identity_return(struct identity_pool *p, uint32_t uid);

uint32_t identity_n_free(const struct identity_pool *p);
uint32_t identity_n_quarantined(const struct identity_pool *p);

/* Called once for every uid that newly turns out not to be clean. */
typedef void (*identity_held)(uint32_t uid, const char *why);

/* Frees what is clean of the quarantine: no process has the uid in any way, no key belongs to it.
 * One pass over /proc for all, which takes the longer the more processes there are. */
int identity_verify(struct identity_pool *p, identity_held held, struct error *e);

/* The same only for those that guests have returned, and without that pass: a guest's processes can
 * change none of their uids (no capabilities, no_new_privs), so they have it as their real one,
 * too, and of that the kernel knows at once (getpriority(2)). */
void identity_verify_returned(struct identity_pool *p, identity_held held);

/* ---- the pure parts ---- */

/* Calls @found for each uid in the line "Uid:" of the text of /proc/PID/status. */
void identity_parse_status(const char *status, void (*found)(void *userdata, uint32_t uid),
			   void *userdata);

/* The same for each uid in /proc/key-users that owns keys (proc(5)). */
void identity_parse_key_users(FILE *file, void (*found)(void *userdata, uint32_t uid),
			      void *userdata);
