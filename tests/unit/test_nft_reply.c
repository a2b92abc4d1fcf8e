/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replies, true and untrue. What the kernel says is taken apart without a kernel.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "nft/commit.h"
#include "nft/compare.h"
#include "nft/live.h"
#include "nft/refusal.h"
#include "tests/net/golden.h"

#define SEQ    1000
#define PORTID 4711

static int count(const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	(*(unsigned int *)data)++;
	return 0;
}

static int give_up(const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	(void)data;
	return -EBADMSG;
}

/* A buffer full of messages. */
struct buffer {
	_Alignas(NLMSG_ALIGNTO) char data[4096];
	size_t len;
};

static struct nlmsghdr *put(struct buffer *b, uint16_t type, uint16_t flags, uint32_t seq,
			    uint32_t portid, const void *payload, size_t len)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(b->data + b->len);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	nlh->nlmsg_seq = seq;
	nlh->nlmsg_pid = portid;
	memcpy(mnl_nlmsg_put_extra_header(nlh, len), payload, len);
	b->len += NLMSG_ALIGN(nlh->nlmsg_len);
	return nlh;
}

static void put_error(struct buffer *b, uint32_t seq, int code)
{
	struct nlmsgerr err = { .error = code };

	put(b, NLMSG_ERROR, 0, seq, PORTID, &err, sizeof(err));
}

static void put_part(struct buffer *b, uint32_t seq, uint32_t portid, uint16_t flags)
{
	struct nfgenmsg nfg = { .version = 0 };

	put(b, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, NLM_F_MULTI | flags, seq, portid, &nfg,
	    sizeof(nfg));
}

static void put_done(struct buffer *b, int code)
{
	put(b, NLMSG_DONE, NLM_F_MULTI, SEQ, PORTID, &code, sizeof(code));
}

#define REPLY(d, n)                                                                                \
	{                                                                                          \
		.seq = SEQ, .portid = PORTID, .each = count, .data = (n), .dump = (d)              \
	}

static void a_dump_ends_with_done(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(true, &n);

	(void)state;
	put_part(&b, SEQ, PORTID, 0);
	put_part(&b, SEQ, PORTID, 0);
	reply_feed(&reply, b.data, b.len);
	assert_false(reply.done);
	b.len = 0;
	put_part(&b, SEQ, PORTID, 0);
	put_done(&b, 0);
	put_part(&b, SEQ, PORTID, 0);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(reply.result, 0);
	assert_int_equal(n, 3);
}

static void a_dump_may_fail_at_its_end(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(true, &n);

	(void)state;
	put_part(&b, SEQ, PORTID, 0);
	put_done(&b, -ENOMEM);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(reply.result, -ENOMEM);
}

static void a_torn_dump_is_noticed(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(true, &n);

	(void)state;
	put_part(&b, SEQ, PORTID, NLM_F_DUMP_INTR);
	put_done(&b, 0);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done && reply.interrupted);
}

static void a_question_has_one_answer(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(false, &n);

	(void)state;
	put_part(&b, SEQ, PORTID, 0);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(n, 1);

	reply = (struct reply)REPLY(false, &n);
	b.len = 0;
	put_error(&b, SEQ, -ENOENT);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(reply.result, -ENOENT);
}

static void answers_to_others_do_not_count(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(false, &n);

	(void)state;
	put_error(&b, SEQ - 1, -EPERM);
	put_error(&b, 0, -EPERM);
	put_part(&b, 0, PORTID, 0);
	put_part(&b, SEQ, 0, 0);
	put_part(&b, SEQ, PORTID + 1, 0);
	reply_feed(&reply, b.data, b.len);
	assert_false(reply.done);
	assert_int_equal(n, 0);
}

static void giving_up_still_reads_to_the_end(void **state)
{
	struct buffer b = { .len = 0 };
	struct reply reply = REPLY(true, NULL);

	(void)state;
	reply.each = give_up;
	put_part(&b, SEQ, PORTID, 0);
	put_part(&b, SEQ, PORTID, 0);
	reply_feed(&reply, b.data, b.len);
	assert_false(reply.done);
	assert_int_equal(reply.result, -EBADMSG);
	b.len = 0;
	put_done(&b, 0);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(reply.result, -EBADMSG);
}

static void short_errors_are_errors(void **state)
{
	struct buffer b = { .len = 0 };
	unsigned int n = 0;
	struct reply reply = REPLY(false, &n);

	(void)state;
	put(&b, NLMSG_ERROR, 0, SEQ, PORTID, "", 0);
	reply_feed(&reply, b.data, b.len);
	assert_true(reply.done);
	assert_int_equal(reply.result, -EBADMSG);
}

/* Transactions: 5 messages, the last of which asked for an acknowledgement. */

#define VERDICT                                                                                    \
	{                                                                                          \
		.first_seq = SEQ, .portid = PORTID, .n_items = 5, .refused = 5                     \
	}

static void success_is_the_acknowledgement(void **state)
{
	struct buffer b = { .len = 0 };
	struct verdict v = VERDICT;

	(void)state;
	put_error(&b, SEQ + 4, 0);
	verdict_feed(&v, b.data, b.len);
	assert_true(v.done);
	assert_int_equal(v.result, 0);
}

static void the_first_refusal_counts(void **state)
{
	struct buffer b = { .len = 0 };
	struct verdict v = VERDICT;

	(void)state;
	put_error(&b, SEQ + 2, -ENOENT);
	put_error(&b, SEQ + 3, -EINVAL);
	verdict_feed(&v, b.data, b.len);
	assert_false(v.done);
	put_error(&b, SEQ + 4, 0);
	verdict_feed(&v, b.data, b.len);
	assert_true(v.done);
	assert_int_equal(v.result, -ENOENT);
	assert_int_equal(v.refused, 2);
}

static void a_refused_batch_says_no_more(void **state)
{
	struct buffer b = { .len = 0 };
	struct verdict v = VERDICT;

	(void)state;
	put_error(&b, SEQ, -EPERM);
	verdict_feed(&v, b.data, b.len);
	assert_true(v.done);
	assert_int_equal(v.result, -EPERM);
	assert_int_equal(v.refused, 0);
}

static void verdicts_on_others_do_not_count(void **state)
{
	struct buffer b = { .len = 0 };
	struct verdict v = VERDICT;

	(void)state;
	put_error(&b, SEQ - 1, -EPERM);
	put_error(&b, SEQ + 5, 0);
	put_error(&b, 0, 0);
	put(&b, NLMSG_ERROR, 0, SEQ + 4, PORTID + 1, "\0\0\0\0", 4);
	put(&b, NLMSG_DONE, 0, SEQ + 4, PORTID, "\0\0\0\0", 4);
	verdict_feed(&v, b.data, b.len);
	assert_false(v.done);
}

static void sequence_numbers_wrap(void **state)
{
	struct buffer b = { .len = 0 };
	struct verdict v = VERDICT;

	(void)state;
	v.first_seq = UINT32_MAX - 1;
	put_error(&b, 1, -EINVAL); /* MAX - 1, MAX, 0, 1 */
	put_error(&b, 2, 0);
	verdict_feed(&v, b.data, b.len);
	assert_true(v.done);
	assert_int_equal(v.refused, 3);
}

/* Missing pieces: sentence and errno. */

static void missing_pieces_are_named(void **state)
{
	static const struct {
		int r;
		enum object_kind kind;
		int promised;
		const char *names;
	} cases[] = {
		{ -EINVAL, OBJECT_REQUEST, -EOPNOTSUPP, "CONFIG_NF_TABLES" },
		{ -EOPNOTSUPP, OBJECT_BATCH, -EOPNOTSUPP, "CONFIG_NF_TABLES" },
		{ -EPERM, OBJECT_REQUEST, -EPERM, "CAP_NET_ADMIN" },
		{ -EPERM, OBJECT_BATCH, -EPERM, "CAP_NET_ADMIN" },
		{ -EPERM, OBJECT_OLD_TABLE, -EBUSY, "another process" },
		{ -EOPNOTSUPP, OBJECT_OLD_TABLE, -EOPNOTSUPP, "CONFIG_NF_TABLES_INET" },
		{ -EOPNOTSUPP, OBJECT_TABLE, -EOPNOTSUPP, "Linux 5.12" },
		{ -EOPNOTSUPP, OBJECT_SET, -EOPNOTSUPP, "Linux 5.13" },
		{ -ENOENT, OBJECT_CHAIN, -ENOENT, "CONFIG_NF_TABLES_INET" },
		{ -ENOENT, OBJECT_SLICE_RULE, -ENOENT, "nft_socket" },
		{ -EOPNOTSUPP, OBJECT_SLICE_RULE, -EOPNOTSUPP, "CONFIG_SOCK_CGROUP_DATA" },
		{ -ENOENT, OBJECT_LOG_RULE, -ENOENT, "nfnetlink_log" },
		{ -ENOENT, OBJECT_REJECT_RULE, -ENOENT, "nft_reject_inet" },
		{ -ENOMEM, OBJECT_RULE, -ENOMEM, "adding the thing" },
		{ -ENOMEM, OBJECT_ELEMENTS, -ENOMEM, "adding the thing: Cannot allocate memory" },
		{ -EIO, OBJECT_BATCH, -EIO, "the thing: Input/output error" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e = ERROR_NULL;

		assert_int_equal(refusal_set(&e, cases[i].r, cases[i].kind, "the thing"),
				 cases[i].promised);
		assert_non_null(strstr(e.text, cases[i].names));
	}
}

/* Garbage */

/* A copy, so that a sanitizer sees reads behind it. */
static void feed_copy(struct reply *reply, const char *buf, size_t len)
{
	_cleanup_free_ char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, buf, len);
	copy[len] = '\0';
	reply_feed(reply, copy, len);
}

static void take_copy(const char *buf, size_t len, bool whole)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct reply reply = { .each = live_take, .data = &rs, .dump = true };
	_cleanup_free_ char *text = NULL;

	feed_copy(&reply, buf, len);
	assert_int_equal(reply.result, 0);
	assert_true((rs.n_chains == 4 && rs.chains[3].n_rules == 5) == whole);
	text = ruleset_describe(&rs);
	assert_non_null(text);
}

static void count_copy(const char *buf, size_t len)
{
	unsigned int n = 0;
	struct reply reply = { .each = count, .data = &n, .dump = true };

	feed_copy(&reply, buf, len);
}

/* Our own messages look like the kernel's. */
static void true_messages(struct transaction *t, struct channel *ch)
{
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;

	assert_int_equal(ruleset_build(&golden_policy, 1, &rs), 0);
	assert_int_equal(transaction_begin(t, ch, "test"), 0);
	assert_int_equal(commit_build_replace(t, &rs), 0);
	for (size_t i = 0; i < t->n_items; i++) {
		struct nlmsghdr *nlh = (void *)(t->buf + t->items[i].offset);

		nlh->nlmsg_seq = nlh->nlmsg_pid = 0;
	}
}

/* The messages that add something. */
#define FIRST_TAKEN 3
static const char *first_taken(const struct transaction *t)
{
	return t->buf + t->items[FIRST_TAKEN].offset;
}

static size_t length(const struct transaction *t)
{
	const struct transaction_item *last = &t->items[t->n_items - 1];
	const struct nlmsghdr *nlh = (const void *)(t->buf + last->offset);

	return last->offset + nlh->nlmsg_len - t->items[FIRST_TAKEN].offset;
}

static void cut_replies_do_no_harm(void **state)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;

	(void)state;
	true_messages(&t, &ch);
	for (size_t len = 0; len <= length(&t); len++)
		take_copy(first_taken(&t), len, len == length(&t));
}

/* Every byte of every header. */
static void spoiled_headers_do_no_harm(void **state)
{
	static const unsigned char values[] = { 0, 1, 3, 4, 16, 17, 0x7f, 0x80, 0xff };
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;
	size_t len;

	(void)state;
	true_messages(&t, &ch);
	len = length(&t);
	for (size_t i = 0; i < NLMSG_HDRLEN * (t.n_items - FIRST_TAKEN); i++) {
		char *at =
			t.buf + t.items[FIRST_TAKEN + i / NLMSG_HDRLEN].offset + i % NLMSG_HDRLEN;
		char old = *at;

		for (size_t j = 0; j < sizeof(values); j++) {
			*at = (char)values[j];
			count_copy(first_taken(&t), len);
		}
		*at = old;
	}
}

static void wrong_messages_are_refused(void **state)
{
	struct buffer b = { .len = 0 };
	struct nfgenmsg nfg = { .version = 0 };
	_cleanup_(ruleset_free) struct ruleset rs = RULESET_NULL;
	struct nlmsghdr *nlh;

	(void)state;
	nlh = put(&b, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, 0, 1, 1, &nfg, sizeof(nfg));
	nlh->nlmsg_len = NLMSG_HDRLEN;
	assert_int_equal(live_take(nlh, &rs), -EBADMSG);
	assert_int_equal(live_take(put(&b, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN, 0, 1, 1,
				       &nfg, sizeof(nfg)),
				   &rs),
			 -EBADMSG);
	assert_int_equal(live_take(put(&b, NFT_MSG_NEWTABLE, 0, 1, 1, &nfg, sizeof(nfg)), &rs),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump_ends_with_done),
		cmocka_unit_test(a_dump_may_fail_at_its_end),
		cmocka_unit_test(a_torn_dump_is_noticed),
		cmocka_unit_test(a_question_has_one_answer),
		cmocka_unit_test(answers_to_others_do_not_count),
		cmocka_unit_test(giving_up_still_reads_to_the_end),
		cmocka_unit_test(short_errors_are_errors),
		cmocka_unit_test(success_is_the_acknowledgement),
		cmocka_unit_test(the_first_refusal_counts),
		cmocka_unit_test(a_refused_batch_says_no_more),
		cmocka_unit_test(verdicts_on_others_do_not_count),
		cmocka_unit_test(sequence_numbers_wrap),
		cmocka_unit_test(missing_pieces_are_named),
		cmocka_unit_test(cut_replies_do_no_harm),
		cmocka_unit_test(spoiled_headers_do_no_harm),
		cmocka_unit_test(wrong_messages_are_refused),
	};

	return cmocka_run_group_tests_name("nft/reply", tests, NULL, NULL);
}
