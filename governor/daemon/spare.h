/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The spare: a supervisor that was started before anybody connects, and accepts the next
 * connection. The caller does not wait for that. There is none or one; while there is none the
 * daemon watches the listener itself, and makes one as soon as somebody connects.
 *
 * It has mapped what guests see or may do as that was when it was started: when it has changed
 * since, it is sent away (spare_renew()).
 */
#pragma once

#include "governor/daemon/daemon.h"

/* The event sources; @listener is non-blocking. */
int spare_add_sources(struct daemon *d, int listener);

/* @r's supervisor has said hello: it is the spare no more. */
void spare_taken(struct run *r);

/* @r's supervisor is gone, with or without a connection. */
void spare_lost(struct run *r);

/* Makes one within @usec, unless there is one, the daemon stops, or it has as many connections as
 * it holds. */
void spare_need(struct daemon *d, uint64_t usec);

/* Sends the spare away; another one comes, unless the daemon stops. */
void spare_renew(struct daemon *d);
