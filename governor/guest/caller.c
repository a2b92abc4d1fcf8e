/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/caller.h"

#include <errno.h>
#include <sys/socket.h>

int caller_of(int sock, struct caller *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred), groups_len = sizeof(ret->groups);

	*ret = (struct caller){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &groups_len) < 0)
		return -errno;
	ret->n_groups = (uint32_t)(groups_len / sizeof(gid_t));
	return 0;
}
