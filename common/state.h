/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is there a daemon behind the socket? systemd listens for it, so that a connection succeeds
 * whether or not anybody will ever take it. The file beside the socket tells: a daemon that serves
 * holds a write lock on it (fcntl(2), which dies with the process), one that refused to start left
 * its sentence in it. Only root writes there; everybody may read it and look at the lock.
 */
#pragma once

#include <stddef.h>

#include "common/error.h"

#define STATE_FILE "/run/harpe-gov/state"

/* Puts an empty file in place and holds it. Returns the descriptor, which must stay open as long as
 * the daemon serves and be closed by nothing but its end, or a negative errno. */
int state_hold(const char *path, struct error *e);

/* Puts @sentence in place, unless a daemon holds the file. Failure is not told: it is the second
 * best place for the sentence. */
void state_refuse(const char *path, const char *sentence);

enum state {
	STATE_UNKNOWN, /* no file: a daemon was never here, or we see only its socket */
	STATE_SERVES,
	STATE_ABSENT, /* gone, not started yet, or refused */
};

/* @ret_refusal gets the sentence, escaped, or "". */
enum state state_read(const char *path, char *ret_refusal, size_t size);
