/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who asks for a guest. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

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
