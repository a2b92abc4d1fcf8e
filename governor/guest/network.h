/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's own network namespace (network_namespaces(7)), for profiles that have one: nothing in
 * it but loopback. It keeps the host's ports and abstract Unix sockets out of the guest's reach
 * too, which no packet filter sees.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* Makes a namespace with loopback switched on, and returns a descriptor of it; the caller is left
 * in it. */
int network_make(struct error *e);

/* In the child: enters the namespace @netns; -1 for none. */
int network_enter(int netns, struct error *e);

/* In the child, as root in its namespace: switches loopback on. */
int network_loopback_up(struct error *e);

/* What is open while the guest lives, so that its counters can be read when it is dead. */
struct network {
	int snmp, snmp6; /* of /proc/PID/net; snmp6 is -1 without IPv6 */
};
#define NETWORK_NULL ((struct network){ -1, -1 })

/* Opens the counters of the network namespace that @pid is in; they keep it alive until
 * network_close(). What cannot be opened is -1, and its counters are not known. */
void network_open(pid_t pid, struct network *ret);

/* What was sent to where no route leads: packets, and connections that could not be made. Adds
 * OutNoRoutes of "Ip:" in /proc/net/snmp and Ip6OutNoRoutes in /proc/net/snmp6 (SNMP counters,
 * RFC 4293). *ret stays as it is when that cannot be read. */
int network_unroutable(const struct network *n, uint64_t *ret);

void network_close(struct network *n);

/* The pure part: the value under @field in the lines that start with @protocol; -ENOENT. */
int network_parse_snmp(const char *text, const char *protocol, const char *field, uint64_t *ret);
