/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The far end: another network namespace behind a veth, in which 192.0.2.0/24, 198.51.100.0/24 and
 * 2001:db8::/48 are all local. What counts is what arrives there.
 */
#pragma once

#include "tests/net/net.h"

struct far {
	int near_ns, ns, sniffer;
};

/* A packet that arrived; no neighbour discovery or group management. */
struct seen {
	uint8_t protocol;
	uint16_t port;
	char to[64];
};

/* cmocka set-up and teardown: a fresh namespace as with net_fresh(), and the far end of it. */
int far_setup(void **state);
int far_teardown(void **state);

#define far_test(f) cmocka_unit_test_setup_teardown(f, far_setup, far_teardown)

/* A socket at the far end. */
int far_socket(const struct far *f, int domain, int type);

/* The next packet that arrived, within 50 ms. */
bool far_seen(const struct far *f, struct seen *ret);

/* Forgets what arrived so far. */
void far_forget(const struct far *f);
