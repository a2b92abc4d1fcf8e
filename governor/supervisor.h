/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process per connection, forked by the daemon at accept. It alone touches what the peer sent;
 * it has no descriptor of the daemon's but its end of a pair.
 */
#pragma once

#include <linux/filter.h>

#define REQUEST_DEADLINE_SEC 5 /* for the request to arrive and be looked at */

/* Serves the connection to its end. @client and @daemon are the only descriptors that stay open
 * besides 0, 1 and 2. Without a @filter the caller has too many connections and is told so.
 * Never returns. */
void supervisor_main(int client, int daemon, const struct sock_fprog *filter)
	__attribute__((noreturn));
