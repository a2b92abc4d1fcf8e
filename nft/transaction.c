/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel works a batch off inside sendmsg(2) and answers only refusals, unless a message asks
 * for an acknowledgement. A batch that was cut off is dropped without a word, so the last message
 * asks: no acknowledgement, no success. Refusals come in the order of the messages and before that
 * acknowledgement, which comes even when the whole was refused.
 */
#include "nft/transaction.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <libnftnl/batch.h>
#include <libnftnl/common.h>

#define FIRST_SIZE  (4 * TRANSACTION_MESSAGE_MAX)
#define FIRST_ITEMS 16

void transaction_free(struct transaction *t)
{
	free(t->buf);
	free(t->items);
	*t = TRANSACTION_NULL;
}

static struct nlmsghdr *last(const struct transaction *t)
{
	return (void *)(t->buf + t->items[t->n_items - 1].offset);
}

static size_t used(const struct transaction *t)
{
	if (t->n_items == 0)
		return 0;
	return t->items[t->n_items - 1].offset + MNL_ALIGN(last(t)->nlmsg_len);
}

static int make_room(struct transaction *t)
{
	size_t size = t->size ? t->size : FIRST_SIZE, room = t->room ? t->room : FIRST_ITEMS;
	void *p;

	while (size - used(t) < TRANSACTION_MESSAGE_MAX || size < t->size)
		size *= 2;
	while (room <= t->n_items)
		room *= 2;
	p = realloc(t->buf, size);
	if (!p)
		return -ENOMEM;
	t->buf = p;
	t->size = size;
	p = realloc(t->items, room * sizeof(*t->items));
	if (!p)
		return -ENOMEM;
	t->items = p;
	t->room = room;
	return 0;
}

/* The next message's place and sequence number. */
static char *place(struct transaction *t, enum object_kind kind, uint32_t *ret_seq)
{
	size_t offset = used(t);

	if (make_room(t) < 0)
		return NULL;
	t->items[t->n_items++] = (struct transaction_item){ .kind = kind, .offset = offset };
	*ret_seq = t->first_seq + (uint32_t)t->n_items - 1;
	return t->buf + offset;
}

int transaction_begin(struct transaction *t, struct channel *ch, const char *name)
{
	uint32_t seq;
	char *at;

	*t = (struct transaction){ .ch = ch, .first_seq = channel_next_seq(ch) };
	at = place(t, OBJECT_BATCH, &seq);
	if (!at)
		return -ENOMEM;
	snprintf(t->items[0].name, sizeof(t->items[0].name), "%s", name);
	nftnl_batch_begin(at, seq);
	return 0;
}

struct nlmsghdr *transaction_add(struct transaction *t, uint16_t type, uint16_t flags,
				 enum object_kind kind, const char *name, ...)
{
	struct transaction_item *item;
	va_list args;
	uint32_t seq;
	char *at = place(t, kind, &seq);

	if (!at)
		return NULL;
	item = &t->items[t->n_items - 1];
	va_start(args, name);
	vsnprintf(item->name, sizeof(item->name), name, args);
	va_end(args);
	return nftnl_nlmsg_build_hdr(at, type, NFPROTO_INET, flags, seq);
}

static void take_answer(struct verdict *v, const struct nlmsghdr *nlh)
{
	uint32_t index = nlh->nlmsg_seq - v->first_seq;
	int code = mnl_nlmsg_get_payload_len(nlh) >= sizeof(code)
			   ? *(const int *)mnl_nlmsg_get_payload(nlh)
			   : -EBADMSG;

	if (code < 0 && v->result == 0) {
		v->result = code;
		v->refused = index;
	}
	/* What fails about the batch as such may be all that is said. */
	if (index == v->n_items - 1 || (index == 0 && code < 0))
		v->done = true;
}

void verdict_feed(struct verdict *v, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh;
	size_t at = 0;

	while ((nlh = message_next(buf, len, &at)))
		if (nlh->nlmsg_type == NLMSG_ERROR && nlh->nlmsg_pid == v->portid &&
		    nlh->nlmsg_seq - v->first_seq < v->n_items)
			take_answer(v, nlh);
}

/* The default send buffer takes some 200 kB, of which bookkeeping takes a part. */
static void grow_send_buffer(int fd, size_t len)
{
	int now = 0, wanted = (int)(2 * len);
	socklen_t optlen = sizeof(now);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &now, &optlen) == 0 && now < wanted)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted));
}

static int send_all(const struct transaction *t, size_t len)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	grow_send_buffer(t->ch->fd, len);
	if (sendto(t->ch->fd, t->buf, len, 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

static int await_verdict(struct channel *ch, struct verdict *v)
{
	/* At most one answer per message. */
	for (size_t parts = 0; !v->done && parts <= v->n_items; parts++) {
		ssize_t n = channel_receive(ch);

		if (n < 0)
			return (int)n;
		verdict_feed(v, ch->buf, (size_t)n);
	}
	return v->done ? 0 : -ETIMEDOUT;
}

/* The length of all of it, with its end. */
static ssize_t end(struct transaction *t)
{
	size_t len = used(t);

	if (make_room(t) < 0)
		return -ENOMEM;
	nftnl_batch_end(t->buf + len, t->first_seq + (uint32_t)t->n_items);
	return (ssize_t)(len + NLMSG_ALIGN(NLMSG_LENGTH(sizeof(struct nfgenmsg))));
}

static int unknown(struct error *e, int r)
{
	static const int passing[] = { -EAGAIN, -EINTR, -ENOBUFS, -ERESTART };

	error_errno(e, r, "the kernel's answer to the firewall transaction did not come");
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (passing[i] == r)
			return -EAGAIN;
	return r;
}

/* Sends @len bytes and waits for the verdict. */
static int exchange(struct transaction *t, size_t len, enum object_kind *ret_kind, struct error *e)
{
	struct verdict v = {
		.first_seq = t->first_seq,
		.portid = t->ch->portid,
		.n_items = t->n_items,
		.refused = t->n_items,
	};
	int r;

	last(t)->nlmsg_flags |= NLM_F_ACK;
	t->ch->seq = t->first_seq + (uint32_t)t->n_items;
	channel_drain(t->ch);
	r = send_all(t, len);
	if (r < 0)
		return error_errno(e, r, "cannot send the firewall transaction");
	r = await_verdict(t->ch, &v);
	if (r < 0)
		return unknown(e, r);
	if (v.result == 0)
		return 0;
	*ret_kind = t->items[v.refused].kind;
	if (v.result == -EINTR || v.result == -ERESTART || v.result == -EAGAIN)
		return unknown(e, v.result);
	return refusal_set(e, v.result, *ret_kind, t->items[v.refused].name);
}

int transaction_commit(struct transaction *t, enum object_kind *ret_kind, struct error *e)
{
	ssize_t len = end(t);

	if (len < 0)
		return error_errno(e, (int)len, "cannot build the firewall transaction");
	return exchange(t, (size_t)len, ret_kind, e);
}

int transaction_check(struct transaction *t, enum object_kind *ret_kind, struct error *e)
{
	return exchange(t, used(t), ret_kind, e);
}
