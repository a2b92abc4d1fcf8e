/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys and values as nft(8) writes them, by nft's own numbers for what they are (include/datatype.h
 * of nftables; the kernel only hands them back). Pure.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "nft/attribute.h"

/* What has no number of nft's, or another form here. */
#define VALUE_BYTES	0
#define VALUE_NFPROTO	2
#define VALUE_INTEGER	4
#define VALUE_MARK	19
#define VALUE_IFINDEX	20
#define VALUE_CT_STATE	26
#define VALUE_IFNAME	41
#define VALUE_TYPE_BITS 6
#define VALUE_TYPE_MASK 0x3f

/* Paths below the root of the cgroup hierarchy; ids that are not among them are printed as
 * numbers, which nft does not read. */
struct text_cgroup {
	uint64_t id;
	const char *path;
};

struct text_names {
	const struct text_cgroup *cgroups;
	size_t n_cgroups;
};

/* "ipv4_addr"; NULL when it has no name here. */
const char *value_type_name(uint32_t type);

/* "inet_proto . ipv4_addr . inet_service" */
void print_type(FILE *f, uint32_t type);

/* One value of a simple type; as hexadecimal bytes when it cannot be one. */
void print_value(FILE *f, const struct text_names *names, uint32_t type, struct nest value);

/* first..last: one value, a prefix or a range. */
void print_range(FILE *f, const struct text_names *names, uint32_t type, struct nest first,
		 struct nest last);

/* "tcp", or NULL. */
const char *value_protocol(uint8_t protocol);

/* Bits of a contiguous mask; -1 when it is none. */
int value_prefix(struct nest mask);

/* A name that nft reads again; what it cannot is escaped and quoted. */
void print_name(FILE *f, const char *name);
void print_quoted(FILE *f, const char *text);
