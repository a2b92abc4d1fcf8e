/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/request.h"
#include "governor/supervisor/deadline.h"

#define PATIENCE 20000 /* ms */

/* Hangs as a supervisor may on what a peer sent. The deadline is over in one second, and must have
 * been set to its own time before. */
static void hang(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) < 0 || alarm(1) != DEADLINE_SEC || read(ends[0], &byte, 1) < 0)
		_exit(3);
	_exit(4);
}

static void is_late(int client)
{
	deadline_prepare(client);
	deadline_begin();
	hang();
}

static void is_late_and_silent(int client)
{
	deadline_prepare(client);
	deadline_silence();
	deadline_begin();
	hang();
}

/* The second time counts as well. */
static void is_late_again(int client)
{
	deadline_prepare(client);
	deadline_begin();
	deadline_end();
	deadline_begin();
	hang();
}

static void is_in_time(int client)
{
	deadline_prepare(client);
	if (alarm(0) != 0) /* nothing runs before it begins */
		_exit(3);
	deadline_begin();
	deadline_end();
	_exit(alarm(0) == 0 ? 42 : 3);
}

/* A peer that reads nothing must not hold it up. */
static void is_late_for_a_deaf_peer(int client)
{
	char junk[1024] = { 0 };

	while (send(client, junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
	is_late(client);
}

static void is_late_for_a_dead_peer(int client)
{
	shutdown(client, SHUT_RDWR);
	is_late(client);
}

/* Runs @f in a process of its own; what it sent is in @buf. Returns its exit status. */
static int play(void (*f)(int client), char buf[WIRE_SIZE_MAX], ssize_t *ret_len)
{
	int pair[2], status = -1;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(pair[0]);
		f(pair[1]);
		_exit(5);
	}
	close(pair[1]);
	assert_int_equal(poll(&(struct pollfd){ .fd = pair[0], .events = POLLIN }, 1, PATIENCE), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*ret_len = recv(pair[0], buf, WIRE_SIZE_MAX, 0);
	if (*ret_len > 0 && f != is_late_for_a_deaf_peer)
		assert_int_equal(recv(pair[0], (char[1]){ 0 }, 1, 0), 0); /* said once */
	close(pair[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void tells_the_peer_why(void **state)
{
	static void (*const late[])(int client) = { is_late, is_late_again };
	WIRE_BUFFER(buf);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		struct answer a = { .count = 4711 };
		struct error e = ERROR_NULL;
		ssize_t len;

		assert_int_equal(play(late[i], buf, &len), 1);
		assert_true(len > 0);
		assert_int_equal(wire_type(buf, (size_t)len, &e), WIRE_REFUSED);
		if (wire_decode(answer_fields, answer_n_fields, buf, (size_t)len, &a, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(a.count, 0);
		assert_string_equal(a.text, "the request, or a descriptor that came with it, took "
					    "more than 5 s to look at");
	}
}

static void says_nothing_once_it_is_silenced(void **state)
{
	WIRE_BUFFER(buf);
	ssize_t len;

	(void)state;
	assert_int_equal(play(is_late_and_silent, buf, &len), 1);
	assert_int_equal(len, 0);
}

static void does_nothing_in_time(void **state)
{
	WIRE_BUFFER(buf);
	ssize_t len;

	(void)state;
	assert_int_equal(play(is_in_time, buf, &len), 42);
	assert_int_equal(len, 0);
}

static void does_not_hang_on_its_peer(void **state)
{
	WIRE_BUFFER(buf);
	ssize_t len;

	(void)state;
	assert_int_equal(play(is_late_for_a_deaf_peer, buf, &len), 1);
	assert_int_equal(len, 1024);
	assert_int_equal(play(is_late_for_a_dead_peer, buf, &len), 1);
	assert_int_equal(len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_peer_why),
		cmocka_unit_test(says_nothing_once_it_is_silenced),
		cmocka_unit_test(does_nothing_in_time),
		cmocka_unit_test(does_not_hang_on_its_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
