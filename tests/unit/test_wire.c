/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <signal.h>
#include <sys/socket.h>

#include "common/report.h"
#include "common/request.h"
#include "common/wire.h"

struct object {
	uint32_t small;
	uint64_t large;
	char text[8];
	unsigned char bytes[6];
};

static const struct wire_field fields[] = {
	WIRE_FIELD(1, WIRE_U32, struct object, small),
	WIRE_FIELD(2, WIRE_U64, struct object, large),
	WIRE_FIELD(3, WIRE_STRING, struct object, text),
	WIRE_FIELD(4, WIRE_BYTES, struct object, bytes),
};
#define N_FIELDS ARRAY_SIZE(fields)

static const struct object sample = { 7, UINT64_C(1) << 40, "seven", { 1, 2, 3, 4, 5, 6 } };

struct message {
	WIRE_BUFFER(buf);
	size_t len;
};

static struct nlmsghdr *header_of(struct message *m)
{
	return (struct nlmsghdr *)(void *)m->buf;
}

static void start(struct message *m)
{
	memset(m, 0, sizeof(*m));
	mnl_nlmsg_put_header(m->buf);
	header_of(m)->nlmsg_type = WIRE_PS;
	header_of(m)->nlmsg_seq = WIRE_VERSION;
	m->len = MNL_NLMSG_HDRLEN;
}

static void put(struct message *m, uint16_t attr, const void *data, size_t len)
{
	mnl_attr_put(header_of(m), attr, len, data);
	m->len = header_of(m)->nlmsg_len;
}

static void encode_sample(struct message *m)
{
	ssize_t n = wire_encode(WIRE_RUN, fields, N_FIELDS, &sample, m->buf, sizeof(m->buf));

	assert_true(n > 0);
	m->len = (size_t)n;
}

static int decode(const struct message *m, struct object *o)
{
	struct error e = ERROR_NULL;
	int r = wire_decode(fields, N_FIELDS, m->buf, m->len, o, &e);

	assert_true(r == 0 || (r == -EPROTO && e.text[0]));
	return r;
}

static void assert_refused(const struct message *m)
{
	struct object o = { 99, 99, "before", { 9 } }, before = o;

	assert_int_equal(decode(m, &o), -EPROTO);
	assert_memory_equal(&o, &before, sizeof(o));
}

static void goes_round(void **state)
{
	struct message m;
	struct object o = {};

	(void)state;
	encode_sample(&m);
	assert_int_equal(wire_type(m.buf, m.len, NULL), WIRE_RUN);
	assert_int_equal(decode(&m, &o), 0);
	assert_int_equal(o.small, sample.small);
	assert_true(o.large == sample.large);
	assert_string_equal(o.text, sample.text);
	assert_memory_equal(o.bytes, sample.bytes, sizeof(o.bytes));
}

static void keeps_members_that_are_not_there(void **state)
{
	struct message m;
	struct object o = { .small = 5, .text = "kept" };

	(void)state;
	start(&m);
	assert_int_equal(decode(&m, &o), 0);
	put(&m, 2, &(uint64_t){ 12 }, 8);
	assert_int_equal(decode(&m, &o), 0);
	assert_int_equal(o.small, 5);
	assert_int_equal(o.large, 12);
	assert_string_equal(o.text, "kept");
}

static void takes_strings_up_to_their_size(void **state)
{
	struct message m;
	struct object o = {};

	(void)state;
	start(&m);
	put(&m, 3, "1234567", 8);
	assert_int_equal(decode(&m, &o), 0);
	assert_string_equal(o.text, "1234567");
	start(&m);
	put(&m, 3, "", 1);
	assert_int_equal(decode(&m, &o), 0);
	assert_string_equal(o.text, "");
}

static void refuses_truncation_at_every_byte(void **state)
{
	struct message whole, m;

	(void)state;
	encode_sample(&whole);
	for (size_t len = 0; len < whole.len; len++) {
		m = whole;
		m.len = len; /* the header promises more */
		assert_refused(&m);
		if (len < MNL_NLMSG_HDRLEN)
			continue;
		header_of(&m)->nlmsg_len = (uint32_t)len; /* the header agrees */
		if (len == MNL_NLMSG_HDRLEN ||
		    wire_decode(fields, N_FIELDS, m.buf, m.len, &(struct object){}, NULL) < 0)
			continue;
		/* what is left is a shorter message only where an attribute ended */
		assert_true(len % MNL_ALIGNTO == 0);
	}
}

/* Cuts the message inside its last attribute, the header agreeing. */
static void refuses_a_cut_attribute(void **state)
{
	struct message whole, m;
	size_t last;

	(void)state;
	start(&whole);
	put(&whole, 1, &(uint32_t){ 1 }, 4);
	last = whole.len;
	put(&whole, 4, "abcdef", 6);
	for (size_t len = last + 1; len < whole.len; len++) {
		m = whole;
		m.len = len;
		header_of(&m)->nlmsg_len = (uint32_t)len;
		assert_refused(&m);
	}
}

static const struct {
	const char *what;
	uint16_t attr;
	size_t len;
	const char *data;
} bad_attributes[] = {
	{ "unknown", 5, 4, "abcd" },
	{ "number 0", 0, 4, "abcd" },
	{ "nested flag", 1 | NLA_F_NESTED, 4, "abcd" },
	{ "byte order flag", 1 | NLA_F_NET_BYTEORDER, 4, "abcd" },
	{ "u32 short", 1, 3, "abc" },
	{ "u32 long", 1, 8, "abcdefgh" },
	{ "u32 empty", 1, 0, "" },
	{ "u64 short", 2, 4, "abcd" },
	{ "u64 long", 2, 9, "abcdefghi" },
	{ "string without NUL", 3, 4, "abcd" },
	{ "string empty", 3, 0, "" },
	{ "string too long", 3, 9, "12345678" },
	{ "string full without NUL", 3, 8, "12345678" },
	{ "string with a NUL inside", 3, 5, "ab\0c" },
	{ "bytes short", 4, 5, "abcde" },
	{ "bytes long", 4, 7, "abcdefg" },
};

static void refuses_bad_attributes(void **state)
{
	struct message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_attributes); i++) {
		print_message("# %s\n", bad_attributes[i].what);
		start(&m);
		put(&m, bad_attributes[i].attr, bad_attributes[i].data, bad_attributes[i].len);
		assert_refused(&m);
		/* also behind a valid one, which must not be stored either */
		start(&m);
		put(&m, bad_attributes[i].attr == 1 ? 2 : 1, &(uint64_t){ 3 },
		    bad_attributes[i].attr == 1 ? 8 : 4);
		put(&m, bad_attributes[i].attr, bad_attributes[i].data, bad_attributes[i].len);
		assert_refused(&m);
	}
}

static void refuses_doubled_attributes(void **state)
{
	struct message m;

	(void)state;
	for (size_t i = 0; i < N_FIELDS; i++) {
		const char *data = (const char *)&sample + fields[i].offset;
		size_t len = fields[i].kind == WIRE_STRING ? strlen(data) + 1 : fields[i].size;

		start(&m);
		put(&m, fields[i].attr, data, len);
		put(&m, fields[i].attr, data, len);
		assert_refused(&m);
	}
}

static void refuses_attribute_lengths_that_lie(void **state)
{
	static const uint16_t lengths[] = { 0, 1, 3, 9, 0xffff };
	struct message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		start(&m);
		put(&m, 1, &(uint32_t){ 1 }, 4);
		((struct nlattr *)mnl_nlmsg_get_payload(header_of(&m)))->nla_len = lengths[i];
		assert_refused(&m);
	}
}

static void assert_bad_header(struct message *m)
{
	struct error e = ERROR_NULL;

	assert_int_equal(wire_type(m->buf, m->len, &e), -EPROTO);
	assert_true(e.text[0]);
	assert_refused(m);
}

static void refuses_bad_headers(void **state)
{
	struct message m;

	(void)state;
	start(&m);
	header_of(&m)->nlmsg_seq = WIRE_VERSION + 1;
	assert_bad_header(&m);
	start(&m);
	header_of(&m)->nlmsg_flags = NLM_F_REQUEST;
	assert_bad_header(&m);
	start(&m);
	header_of(&m)->nlmsg_pid = 1;
	assert_bad_header(&m);
	start(&m);
	header_of(&m)->nlmsg_type = WIRE_RUN - 1;
	assert_bad_header(&m);
	start(&m);
	header_of(&m)->nlmsg_type = WIRE_TYPE_LAST + 1;
	assert_bad_header(&m);
	start(&m);
	header_of(&m)->nlmsg_len = 0;
	assert_bad_header(&m);
	start(&m);
	m.len += 4; /* bytes behind the message */
	assert_bad_header(&m);
}

/* Every byte of a message changed to every value: never a crash, never a half-stored object. */
static void survives_every_changed_byte(void **state)
{
	struct message whole, m;

	(void)state;
	encode_sample(&whole);
	for (size_t i = 0; i < whole.len; i++)
		for (int value = 0; value < 256; value++) {
			struct object o = { 99, 99, "before", { 9 } }, before = o;

			m = whole;
			m.buf[i] = (char)value;
			if (decode(&m, &o) < 0)
				assert_memory_equal(&o, &before, sizeof(o));
			assert_true(memchr(o.text, 0, sizeof(o.text)) != NULL);
		}
}

static void encodes_only_what_fits(void **state)
{
	struct message m;
	struct object o = sample;

	(void)state;
	encode_sample(&m);
	for (size_t size = 0; size < m.len; size++)
		assert_int_equal(wire_encode(WIRE_RUN, fields, N_FIELDS, &sample, m.buf, size),
				 -EMSGSIZE);
	memset(o.text, 'x', sizeof(o.text));
	assert_int_equal(wire_encode(WIRE_RUN, fields, N_FIELDS, &o, m.buf, sizeof(m.buf)),
			 -EINVAL);
}

/* ---- transport ---- */

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

static void sends_descriptors(void **state)
{
	int before = open_fds(), pair[2], out[WIRE_FDS_MAX], in[WIRE_FDS_MAX];
	size_t n_fds = 77;
	char buf[64];

	(void)state;
	make_pair(pair);
	for (int i = 0; i < WIRE_FDS_MAX; i++)
		out[i] = pair[i % 2];
	assert_int_equal(wire_send(pair[0], "hello", 5, out, WIRE_FDS_MAX), 0);
	assert_int_equal(wire_receive(pair[1], buf, sizeof(buf), in, &n_fds), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(n_fds, WIRE_FDS_MAX);
	for (size_t i = 0; i < n_fds; i++) {
		assert_int_equal(fcntl(in[i], F_GETFD), FD_CLOEXEC);
		close(in[i]);
	}
	assert_int_equal(wire_send(pair[0], "x", 1, NULL, 0), 0);
	assert_int_equal(wire_receive(pair[1], buf, sizeof(buf), in, &n_fds), 1);
	assert_int_equal(n_fds, 0);
	close_pair(pair);
	assert_int_equal(open_fds(), before);
}

/* Sends @len bytes with @n_fds descriptors, more than wire_send() would. */
static void send_raw(int sock, size_t len, size_t n_fds)
{
	static char data[2 * WIRE_SIZE_MAX];
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 64)];
	} control = {};
	struct iovec iov = { data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
	for (size_t i = 0; i < n_fds; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &sock, sizeof(int));
	msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	assert_int_equal(sendmsg(sock, &msg, 0), len);
}

static void closes_descriptors_of_bad_messages(void **state)
{
	static const struct {
		size_t len, n_fds;
		ssize_t r;
	} cases[] = {
		{ WIRE_SIZE_MAX + 1, 3, -EPROTO },
		{ 16, WIRE_FDS_MAX + 1, -EPROTO },
		{ 16, 64, -EPROTO },
		{ WIRE_SIZE_MAX + 1, 64, -EPROTO },
		{ 0, 3, 0 },
	};
	WIRE_BUFFER(buf);
	int before = open_fds(), pair[2], in[WIRE_FDS_MAX];

	(void)state;
	make_pair(pair);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n_fds = 77;

		send_raw(pair[0], cases[i].len, cases[i].n_fds);
		assert_int_equal(wire_receive(pair[1], buf, sizeof(buf), in, &n_fds), cases[i].r);
		assert_int_equal(n_fds, 0);
		assert_int_equal(open_fds(), before + 2);
	}
	close_pair(pair);
}

static void reports_the_end(void **state)
{
	int pair[2], in[WIRE_FDS_MAX], fds[WIRE_FDS_MAX + 1] = {};
	size_t n_fds = 77;
	char buf[8];

	(void)state;
	make_pair(pair);
	assert_int_equal(wire_send(pair[0], "x", 1, fds, WIRE_FDS_MAX + 1), -EINVAL);
	close(pair[1]);
	assert_int_equal(wire_receive(pair[0], buf, sizeof(buf), in, &n_fds), 0);
	assert_int_equal(n_fds, 0);
	assert_int_equal(wire_send(pair[0], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
	close(pair[0]);
	assert_int_equal(wire_receive(-1, buf, sizeof(buf), in, &n_fds), -EBADF);
}

/* A receiver that does not read stops nobody; what was sent until then is there to the last. */
static void tries_to_send(void **state)
{
	int before = open_fds(), pair[2], in[WIRE_FDS_MAX], sent = 0, r;
	size_t n_fds = 77;
	char buf[8];

	(void)state;
	make_pair(pair);
	while ((r = wire_try_send(pair[0], "hello", 5, pair, 2)) == 0 && sent < 100000)
		sent++;
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 0);
	assert_int_equal(wire_try_send(pair[0], "hello", 5, NULL, 0), -EAGAIN);
	for (int i = 0; i < sent; i++) {
		assert_int_equal(wire_receive(pair[1], buf, sizeof(buf), in, &n_fds), 5);
		assert_int_equal(n_fds, 2);
		close_pair(in);
	}
	assert_int_equal(wire_try_send(pair[0], "x", 1, pair, WIRE_FDS_MAX + 1), -EINVAL);
	close(pair[1]);
	assert_int_equal(wire_try_send(pair[0], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
	close(pair[0]);
	assert_int_equal(open_fds(), before);
}

/* The tables in use: numbers unique, members apart from each other, all within one message. */
static void check_table(const struct wire_field *f, size_t n)
{
	size_t bytes = MNL_NLMSG_HDRLEN;

	assert_true(n <= 64);
	for (size_t i = 0; i < n; i++) {
		assert_true(f[i].attr > 0);
		assert_true(f[i].kind != WIRE_U32 || f[i].size == 4);
		assert_true(f[i].kind != WIRE_U64 || f[i].size == 8);
		for (size_t j = 0; j < i; j++) {
			assert_int_not_equal(f[i].attr, f[j].attr);
			assert_true(f[i].offset + f[i].size <= f[j].offset ||
				    f[j].offset + f[j].size <= f[i].offset);
		}
		bytes += MNL_ALIGN(MNL_ATTR_HDRLEN + f[i].size);
	}
	assert_true(bytes <= WIRE_SIZE_MAX);
}

static void tables_are_sound(void **state)
{
	(void)state;
	check_table(fields, N_FIELDS);
	check_table(request_fields, request_n_fields);
	check_table(answer_fields, answer_n_fields);
	check_table(guest_row_fields, guest_row_n_fields);
	check_table(signal_fields, signal_n_fields);
	check_table(explanation_fields, explanation_n_fields);
	check_table(report_fields, report_n_fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_round),
		cmocka_unit_test(keeps_members_that_are_not_there),
		cmocka_unit_test(takes_strings_up_to_their_size),
		cmocka_unit_test(refuses_truncation_at_every_byte),
		cmocka_unit_test(refuses_a_cut_attribute),
		cmocka_unit_test(refuses_bad_attributes),
		cmocka_unit_test(refuses_doubled_attributes),
		cmocka_unit_test(refuses_attribute_lengths_that_lie),
		cmocka_unit_test(refuses_bad_headers),
		cmocka_unit_test(survives_every_changed_byte),
		cmocka_unit_test(encodes_only_what_fits),
		cmocka_unit_test(sends_descriptors),
		cmocka_unit_test(closes_descriptors_of_bad_messages),
		cmocka_unit_test(reports_the_end),
		cmocka_unit_test(tries_to_send),
		cmocka_unit_test(tables_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
