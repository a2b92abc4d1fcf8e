/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A supervisor that lists guests, between a daemon and a client that are played by the test. Its
 * seconds last 40 ms here.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/request.h"
#include "governor/supervisor/deadline.h"
#include "governor/supervisor/guest.h"
#include "governor/supervisor/pair.h"
#include "governor/supervisor/supervisor.h"

enum { SECOND_USEC = 40000, DEADLINE_USEC = DEADLINE_SEC * SECOND_USEC };

/* In place of libc's: the deadline's only clock. */
unsigned int alarm(unsigned int seconds)
{
	setitimer(ITIMER_REAL,
		  &(struct itimerval){ .it_value.tv_usec = (suseconds_t)seconds * SECOND_USEC },
		  NULL);
	return 0;
}

struct stage {
	char dir[32], cgroup[48];
	int listener, client, daemon; /* the test's ends */
	int held;		      /* the other end is the daemon's alone */
	pid_t supervisor;
};

static struct sockaddr_un address_of(const struct stage *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", s->dir);
	return address;
}

static int listen_at(const struct stage *s)
{
	struct sockaddr_un address = address_of(s);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 2) < 0
		       ? -1
		       : fd;
}

static int connect_to(const struct stage *s)
{
	struct sockaddr_un address = address_of(s);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : sock;
}

/* The daemon's are many: one that lies as low as those that stay would be replaced, not closed. */
static int raise_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 100);

	close(fd);
	return high;
}

/* One that waits for a connection. */
static int set_up(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	int pair[2], held[2];

	*state = s;
	strcpy(s->dir, "/tmp/harpe-gov-test-XXXXXX");
	if (!mkdtemp(s->dir) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    pipe2(held, O_CLOEXEC) < 0)
		return -1;
	snprintf(s->cgroup, sizeof(s->cgroup), "%s/scope", s->dir);
	s->client = -1;
	s->daemon = raise_fd(pair[0]);
	held[1] = raise_fd(held[1]);
	s->held = held[0];
	s->listener = listen_at(s);
	if (s->listener < 0)
		return -1;
	s->supervisor = fork();
	if (s->supervisor == 0) {
		supervisor_main(s->listener, pair[1], &(struct guest_means){ .ground = pair[1] });
		_exit(9);
	}
	close(pair[1]);
	close(held[1]);
	return s->supervisor < 0;
}

static int set_up_connected(void **state)
{
	int r = set_up(state);
	struct stage *s = *state;

	if (r == 0)
		s->client = connect_to(s);
	return r == 0 && s->client < 0;
}

static int tear_down(void **state)
{
	struct stage *s = *state;

	struct sockaddr_un address = address_of(s);

	close_fd(&s->client);
	close_fd(&s->daemon);
	if (s->supervisor > 0)
		waitpid(s->supervisor, NULL, 0);
	close_fd(&s->held);
	close_fd(&s->listener);
	unlink(address.sun_path);
	rmdir(s->dir);
	free(s);
	return 0;
}

static void expect_end(struct stage *s, int exit_status)
{
	int status = -1;

	assert_int_equal(waitpid(s->supervisor, &status, 0), s->supervisor);
	s->supervisor = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), exit_status);
}

/* ---- the daemon ---- */

static void take_ask(struct stage *s, enum pair_verb verb, struct pair_ask *ret)
{
	assert_int_equal(pair_receive(s->daemon, ret, sizeof(*ret)), 0);
	assert_int_equal(ret->verb, verb);
}

static void reply_to(struct stage *s, enum pair_verb to, enum pair_verb verb)
{
	struct pair_reply m = { .verb = verb, .to = to };

	assert_int_equal(pair_send(s->daemon, &m, sizeof(m)), 0);
}

/* One row, the @n-th of all. */
static void reply_row(struct stage *s, uint64_t n)
{
	struct pair_reply m = { .verb = PAIR_OK, .to = PAIR_NEXT };

	snprintf(m.next.row.id, sizeof(m.next.row.id), "%016x", (unsigned int)n);
	strcpy(m.next.row.cgroup, s->cgroup);
	m.next.cursor = n;
	assert_int_equal(pair_send(s->daemon, &m, sizeof(m)), 0);
}

static void hello(struct stage *s)
{
	struct pair_ask ask;

	take_ask(s, PAIR_HELLO, &ask);
	reply_to(s, PAIR_HELLO, PAIR_OK);
}

/* ---- the client ---- */

static void send_request(struct stage *s, enum wire_type type, const char *target, uint32_t brief)
{
	WIRE_BUFFER(buf);
	struct request q;
	ssize_t n;

	request_clear(&q);
	strcpy(q.target, target);
	q.brief = brief;
	n = wire_encode(type, request_fields, request_n_fields, &q, buf, sizeof(buf));
	assert_int_equal(wire_send(s->client, buf, (size_t)n, NULL, 0), 0);
}

static void send_request_of(struct stage *s, enum wire_type type, const char *target)
{
	send_request(s, type, target, 0);
}

static int receive_type(struct stage *s, void *buf, size_t *ret_len)
{
	int fds[WIRE_FDS_MAX];
	size_t n_fds;
	ssize_t n = wire_receive(s->client, buf, WIRE_SIZE_MAX, fds, &n_fds);

	assert_true(n > 0);
	*ret_len = (size_t)n;
	return wire_type(buf, (size_t)n, NULL);
}

static void take_row(struct stage *s, struct guest_row *ret)
{
	WIRE_BUFFER(buf);
	size_t len;

	assert_int_equal(receive_type(s, buf, &len), WIRE_GUEST);
	*ret = (struct guest_row){};
	assert_int_equal(wire_decode(guest_row_fields, guest_row_n_fields, buf, len, ret, NULL), 0);
}

static void take_answer(struct stage *s, enum wire_type type, struct answer *ret)
{
	WIRE_BUFFER(buf);
	size_t len;

	assert_int_equal(receive_type(s, buf, &len), (int)type);
	*ret = (struct answer){};
	assert_int_equal(wire_decode(answer_fields, answer_n_fields, buf, len, ret, NULL), 0);
}

/* ---- before there is a client ---- */

static void ends_when_none_is_wanted(void **state)
{
	reply_to(*state, 0, PAIR_NONE);
	expect_end(*state, 0);
}

static void ends_with_the_daemon(void **state)
{
	struct stage *s = *state;

	close_fd(&s->daemon);
	s->daemon = -1;
	expect_end(s, 0);
}

/* The listener wakes it, and there is nobody. */
static void waits_on_when_others_are_faster(void **state)
{
	struct stage *s = *state;
	int other, taken;

	kill(s->supervisor, SIGSTOP);
	assert_int_equal(waitpid(s->supervisor, NULL, WUNTRACED), s->supervisor);
	other = connect_to(s);
	taken = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(other >= 0 && taken >= 0);
	kill(s->supervisor, SIGCONT);
	s->client = connect_to(s);
	hello(s);
	close(other);
	close(taken);
}

/* What only the daemon has open closes with the daemon, whoever waits. */
static void holds_nothing_of_the_daemons(void **state)
{
	struct pollfd end = { .fd = ((struct stage *)*state)->held };

	assert_int_equal(poll(&end, 1, 10000), 1);
	assert_true(end.revents & POLLHUP);
}

/* ---- in time ---- */

static void takes_its_time_where_the_daemon_does(void **state)
{
	enum { BATCHES = 4 };
	struct stage *s = *state;
	struct guest_row row;
	struct answer answer;
	struct pair_ask ask;
	uint64_t n = 0;

	send_request_of(s, WIRE_PS, "job");
	usleep(DEADLINE_USEC + SECOND_USEC);
	hello(s);
	for (int i = 0; i < BATCHES; i++) {
		take_ask(s, PAIR_NEXT, &ask);
		assert_int_equal(ask.next.cursor, n);
		assert_string_equal(ask.next.target, "job");
		usleep(DEADLINE_USEC / 2);
		for (int j = 0; j < PAIR_ROWS; j++)
			reply_row(s, ++n);
	}
	take_ask(s, PAIR_NEXT, &ask);
	usleep(DEADLINE_USEC + SECOND_USEC);
	reply_to(s, PAIR_NEXT, PAIR_NONE);
	for (uint64_t i = 1; i <= n; i++) {
		take_row(s, &row);
		assert_int_equal(strtoull(row.id, NULL, 16), i);
	}
	take_answer(s, WIRE_DONE, &answer);
	assert_int_equal(answer.count, n);
	expect_end(s, 0);
}

static void kills_for_as_long_as_it_takes(void **state)
{
	struct stage *s = *state;
	struct answer answer;
	struct pair_ask ask;

	send_request_of(s, WIRE_KILL, "job");
	hello(s);
	take_ask(s, PAIR_KILL, &ask);
	assert_string_equal(ask.target, "job");
	usleep(DEADLINE_USEC + SECOND_USEC);
	reply_to(s, PAIR_KILL, PAIR_OK);
	take_answer(s, WIRE_DONE, &answer);
	expect_end(s, 0);
}

/* ---- too late ---- */

static void waits_for_no_request_for_ever(void **state)
{
	struct stage *s = *state;
	struct answer answer;

	hello(s);
	take_answer(s, WIRE_REFUSED, &answer);
	assert_non_null(strstr(answer.text, "took more than 5 s"));
	expect_end(s, 1);
}

/* Nor for a client that asks and does not listen. */
static void ends_when_nobody_reads(void **state)
{
	struct stage *s = *state;
	struct pair_ask ask;
	uint64_t n = 0;

	send_request_of(s, WIRE_PS, "");
	hello(s);
	while (pair_receive(s->daemon, &ask, sizeof(ask)) == 0) {
		assert_true(n < 10000);
		for (int j = 0; j < PAIR_ROWS; j++)
			reply_row(s, ++n);
	}
	expect_end(s, 1);
}

/* ---- counters ---- */

static void write_counter(const struct stage *s, const char *file, const char *text)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/guest/%s", s->cgroup, file);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, text, strlen(text)), 0);
	close(fd);
}

static void make_counters(const struct stage *s)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/guest", s->cgroup);
	assert_true(mkdir(s->cgroup, 0700) == 0 && mkdir(path, 0700) == 0);
	write_counter(s, "memory.current", "4096\n");
	write_counter(s, "pids.current", "3\n");
	write_counter(s, "cpu.stat", "usage_usec 17\nuser_usec 12\n");
}

static void remove_counters(const struct stage *s)
{
	static const char *const files[] = { "guest/memory.current", "guest/pids.current",
					     "guest/cpu.stat", "guest", "" };
	char path[96];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->cgroup, files[i]);
		assert_int_equal(remove(path), 0);
	}
}

static void ask_two_rows(struct stage *s, uint32_t brief, struct guest_row rows[2])
{
	struct pair_reply without = { .verb = PAIR_OK, .to = PAIR_NEXT, .next.cursor = 2 };
	struct pair_ask ask;

	send_request(s, WIRE_PS, "", brief);
	hello(s);
	take_ask(s, PAIR_NEXT, &ask);
	reply_row(s, 1);
	assert_int_equal(pair_send(s->daemon, &without, sizeof(without)), 0);
	reply_to(s, PAIR_NEXT, PAIR_NONE);
	take_row(s, &rows[0]);
	take_row(s, &rows[1]);
}

/* What is not there is not known: memory.peak here, and all of one without a cgroup. */
static void reads_the_counters_itself(void **state)
{
	struct stage *s = *state;
	struct guest_row rows[2];

	make_counters(s);
	ask_two_rows(s, 0, rows);
	remove_counters(s);
	assert_int_equal(rows[0].memory_bytes, 4096);
	assert_int_equal(rows[0].memory_peak, UINT64_MAX);
	assert_int_equal(rows[0].pids, 3);
	assert_int_equal(rows[0].cpu_usec, 17);
	assert_int_equal(rows[1].memory_bytes, UINT64_MAX);
	assert_int_equal(rows[1].memory_peak, UINT64_MAX);
	assert_int_equal(rows[1].pids, UINT64_MAX);
	assert_int_equal(rows[1].cpu_usec, UINT64_MAX);
}

static void reads_no_more_than_wanted(void **state)
{
	struct stage *s = *state;
	struct guest_row rows[2];

	make_counters(s);
	ask_two_rows(s, 1, rows);
	remove_counters(s);
	assert_int_equal(rows[0].memory_bytes, 4096);
	assert_int_equal(rows[0].pids, UINT64_MAX);
	assert_int_equal(rows[0].cpu_usec, UINT64_MAX);
}

#define STAGE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up_connected, tear_down)
#define WAIT_TEST(f)  cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(ends_when_none_is_wanted),
		WAIT_TEST(ends_with_the_daemon),
		WAIT_TEST(waits_on_when_others_are_faster),
		WAIT_TEST(holds_nothing_of_the_daemons),
		STAGE_TEST(takes_its_time_where_the_daemon_does),
		STAGE_TEST(kills_for_as_long_as_it_takes),
		STAGE_TEST(waits_for_no_request_for_ever),
		STAGE_TEST(ends_when_nobody_reads),
		STAGE_TEST(reads_the_counters_itself),
		STAGE_TEST(reads_no_more_than_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
