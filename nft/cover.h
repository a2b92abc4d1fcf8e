/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of an allow-list -> what the kernel's set holds: ranges of addresses times ranges of
 * ports that have nothing in common. The kernel refuses sets that overlap, or takes them, depending
 * on the order; people write "all hosts, port 443" beside "this host, all ports" with good reason.
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nft/allow.h"

struct box {
	uint8_t family, protocol;
	uint8_t first[ALLOW_ADDRESS_MAX], last[ALLOW_ADDRESS_MAX]; /* as in struct allow */
	uint16_t first_port, last_port;
};

/* *ret, to be freed (NULL when *ret_n is 0), covers what @allow covers, IPv4 before IPv6; loopback
 * only where an entry lies within it (allow.h). 0, -ENOMEM, or -E2BIG when it takes more than @max
 * boxes. */
int cover(const struct allow *allow, size_t n, size_t max, struct box **ret, size_t *ret_n);
