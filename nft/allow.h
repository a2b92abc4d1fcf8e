/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of an allow-list: where guests of a profile may send to.
 *
 *	tcp 192.0.2.10:443
 *	udp 198.51.100.0/24:53
 *	tcp [2001:db8::/32]:8000-8100
 *	icmp 192.0.2.1
 *	icmp [2001:db8::1]			# ICMPv6: the address says which
 *
 * Numbers only: a name stands for whatever its owner says at the moment. What is not exactly of
 * this form is refused, never guessed at: a port of 0, ranges that descend, leading zeros (octal
 * elsewhere), address bits behind the prefix, zones, IPv4 addresses in IPv6 dress, and the
 * unspecified address (the kernel sends to loopback instead).
 *
 * Loopback has to be listed as such: an entry that contains it without lying within it
 * (tcp 0.0.0.0/0:443) does not allow it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define ALLOW_TEXT_MAX	  128 /* bytes of a line that is looked at, with NUL */
#define ALLOW_FORMAT_MAX  80  /* a formatted entry, with NUL */
#define ALLOW_ADDRESS_MAX 16

struct allow {
	uint8_t family;	  /* AF_INET or AF_INET6 */
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP or IPPROTO_ICMPV6 */
	uint8_t prefix;	  /* bits of the address that count: 0 to 32 or 128 */
	uint8_t address[ALLOW_ADDRESS_MAX]; /* network byte order; IPv4 uses the first 4 bytes */
	uint16_t first_port, last_port;	    /* host byte order; 0 to 65535 for ICMP */
};

/* Parses one line, without blanks around it. 0; -EINVAL with a sentence that quotes the line and
 * says what is wrong and what to write instead. Unused bytes of *ret are 0. */
int allow_parse(const char *text, struct allow *ret, struct error *e);

/* The canonical line, which allow_parse() reads back as the same entry; returns @buf. */
const char *allow_format(const struct allow *a, char buf[ALLOW_FORMAT_MAX]);

/* "198.51.100.0/24": the address alone, always with its prefix; returns @buf. */
const char *allow_format_address(const struct allow *a, char buf[ALLOW_FORMAT_MAX]);

/* "tcp", "udp" or "icmp". */
const char *allow_protocol_name(uint8_t protocol);
