/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/wire.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIELDS_MAX 64 /* one bit of a uint64_t each */

/* ---- encoding ---- */

static size_t field_length(const struct wire_field *f, const char *member)
{
	return f->kind == WIRE_STRING ? strnlen(member, f->size - 1) + 1 : f->size;
}

static int put_field(struct nlmsghdr *nlh, size_t size, const struct wire_field *f,
		     const char *member)
{
	size_t len = field_length(f, member);

	if (f->kind == WIRE_STRING && member[len - 1] != '\0')
		return -EINVAL;
	return mnl_attr_put_check(nlh, size, f->attr, len, member) ? 0 : -EMSGSIZE;
}

ssize_t wire_encode(enum wire_type type, const struct wire_field *fields, size_t n_fields,
		    const void *object, void *buf, size_t size)
{
	struct nlmsghdr *nlh;
	int r;

	if (size < MNL_NLMSG_HDRLEN)
		return -EMSGSIZE;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = (uint16_t)type;
	nlh->nlmsg_seq = WIRE_VERSION;
	for (size_t i = 0; i < n_fields; i++) {
		r = put_field(nlh, size, &fields[i], (const char *)object + fields[i].offset);
		if (r < 0)
			return r;
	}
	return (ssize_t)nlh->nlmsg_len;
}

/* ---- decoding ---- */

int wire_type(const void *buf, size_t len, struct error *e)
{
	const struct nlmsghdr *nlh = buf;

	if (len < MNL_NLMSG_HDRLEN || nlh->nlmsg_len != len || len % MNL_ALIGNTO != 0)
		return error_set(e, -EPROTO, "message of %zu bytes has a wrong length", len);
	if (nlh->nlmsg_seq != WIRE_VERSION)
		return error_set(e, -EPROTO, "message of version %u, not %u: restart what is older",
				 nlh->nlmsg_seq, WIRE_VERSION);
	if (nlh->nlmsg_flags != 0 || nlh->nlmsg_pid != 0)
		return error_set(e, -EPROTO, "message header has unknown flags");
	if (nlh->nlmsg_type < WIRE_RUN || nlh->nlmsg_type > WIRE_TYPE_LAST)
		return error_set(e, -EPROTO, "message of unknown type %u", nlh->nlmsg_type);
	return nlh->nlmsg_type;
}

static int check_payload(const struct wire_field *f, const struct nlattr *attr)
{
	size_t len = mnl_attr_get_payload_len(attr);

	if (f->kind != WIRE_STRING)
		return len == f->size;
	return len <= f->size && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
	       strlen(mnl_attr_get_str(attr)) == len - 1;
}

/* The field of @attr, whose bit is set in *seen; NULL when the attribute is not valid. */
static const struct wire_field *field_of(const struct wire_field *fields, size_t n_fields,
					 const struct nlattr *attr, uint64_t *seen)
{
	for (size_t i = 0; i < n_fields; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (fields[i].attr != attr->nla_type)
			continue;
		if (*seen & bit || !check_payload(&fields[i], attr))
			return NULL;
		*seen |= bit;
		return &fields[i];
	}
	return NULL;
}

/* Walks all attributes and stores them in @object, or only checks them when that is NULL. The end
 * of the last one must be the end of the message: libmnl's own loops end quietly at a short one. */
static int walk(const struct wire_field *fields, size_t n_fields, const struct nlmsghdr *nlh,
		char *object, struct error *e)
{
	const char *end = (const char *)nlh + nlh->nlmsg_len;
	const struct nlattr *attr = mnl_nlmsg_get_payload(nlh);
	uint64_t seen = 0;

	while ((const char *)attr < end) {
		const struct wire_field *f;

		if (!mnl_attr_ok(attr, (int)(end - (const char *)attr)))
			return error_set(e, -EPROTO, "message ends inside an attribute");
		f = field_of(fields, n_fields, attr, &seen);
		if (!f)
			return error_set(e, -EPROTO, "message has an invalid attribute %u",
					 attr->nla_type);
		if (object)
			memcpy(object + f->offset, mnl_attr_get_payload(attr),
			       mnl_attr_get_payload_len(attr));
		attr = mnl_attr_next(attr);
	}
	return 0;
}

int wire_decode(const struct wire_field *fields, size_t n_fields, const void *buf, size_t len,
		void *object, struct error *e)
{
	int r;

	if (n_fields > FIELDS_MAX)
		return error_set(e, -EINVAL, "table of %zu fields is too long", n_fields);
	r = wire_type(buf, len, e);
	if (r < 0)
		return r;
	r = walk(fields, n_fields, buf, NULL, e);
	if (r < 0)
		return r;
	return walk(fields, n_fields, buf, object, e);
}

/* ---- transport ---- */

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
};

static void put_fds(struct msghdr *msg, union control *control, const int *fds, size_t n_fds)
{
	struct cmsghdr *cmsg = &control->align;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
	memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
}

static int send_message(int sock, const void *buf, size_t len, const int *fds, size_t n_fds,
			int flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = {};
	ssize_t n;

	if (n_fds > WIRE_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0)
		put_fds(&msg, &control, fds, n_fds);
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

int wire_send(int sock, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	return send_message(sock, buf, len, fds, n_fds, 0);
}

int wire_try_send(int sock, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	return send_message(sock, buf, len, fds, n_fds, MSG_DONTWAIT);
}

static size_t take_fds(struct msghdr *msg, int fds[WIRE_FDS_MAX])
{
	size_t n_fds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + n_fds, CMSG_DATA(c), len);
		n_fds += len / sizeof(int);
	}
	return n_fds;
}

ssize_t wire_receive(int sock, void *buf, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_n_fds)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	union control control = {};
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	size_t n_fds;
	ssize_t n;

	*ret_n_fds = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	n_fds = take_fds(&msg, fds);
	if (n > 0 && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		*ret_n_fds = n_fds;
		return n;
	}
	while (n_fds > 0)
		close(fds[--n_fds]);
	return n == 0 ? 0 : -EPROTO;
}
