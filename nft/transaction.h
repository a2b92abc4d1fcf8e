/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One batch of nf_tables messages: all of it happens or nothing.
 */
#pragma once

#include <stdint.h>

#include <libmnl/libmnl.h>

#include "common/error.h"
#include "nft/channel.h"
#include "nft/refusal.h"

#define TRANSACTION_NAME_MAX 80

/* What the message with sequence number first_seq + index is about, for errors. */
struct transaction_item {
	enum object_kind kind;
	char name[TRANSACTION_NAME_MAX];
	size_t offset;
};

struct transaction {
	struct channel *ch;
	char *buf;
	size_t size;
	uint32_t first_seq;
	struct transaction_item *items; /* the first is the batch's own begin */
	size_t n_items, room;
};

#define TRANSACTION_NULL ((struct transaction){ .ch = NULL })

/* 0 or -ENOMEM. */
int transaction_begin(struct transaction *t, struct channel *ch, const char *name);

/* Room for the payload of a message. */
#define TRANSACTION_MESSAGE_MAX 32768

/* Starts a message; its payload may be added until the next one is started. NULL when out of
 * memory. */
struct nlmsghdr *transaction_add(struct transaction *t, uint16_t type, uint16_t flags,
				 enum object_kind kind, const char *name, ...)
	__attribute__((format(printf, 5, 6)));

/* Sends everything, ends @t and waits for the verdict. 0 only when the kernel said that it did it.
 * -EAGAIN: it is unknown whether it happened, or it did not happen for a passing reason; try
 * again. Otherwise it did not happen, and the sentence names the first object that was refused;
 * *ret_kind is its kind. */
int transaction_commit(struct transaction *t, enum object_kind *ret_kind, struct error *e);

/* As transaction_commit(), without the end that makes it happen: the kernel judges every message
 * and undoes all of it. 0 = it would take them. */
int transaction_check(struct transaction *t, enum object_kind *ret_kind, struct error *e);

void transaction_free(struct transaction *t);

/* The verdict in the making. */
struct verdict {
	uint32_t first_seq, portid;
	size_t n_items; /* the last one asked for an acknowledgement */
	size_t refused; /* index of the first item that was refused, n_items = none */
	int result;	/* its errno */
	bool done;
};

/* Takes in one received buffer; foreign and malformed messages are skipped. */
void verdict_feed(struct verdict *v, const void *buf, size_t len);
