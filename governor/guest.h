/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of one guest, from the request to the report, in its supervisor. */
#pragma once

#include <linux/filter.h>

#include "common/report.h"
#include "common/request.h"

struct guest_call {
	int client; /* connection: end of file means that the caller is gone */
	int daemon; /* pair to the daemon */
	const struct request *request;
	int *fds; /* RUN_FD_COUNT; owned by the caller, closed here as soon as the guest has them */
	int parent; /* what came as a pidfd of the caller's parent, or -1; borrowed */
	const struct sock_fprog *filters;
};

/* Runs the guest to its end. Always fills in @ret: when this returns, nothing of the guest is left,
 * or the report says what is. */
void guest_run(const struct guest_call *call, struct report *ret);
