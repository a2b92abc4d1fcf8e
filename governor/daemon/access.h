/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which access section a caller falls under. */
#pragma once

#include "governor/daemon/config.h"
#include "governor/guest/caller.h"

/* Looks the names of all sections up in the local user and group databases. An unknown name is an
 * error: it could come to mean somebody else later. */
int access_resolve(struct config *c, struct error *e);

/* The first section that names the caller's uid or one of its groups, else [access]. */
const struct access *access_find(const struct config *c, const struct caller *caller);

/* The most that this section allows of @limit. */
uint64_t access_ceiling(const struct config *c, const struct access *a, enum limit limit);
