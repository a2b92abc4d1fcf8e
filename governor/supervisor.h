/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process per connection, forked by the daemon at accept. It alone touches what the peer sent;
 * it has no descriptor of the daemon's but its end of a pair.
 */
#pragma once

#include "governor/guest.h"

/* Accepts one connection from @listener and serves it to its end. The connection and @daemon are
 * the only descriptors that stay open besides 0, 1 and 2. Never returns. */
void supervisor_main(int listener, int daemon, const struct guest_means *means)
	__attribute__((noreturn));
