/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wire.h"
#include "governor/supervisor/pair.h"

struct record {
	uint64_t number;
	char text[24];
};

static const struct record sample = { 4711, "hello" };

static int make_pair(void **state)
{
	int *pair = malloc(2 * sizeof(*pair));

	*state = pair;
	return pair ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) : -1;
}

static int close_pair(void **state)
{
	int *pair = *state;

	close_fd(&pair[0]);
	close_fd(&pair[1]);
	free(pair);
	return 0;
}

static void hang_up(int *fd)
{
	close(*fd);
	*fd = -1;
}

static void carries_records(void **state)
{
	int *pair = *state;
	struct record got = {};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pair_send(pair[i], &sample, sizeof(sample)), 0);
		assert_int_equal(pair_send(pair[i], &sample, sizeof(sample)), 0);
		assert_int_equal(pair_receive(pair[!i], &got, sizeof(got)), 0);
		assert_memory_equal(&got, &sample, sizeof(got));
		assert_int_equal(pair_receive(pair[!i], &got, sizeof(got)), 0);
	}
}

/* One record is one message: the rest of a long one does not turn up as the next. */
static void refuses_other_sizes(void **state)
{
	static const size_t sizes[] = { 1, sizeof(struct record) - 1, sizeof(struct record) + 1,
					2 * sizeof(struct record), 4096 };
	int *pair = *state;
	char data[4096] = { 0 };
	struct record got;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(pair_send(pair[0], data, sizes[i]), 0);
		assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), -EPROTO);
	}
	assert_int_equal(pair_send(pair[0], &sample, sizeof(sample)), 0);
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0);
	assert_memory_equal(&got, &sample, sizeof(got));
}

static void tells_the_end(void **state)
{
	int *pair = *state;
	struct record got;

	assert_int_equal(pair_send(pair[0], &sample, sizeof(sample)), 0);
	hang_up(&pair[0]);
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0); /* sent before the end */
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), -ECONNRESET);
	assert_int_equal(pair_send(pair[1], &sample, sizeof(sample)), -EPIPE); /* and no SIGPIPE */
	assert_int_equal(pair_send(-1, &sample, sizeof(sample)), -EBADF);
	assert_int_equal(pair_receive(-1, &got, sizeof(got)), -EBADF);
}

/* The daemon may not hang on a supervisor that does not read. */
static void does_not_block_when_sending(void **state)
{
	int *pair = *state, r = 0;
	const struct spaces with = { pair[0], pair[0], -1 };

	for (int i = 0; i < 100000 && r == 0; i++)
		r = pair_send(pair[0], &sample, sizeof(sample));
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &with), -EAGAIN);
}

static void ignore(int sig)
{
	(void)sig;
}

static void goes_on_after_a_signal(void **state)
{
	struct sigaction act = { .sa_handler = ignore }; /* without SA_RESTART */
	int *pair = *state;
	pid_t parent = getpid(), pid;
	struct record got;

	sigaction(SIGUSR1, &act, NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		usleep(50000);
		kill(parent, SIGUSR1);
		usleep(50000);
		_exit(pair_send(pair[0], &sample, sizeof(sample)) < 0);
	}
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- asking ---- */

/* Plays the daemon, whose answer is there before the question. */
static int call(int *pair, const struct pair_reply *answer, struct pair_reply *reply,
		struct error *e)
{
	struct pair_ask ask = { .verb = PAIR_NEXT, .next.cursor = 12 }, got;
	struct pair_reply named = *answer;
	int r;

	named.to = answer->verb == PAIR_STOP ? 0 : PAIR_NEXT;
	assert_int_equal(pair_send(pair[1], &named, sizeof(named)), 0);
	r = pair_call(pair[0], &ask, reply, e);
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0);
	assert_memory_equal(&got, &ask, sizeof(ask));
	return r;
}

static void gets_its_reply(void **state)
{
	struct pair_reply answer = { .verb = PAIR_OK, .count = 7 }, reply;
	struct error e = ERROR_NULL;

	assert_int_equal(call(*state, &answer, &reply, &e), 0);
	assert_int_equal(reply.verb, PAIR_OK);
	assert_int_equal(reply.count, 7);
	answer.verb = PAIR_NONE;
	assert_int_equal(call(*state, &answer, &reply, &e), 0);
	assert_int_equal(reply.verb, PAIR_NONE);
	assert_string_equal(e.text, "");
}

static void passes_a_refusal_on(void **state)
{
	struct pair_reply answer = { .verb = PAIR_REFUSED, .refused = { "no %s here" } }, reply;
	struct error e = ERROR_NULL;

	assert_int_equal(call(*state, &answer, &reply, &e), -EACCES);
	assert_string_equal(e.text, "no %s here");
	assert_int_equal(call(*state, &answer, &reply, NULL), -EACCES);
}

static void is_told_to_stop(void **state)
{
	for (uint32_t reason = 0; reason < ENDED_COUNT; reason++) {
		struct pair_reply answer = { .verb = PAIR_STOP, .stop = reason }, reply;
		struct error e = ERROR_NULL;

		assert_int_equal(call(*state, &answer, &reply, &e), -ECANCELED);
		assert_int_equal(reply.stop, reason);
		assert_mentions(e.text, "(", ended_names[reason], ")");
	}
}

static void survives_an_unknown_reason(void **state)
{
	struct pair_reply answer = { .verb = PAIR_STOP, .stop = UINT32_MAX }, reply;
	struct error e = ERROR_NULL;

	assert_int_equal(call(*state, &answer, &reply, &e), -ECANCELED);
	assert_true(e.text[0]);
}

/* An answer that comes after its asker gave up must not be taken for the next one's. */
static void skips_late_answers(void **state)
{
	static const uint32_t late[] = { PAIR_HELLO, PAIR_START, PAIR_KILL, 4711 };
	struct pair_reply answer = { .verb = PAIR_OK, .to = PAIR_NEXT, .count = 7 }, reply;
	struct error e = ERROR_NULL;
	int *pair = *state;

	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		struct pair_reply other = { .verb = i % 2 ? PAIR_OK : PAIR_REFUSED, .to = late[i] };

		assert_int_equal(pair_send(pair[1], &other, sizeof(other)), 0);
	}
	assert_int_equal(call(pair, &answer, &reply, &e), 0);
	assert_int_equal(reply.to, PAIR_NEXT);
	assert_int_equal(reply.count, 7);
	assert_string_equal(e.text, "");
}

/* It answers nothing, and may come at any time. */
static void is_stopped_behind_a_late_answer(void **state)
{
	struct pair_reply other = { .verb = PAIR_OK, .to = PAIR_KILL };
	struct pair_reply answer = { .verb = PAIR_STOP, .stop = ENDED_KILLED }, reply;
	struct error e = ERROR_NULL;
	int *pair = *state;

	assert_int_equal(pair_send(pair[1], &other, sizeof(other)), 0);
	assert_int_equal(call(pair, &answer, &reply, &e), -ECANCELED);
	assert_int_equal(reply.stop, ENDED_KILLED);
}

static void says_hello(void **state)
{
	struct pair_ask ask = { .verb = PAIR_HELLO }, got;
	struct pair_reply answer = { .verb = PAIR_OK, .to = PAIR_HELLO }, reply;
	struct error e = ERROR_NULL;
	int *pair = *state;

	ask.caller = (struct caller){ .uid = 1, .gid = 2, .n_groups = CALLER_GROUPS_MAX };
	ask.caller.groups[CALLER_GROUPS_MAX - 1] = 3;
	assert_int_equal(pair_send(pair[1], &answer, sizeof(answer)), 0);
	assert_int_equal(pair_call(pair[0], &ask, &reply, &e), 0);
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0);
	assert_memory_equal(&got, &ask, sizeof(got));
}

static void waits_for_an_answer_alone(void **state)
{
	struct pair_reply answer = { .verb = PAIR_NONE, .to = PAIR_START }, reply;
	struct error e = ERROR_NULL;
	int *pair = *state;

	assert_int_equal(pair_send(pair[1], &answer, sizeof(answer)), 0);
	answer.to = PAIR_END;
	assert_int_equal(pair_send(pair[1], &answer, sizeof(answer)), 0);
	assert_int_equal(pair_answer(pair[0], PAIR_END, &reply, NULL, &e), 0);
	assert_int_equal(reply.to, PAIR_END);
	hang_up(&pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_END, &reply, NULL, &e), -ECONNRESET);
}

static void sees_the_daemon_go(void **state)
{
	struct pair_ask ask = { .verb = PAIR_NEXT };
	struct pair_reply reply;
	struct error e = ERROR_NULL;
	int *pair = *state;

	assert_int_equal(pair_send(pair[1], &sample, sizeof(sample)), 0); /* not a reply */
	assert_int_equal(pair_call(pair[0], &ask, &reply, &e), -ECONNRESET);
	shutdown(pair[1], SHUT_WR); /* asked, but not answered */
	assert_int_equal(pair_call(pair[0], &ask, &reply, &e), -ECONNRESET);
	hang_up(&pair[1]);
	assert_int_equal(pair_call(pair[0], &ask, &reply, &e), -ECONNRESET);
	assert_mentions(e.text, "the daemon is gone", "", "");
}

/* ---- descriptors ---- */

static void assert_same(int a, int b)
{
	struct stat of_a, of_b;

	assert_true(a > STDERR_FILENO && a != b);
	assert_int_equal(fcntl(a, F_GETFD), FD_CLOEXEC);
	assert_true(fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0);
	assert_int_equal(of_a.st_ino, of_b.st_ino);
}

static void hands_namespaces_over(void **state)
{
	int *pair = *state, before = open_fds();
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct spaces three = { pair[0], pair[1], file }, two = { pair[0], pair[1], -1 },
			    bad = { 9999, 9999, -1 };
	struct record got = {};
	struct spaces s = SPACES_NULL;

	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &three), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), 0);
	assert_memory_equal(&got, &sample, sizeof(got));
	assert_same(s.ipc, pair[0]);
	assert_same(s.mounts, pair[1]);
	assert_same(s.net, file);
	spaces_close(&s);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &two), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), 0);
	assert_same(s.mounts, pair[1]);
	assert_int_equal(s.net, -1);
	spaces_close(&s);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &SPACES_NULL), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), 0);
	assert_true(s.ipc == -1 && s.mounts == -1 && s.net == -1);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &bad), -EBADF);
	close(file);
	assert_int_equal(open_fds(), before);
}

/* Whoever sends another number of them, or another record than was agreed on, leaves nothing open
 * here. */
static void closes_what_nobody_expects(void **state)
{
	int *pair = *state, before = open_fds();
	const int four[] = { pair[0], pair[1], pair[0], pair[1] };
	const struct spaces two = { pair[0], pair[1], -1 };
	struct spaces s = two;
	struct record got;

	assert_int_equal(wire_try_send(pair[0], &sample, sizeof(sample), four, 4), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), -EPROTO);
	assert_true(s.ipc == -1 && s.mounts == -1 && s.net == -1);
	assert_int_equal(wire_try_send(pair[0], &sample, sizeof(sample), four, 1), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), -EPROTO);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample) - 1, &two), 0);
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), -EPROTO);
	assert_int_equal(pair_send_with(pair[0], &sample, sizeof(sample), &two), 0);
	assert_int_equal(pair_receive(pair[1], &got, sizeof(got)), 0);
	assert_int_equal(open_fds(), before);
	hang_up(&pair[0]);
	s = two;
	assert_int_equal(pair_receive_with(pair[1], &got, sizeof(got), &s), -ECONNRESET);
	assert_int_equal(s.ipc, -1);
}

static void answer_with(int *pair, uint32_t verb, uint32_t to, int with)
{
	const struct pair_reply reply = { .verb = verb, .to = to };
	const struct spaces spaces = { with, with, -1 };

	assert_int_equal(pair_send_with(pair[1], &reply, sizeof(reply), &spaces), 0);
}

/* Only the answer that was waited for brings some; those of others, of a refusal, and those that
 * the asker does not want are closed. */
static void answers_with_namespaces(void **state)
{
	int *pair = *state, before = open_fds();
	struct pair_reply reply;
	struct spaces s = SPACES_NULL;
	struct error e = ERROR_NULL;

	answer_with(pair, PAIR_OK, PAIR_HELLO, pair[1]);
	answer_with(pair, PAIR_OK, PAIR_START, pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, &s, &e), 0);
	assert_true(s.ipc > STDERR_FILENO && s.mounts > STDERR_FILENO);
	spaces_close(&s);
	assert_int_equal(open_fds(), before);
	answer_with(pair, PAIR_OK, PAIR_HELLO, pair[1]);
	answer_with(pair, PAIR_OK, PAIR_START, -1);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, &s, &e), 0);
	assert_int_equal(s.ipc, -1);
	answer_with(pair, PAIR_OK, PAIR_START, pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, NULL, &e), 0);
	assert_int_equal(open_fds(), before);
	answer_with(pair, PAIR_REFUSED, PAIR_START, pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, &s, &e), -EACCES);
	answer_with(pair, PAIR_STOP, 0, pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, &s, &e), -ECANCELED);
	assert_int_equal(s.ipc, -1);
	assert_int_equal(open_fds(), before);
	answer_with(pair, PAIR_OK, PAIR_HELLO, pair[1]);
	hang_up(&pair[1]);
	assert_int_equal(pair_answer(pair[0], PAIR_START, &reply, &s, &e), -ECONNRESET);
	assert_int_equal(open_fds(), before - 1);
}

#define pair_test(f) cmocka_unit_test_setup_teardown(f, make_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		pair_test(carries_records),
		pair_test(refuses_other_sizes),
		pair_test(tells_the_end),
		pair_test(does_not_block_when_sending),
		pair_test(goes_on_after_a_signal),
		pair_test(gets_its_reply),
		pair_test(passes_a_refusal_on),
		pair_test(is_told_to_stop),
		pair_test(survives_an_unknown_reason),
		pair_test(skips_late_answers),
		pair_test(is_stopped_behind_a_late_answer),
		pair_test(says_hello),
		pair_test(waits_for_an_answer_alone),
		pair_test(sees_the_daemon_go),
		pair_test(hands_namespaces_over),
		pair_test(closes_what_nobody_expects),
		pair_test(answers_with_namespaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
