/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between `harpe-gov` and its supervisor, over one SOCK_SEQPACKET Unix socket.
 *
 * A message is a netlink header followed by netlink attributes, built and validated with libmnl:
 * nlmsg_type is an enum wire_type, nlmsg_seq is WIRE_VERSION, the rest is 0. What a struct looks
 * like on the wire is a table of fields, so both directions and both ends share one description.
 *
 * Decoding is strict, since the peer is hostile: unknown, doubled, short, long or unterminated
 * attributes make the whole message invalid, and the object is left as it was.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define WIRE_VERSION  1
#define WIRE_SIZE_MAX 8192 /* bytes; a longer message is refused unread */
#define WIRE_SOCKET   "/run/harpe-gov/socket"

/* A buffer for one message: header and attributes are read in place, so it must be aligned. Buffers
 * that are declared otherwise must be aligned to 4. */
#define WIRE_BUFFER(name) _Alignas(8) char name[WIRE_SIZE_MAX]

enum wire_type {
	/* client -> supervisor; one per connection, but WIRE_SIGNAL */
	WIRE_RUN = 16, /* struct request, with descriptors (enum run_fd) */
	WIRE_PS,       /* struct request: target; answered by WIRE_GUEST ... WIRE_DONE */
	WIRE_KILL,     /* struct request: target; answered by WIRE_DONE or WIRE_REFUSED */
	/* supervisor -> client */
	WIRE_REPORT,  /* struct report: the last message of a run */
	WIRE_GUEST,   /* struct guest_row */
	WIRE_DONE,    /* struct answer: count of guests acted on */
	WIRE_REFUSED, /* struct answer: text, one sentence */
	/* client -> supervisor, behind WIRE_RUN, as often as it likes; never answered */
	WIRE_SIGNAL, /* struct signal_order */
	/* as WIRE_RUN, but nothing is started; answered by WIRE_EXPLANATION or WIRE_REFUSED */
	WIRE_EXPLAIN,	  /* struct request */
	WIRE_EXPLANATION, /* struct explanation */
	/* supervisor -> client, once the command runs, when a terminal was asked for */
	WIRE_TERMINAL, /* nothing, with one descriptor: the master of the guest's pty */
	/* supervisor -> client, before that, for every run */
	WIRE_RUNNING, /* nothing: the command runs, signals are its own from now on */
	WIRE_TYPE_LAST = WIRE_RUNNING,
};

enum wire_kind {
	WIRE_U32,
	WIRE_U64,
	WIRE_STRING, /* char[size], NUL-terminated in the struct and on the wire */
	WIRE_BYTES,  /* exactly size bytes */
};

struct wire_field {
	uint16_t attr; /* 1 ..., unique in its table, never reused for another meaning */
	enum wire_kind kind;
	size_t offset, size; /* in the struct */
};

#define WIRE_FIELD(attr, kind, type, member)                                                       \
	{                                                                                          \
		attr, kind, offsetof(type, member), sizeof(((type *)0)->member)                    \
	}

/* Encodes all of @object into @buf. Returns the length, -EMSGSIZE when it does not fit, -EINVAL
 * when a string in the struct is not terminated. */
ssize_t wire_encode(enum wire_type type, const struct wire_field *fields, size_t n_fields,
		    const void *object, void *buf, size_t size);

/* The type of the message, after its header was validated; -EPROTO when it is no message of this
 * version. */
int wire_type(const void *buf, size_t len, struct error *e);

/* Decodes the attributes into @object; members without an attribute keep their value.
 * Checks the form only: what the strings and numbers say is for the caller (request_check()). */
int wire_decode(const struct wire_field *fields, size_t n_fields, const void *buf, size_t len,
		void *object, struct error *e);

/* Sends one message with up to WIRE_FDS_MAX descriptors. 0 or negative errno. */
#define WIRE_FDS_MAX 24
int wire_send(int sock, const void *buf, size_t len, const int *fds, size_t n_fds);

/* The same without blocking: -EAGAIN when the receiver does not read. */
int wire_try_send(int sock, const void *buf, size_t len, const int *fds, size_t n_fds);

/* Receives one message. Descriptors are O_CLOEXEC and owned by the caller; *ret_n_fds of them.
 * Without a message there are none. 0 at end of file (or a message of no bytes), else the length or
 * a negative errno (-EPROTO: too long, or more descriptors than WIRE_FDS_MAX). */
ssize_t wire_receive(int sock, void *buf, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_n_fds);
