/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Elements of sets: their bytes here, in messages, and as text. What a set of ours holds follows
 * from its name.
 *
 * Byte order: `meta skuid` and `socket cgroupv2` load host words and their sets compare for
 * equality. Ranges are compared byte by byte, so they are as in the packet; every part of a
 * concatenated key fills whole registers of 4 bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <libnftnl/set.h>

#include "nft/cover.h"

#define OBJECT_NAME_MAX	 48 /* of our chains and sets, with NUL; the kernel's may be longer */
#define ELEMENT_TEXT_MAX 160

enum element_kind {
	ELEMENT_NONE,  /* the kernel fills the set: not read */
	ELEMENT_UID,   /* uid */
	ELEMENT_SLICE, /* cgroup id, and the chain that it leads to */
	ELEMENT_IP4,   /* first and last key of protocol . address . port */
	ELEMENT_IP6,
};

struct elements {
	enum element_kind kind;
	uint8_t *data; /* of element_size() each */
	size_t n;
	bool foreign; /* there is one that cannot be ours */
};

enum element_kind element_kind_of(const char *set);

size_t element_size(enum element_kind kind);
size_t element_key_size(enum element_kind kind);

/* Bytes of the element in a message, at most. */
size_t element_message_size(enum element_kind kind);

/* Encoders of one element; @ret has room for element_size(). */
void element_of_uid(uint32_t uid, uint8_t *ret);
void element_of_slice(uint64_t id, const char *chain, uint8_t *ret);
void element_of_box(const struct box *box, uint8_t *ret);

/* Room for @n more; -ENOMEM. */
int elements_reserve(struct elements *els, size_t n);

/* Takes one of the kernel's elements in. -ENOMEM, -E2BIG. */
int elements_take(struct elements *els, struct nftnl_set_elem *element);

void elements_sort(struct elements *els);

/* Ascending order: as in memcmp(). */
int element_compare(enum element_kind kind, const uint8_t *a, const uint8_t *b);

/* "uid 90000", "tcp 192.0.2.10-192.0.2.10 443-443"; returns @buf. */
const char *element_text(enum element_kind kind, const uint8_t *element,
			 char buf[ELEMENT_TEXT_MAX]);

/* The attributes of one element of NFTA_SET_ELEM_LIST_ELEMENTS. */
void element_put(struct nlmsghdr *nlh, enum element_kind kind, const uint8_t *element);
