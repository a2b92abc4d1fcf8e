/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for the first thing that ends a guest. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/report.h"
#include "governor/guest/cgroup.h"
#include "governor/guest/terminal.h"

struct watch {
	int pidfd;	    /* the guest's first process: gets the signals that the client sends */
	int control;	    /* to it: a message means that execve(2) failed */
	int client, daemon; /* the two whose end is the guest's end */
	int holder; /* pidfd of the process that holds the scope: it is dead when that was stopped,
		       long before a guest that waits for a throttled disk is */
	int parent; /* pidfd whose end is the guest's end as well, or -1 */
	struct terminal *terminal; /* its master is the client's once the command runs */
	const struct cgroup *cgroup;
	struct report *report;	      /* gets what the memory is made of */
	uint64_t wall_usec, cpu_usec; /* limits from now on; LIMIT_INFINITY = none */
};

/* ENDED_SETUP_FAILED: there is a message on the control socket. ENDED_EXITED means only that the
 * first process is gone; the counters say why. */
enum ended watch_guest(const struct watch *w, struct error *e);
