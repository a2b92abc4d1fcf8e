/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Namespaces that are made for a guest before it comes (namespaces(7)), so that no run has to wait
 * for them: for IPC, for mounts with the part of its view that is the same for all, and for the
 * network where the profile has one of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "governor/guest/view_start.h"

struct spaces {
	int ipc, mounts, net; /* descriptors; all -1: none was made; net alone: none of its own */
};
#define SPACES_NULL ((struct spaces){ -1, -1, -1 })
#define SPACES_MAX  3

/* Makes them, in a process that does nothing else: it is left in them. */
int spaces_make(const struct view_start *start, bool own_network, struct spaces *ret,
		struct error *e);

/* In the child: enters those for IPC and the network, where there are any. The one for mounts is
 * for view_build(). */
int spaces_enter(const struct spaces *s, struct error *e);

/* In the supervisor: is @pid in namespaces for IPC and mounts, and with @own_network for the
 * network, none of which is ours? -ESTALE if not. */
int spaces_verify(pid_t pid, bool own_network, struct error *e);

void spaces_close(struct spaces *s);

/* The same, for who must not wait: with the last reference to a namespace for mounts goes what it
 * has mounted, and the host's own mounts may be gone already. A process does that, which ends
 * soon; returns its id for the caller to reap, 0 when there is none. */
pid_t spaces_close_aside(struct spaces *s);

/* For a message: those that there are, in the order of the struct. Returns how many. */
size_t spaces_list(const struct spaces *s, int fds[SPACES_MAX]);

/* The other way round. -EPROTO for a number that there cannot be: nothing is taken then. */
int spaces_take(const int *fds, size_t n, struct spaces *ret);
