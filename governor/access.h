/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which access section a caller falls under. */
#pragma once

#include <sys/types.h>

#include "governor/config.h"

#define CALLER_GROUPS_MAX 256

/* Who calls, as the kernel says (unix(7): SO_PEERCRED, SO_PEERGROUPS). */
struct caller {
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[CALLER_GROUPS_MAX]; /* supplementary */
};

/* Asks the kernel about the peer of a connected Unix socket. -ERANGE when it has more groups than
 * fit: none may be overlooked; uid and gid are known all the same. */
int caller_of(int sock, struct caller *ret);

/* Looks the names of all sections up in the local user and group databases. An unknown name is an
 * error: it could come to mean somebody else later. */
int access_resolve(struct config *c, struct error *e);

/* The first section that names the caller's uid or one of its groups, else [access]. */
const struct access *access_find(const struct config *c, const struct caller *caller);

/* The most that this section allows of @limit. */
uint64_t access_ceiling(const struct config *c, const struct access *a, enum limit limit);
