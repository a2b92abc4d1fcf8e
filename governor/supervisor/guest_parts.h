/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of a guest's life share: guest_setup.c, guest_child.c, guest.c, guest_end.c. */
#pragma once

#include <stdbool.h>

#include "governor/guest/cgroup.h"
#include "governor/guest/handed.h"
#include "governor/guest/network.h"
#include "governor/guest/terminal.h"
#include "governor/supervisor/guest.h"
#include "governor/supervisor/pair.h"

struct guest {
	const struct guest_call *call;
	struct report *report;
	struct pair_grant grant;
	struct cgroup cgroup;
	struct handed handed;
	struct terminal terminal;
	struct network network;
	pid_t child;
	int pidfd, control, holder;
	int mounts;	      /* the guest's mount namespace, from view_verify() */
	struct spaces spaces; /* made before the guest came */
	enum ended ended;     /* so far: why the set-up did not succeed */
	uint64_t wall_usec;
};

/* All that comes before the release; what it made is there whether it succeeds or not. */
int guest_set_up(struct guest *g, struct error *e);

/* What came as a pidfd of the caller's parent, or -1. */
int guest_parent(const struct guest *g);

/* Is the stream 0, 1 or 2 a terminal? */
bool guest_is_terminal(const struct guest *g, int stream);

/* A process in the guest's cgroup that becomes the guest, as far as it can without the release. */
int guest_start_child(struct guest *g, struct error *e);

/* Waits until it is so far. */
int guest_expect_ready(struct guest *g, struct error *e);

/* Ends and counts what there is, whatever that is, and completes the report; @e says why. */
void guest_end(struct guest *g, struct error *e);
