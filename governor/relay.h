/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Terminals as standard streams. A guest never gets the caller's terminal: it could push characters
 * into its input (TIOCSTI) or read what is typed later. It gets a pipe, and the client copies.
 */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "common/error.h"

#define RELAY_BUFFER 4096

struct relay {
	int from, to;  /* -1: not in use */
	int guest_end; /* of the pipe; -1 once it was sent */
	size_t used, done;
	char buf[RELAY_BUFFER];
};

struct relays {
	struct relay relay[3]; /* per standard stream */
};

#define RELAY_NULL                                                                                 \
	{                                                                                          \
		.from = -1, .to = -1, .guest_end = -1                                              \
	}
#define RELAYS_NULL ((struct relays){ { RELAY_NULL, RELAY_NULL, RELAY_NULL } })

/* Puts into fds[0 .. 2] what the guest is to get: the standard streams, pipes for terminals. */
int relays_open(struct relays *r, int fds[3], struct error *e);

/* To be called once the guest's ends were sent. */
void relays_close_guest_ends(struct relays *r);

/* Copies until @sock is readable or closed (1), or until a signal came that @waiting lets through
 * (0). */
int relays_copy(struct relays *r, int sock, const sigset_t *waiting);

/* Copies what is still in the pipes. It does not wait for their end: the guest is gone, but it may
 * have passed its stdout to another process. */
void relays_drain(struct relays *r);

void relays_close(struct relays *r);
