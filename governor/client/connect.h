/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client's side of the socket.
 */
#pragma once

#include "common/error.h"
#include "common/request.h"
#include "common/wire.h"

/* A connection to the daemon that serves at @path, within 5 s. Returns the descriptor or a negative
 * errno: the sentence says which door is missing (no socket, no permission, no daemon behind it).
 */
int connect_daemon(const char *path, struct error *e);

/* Sends @q as @type. A peer that closed already is no failure here: what it said before is still to
 * be read. Returns 0 or a negative errno. */
int send_request(int sock, enum wire_type type, const struct request *q, const int *fds,
		 size_t n_fds, struct error *e);

/* The next message, in a buffer of WIRE_SIZE_MAX. Returns its length, 0 at end of file. *ret_fd is
 * a descriptor that came with it, or -1; with @ret_fd NULL, and all but one, they are closed. */
ssize_t receive_answer(int sock, void *buf, int *ret_fd, struct error *e);
