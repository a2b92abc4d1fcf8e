/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of one guest, from the request to the report, in its supervisor. */
#pragma once

#include <linux/filter.h>

#include "common/report.h"
#include "common/request.h"
#include "governor/guest/caller.h"
#include "governor/guest/view_base.h"

/* What the daemon prepared once, for all guests. */
struct guest_means {
	uint32_t version; /* of the rest: the daemon may have a later one meanwhile */
	const struct sock_fprog *filters;
	const struct view_base *view;
	int ground; /* that it is built on: view_ground_make() */
};

struct guest_call {
	int client; /* connection: end of file means that the caller is gone */
	int daemon; /* pair to the daemon */
	const struct request *request;
	const struct caller *caller;
	/* request_n_fds(); owned by the caller, closed here as soon as the guest has them */
	int *fds;
	const struct guest_means *means;
};

/* Runs the guest to its end. Always fills in @ret: when this returns, nothing of the guest is left,
 * or the report says what is. */
void guest_run(const struct guest_call *call, struct report *ret);
