/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One netlink socket to nf_tables: requests out, replies in. Nothing here waits longer than five
 * seconds or loops without a bound, and only messages of the kernel count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <libmnl/libmnl.h>

#include "common/error.h"

#define CHANNEL_BUFFER 65536 /* no netlink message to user space is longer */

struct channel {
	int fd;
	uint32_t portid; /* the socket's address, and what owns a table */
	uint32_t seq;	 /* of the last request; starts anywhere */
	char *buf;
};

#define CHANNEL_NULL ((struct channel){ .fd = -1 })

/* -EPROTONOSUPPORT when the kernel has no nfnetlink. */
int channel_open(struct channel *ret, struct error *e);

/* As channel_open() with an existing socket, which is taken over in every case; what is still
 * queued in it is thrown away. -EINVAL when it is no such socket. */
int channel_adopt(int fd, struct channel *ret, struct error *e);

void channel_close(struct channel *ch);

uint32_t channel_next_seq(struct channel *ch);

/* One message into ch->buf, NUL behind it. Its length, -ETIMEDOUT, -ENOBUFS (messages were lost) or
 * another negative errno. */
ssize_t channel_receive(struct channel *ch);

/* Throws away what is queued. */
void channel_drain(struct channel *ch);

/* The message at *@at of @len bytes, and *@at moves behind it; NULL when no whole message is left.
 */
const struct nlmsghdr *message_next(const void *buf, size_t len, size_t *at);

typedef int (*channel_each)(const struct nlmsghdr *nlh, void *data);

/* A reply in the making: see channel_request(). */
struct reply {
	uint32_t seq, portid;
	channel_each each; /* negative errno = give up, but read on to the end */
	void *data;
	int result;
	bool dump; /* many messages and an end, instead of one message or an error */
	bool done, interrupted;
};

/* Takes in one received buffer; foreign and malformed messages are skipped. */
void reply_feed(struct reply *reply, const void *buf, size_t len);

/* Sends @nlh, a question or (NLM_F_DUMP) a request for a dump, and calls @each for every message of
 * the reply. 0, 1 when the dump is torn, or the kernel's or @each's negative errno. */
int channel_request(struct channel *ch, struct nlmsghdr *nlh, channel_each each, void *data);
