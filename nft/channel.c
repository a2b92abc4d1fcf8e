/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "common/fd.h"

#define TIMEOUT_SECONDS 5
#define RECEIVE_BUFFER	(1 << 20)
#define RECEIVE_TRIES	1000	/* interruptions and messages of others, per message */
#define DRAIN_MAX	65536	/* messages that an earlier process may have left */
#define PARTS_MAX	1000000 /* receives per reply */

static int check_kind(int fd)
{
	int domain, protocol;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0)
		return -errno;
	return domain == AF_NETLINK && protocol == NETLINK_NETFILTER ? 0 : -EPROTOTYPE;
}

/* A descriptor from the service manager may come non-blocking and without O_CLOEXEC. */
static int set_flags(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static int set_options(int fd)
{
	const struct timeval timeout = { .tv_sec = TIMEOUT_SECONDS };
	const int one = 1, size = RECEIVE_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)) < 0)
		return -errno;
	/* Only makes lost messages rarer. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return 0;
}

/* Binding anew keeps the address and ends what an earlier process subscribed to. */
static int get_portid(int fd, uint32_t *ret)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return -errno;
	addr.nl_groups = 0;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	len = sizeof(addr);
	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return -errno;
	*ret = addr.nl_pid;
	return 0;
}

static int set_up(int fd, struct channel *ch)
{
	int r = check_kind(fd);

	if (r < 0)
		return r;
	r = set_flags(fd);
	if (r < 0)
		return r;
	r = set_options(fd);
	if (r < 0)
		return r;
	r = get_portid(fd, &ch->portid);
	if (r < 0)
		return r;
	if (getrandom(&ch->seq, sizeof(ch->seq), 0) != sizeof(ch->seq))
		return -errno;
	ch->buf = malloc(CHANNEL_BUFFER);
	return ch->buf ? 0 : -ENOMEM;
}

int channel_open(struct channel *ret, struct error *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), r;

	if (fd < 0 && (errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT))
		return error_set(e, -EPROTONOSUPPORT,
				 "the kernel has no nfnetlink: load the module nfnetlink "
				 "(CONFIG_NETFILTER_NETLINK)");
	if (fd < 0)
		return error_errno(e, -errno, "cannot open a netfilter netlink socket");
	*ret = (struct channel){ .fd = fd };
	r = set_up(fd, ret);
	if (r < 0) {
		channel_close(ret);
		return error_errno(e, r, "cannot set up a netfilter netlink socket");
	}
	return 0;
}

int channel_adopt(int fd, struct channel *ret, struct error *e)
{
	int r;

	*ret = (struct channel){ .fd = fd };
	r = set_up(fd, ret);
	if (r < 0) {
		channel_close(ret);
		return error_errno(e, r == -EPROTOTYPE || r == -ENOTSOCK ? -EINVAL : r,
				   "descriptor %d is no netfilter netlink socket", fd);
	}
	channel_drain(ret);
	return 0;
}

void channel_close(struct channel *ch)
{
	close_fd(&ch->fd);
	free(ch->buf);
	*ch = CHANNEL_NULL;
}

uint32_t channel_next_seq(struct channel *ch)
{
	if (++ch->seq == 0) /* the kernel's own messages have 0 */
		ch->seq = 1;
	return ch->seq;
}

static ssize_t receive_any(struct channel *ch, int flags, bool *ret_kernel)
{
	struct sockaddr_nl from = { .nl_family = AF_UNSPEC };
	struct iovec iov = { .iov_base = ch->buf, .iov_len = CHANNEL_BUFFER - 1 };
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n = recvmsg(ch->fd, &msg, flags);

	if (n < 0)
		return -errno;
	if (msg.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	*ret_kernel = from.nl_family == AF_NETLINK && from.nl_pid == 0 && from.nl_groups == 0;
	ch->buf[n] = '\0';
	return n;
}

ssize_t channel_receive(struct channel *ch)
{
	for (unsigned int tries = 0; tries < RECEIVE_TRIES; tries++) {
		bool from_kernel = false;
		ssize_t n = receive_any(ch, 0, &from_kernel);

		if (n == -EAGAIN)
			return -ETIMEDOUT;
		if (n < 0 && n != -EINTR)
			return n;
		if (n >= 0 && from_kernel)
			return n;
	}
	return -ETIMEDOUT;
}

void channel_drain(struct channel *ch)
{
	for (unsigned int i = 0; i < DRAIN_MAX; i++) {
		bool from_kernel;

		if (receive_any(ch, MSG_DONTWAIT, &from_kernel) == -EAGAIN)
			return;
	}
}

/* mnl_nlmsg_ok() takes a length of 2^31 and more for a negative one. */
const struct nlmsghdr *message_next(const void *buf, size_t len, size_t *at)
{
	const struct nlmsghdr *nlh = (const void *)((const char *)buf + *at);
	size_t left = len > *at ? len - *at : 0;

	if (left < sizeof(*nlh) || nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > left)
		return NULL;
	*at += MNL_ALIGN((size_t)nlh->nlmsg_len);
	return nlh;
}

static void finish(struct reply *reply, const struct nlmsghdr *nlh)
{
	size_t len = mnl_nlmsg_get_payload_len(nlh);
	int code = 0;

	/* struct nlmsgerr starts with the code, and so does the end of a dump. */
	if (len >= sizeof(code))
		code = *(const int *)mnl_nlmsg_get_payload(nlh);
	else if (nlh->nlmsg_type == NLMSG_ERROR)
		code = -EBADMSG;
	if (code < 0 && reply->result == 0)
		reply->result = code;
	reply->done = true;
}

static void take(struct reply *reply, const struct nlmsghdr *nlh)
{
	if (reply->result == 0)
		reply->result = reply->each(nlh, reply->data);
	reply->done = !reply->dump;
}

void reply_feed(struct reply *reply, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh;
	size_t at = 0;

	while (!reply->done && (nlh = message_next(buf, len, &at))) {
		if (nlh->nlmsg_seq != reply->seq || nlh->nlmsg_pid != reply->portid)
			continue;
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			reply->interrupted = true;
		if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE)
			finish(reply, nlh);
		else if (nlh->nlmsg_type >= NLMSG_MIN_TYPE)
			take(reply, nlh);
	}
}

static int receive_reply(struct channel *ch, struct reply *reply)
{
	for (unsigned int parts = 0; !reply->done && parts < PARTS_MAX; parts++) {
		ssize_t n = channel_receive(ch);

		if (n < 0)
			return (int)n;
		reply_feed(reply, ch->buf, (size_t)n);
	}
	return reply->done ? 0 : -ETIMEDOUT;
}

int channel_request(struct channel *ch, struct nlmsghdr *nlh, channel_each each, void *data)
{
	struct reply reply = {
		.seq = nlh->nlmsg_seq,
		.portid = ch->portid,
		.dump = (nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP,
		.each = each,
		.data = data,
	};
	int r;

	if (send(ch->fd, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	r = receive_reply(ch, &reply);
	if (r < 0) { /* while a dump is unfinished, the kernel begins no other */
		channel_drain(ch);
		return r;
	}
	return reply.result == 0 && reply.interrupted ? 1 : reply.result;
}
