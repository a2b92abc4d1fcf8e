/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A supervisor as a program of its own, with the daemon played by the test. It needs root, who
 * alone can empty the bounding set; HARPE_TESTS_MUST_RUN=1 makes the lack of that a failure.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/daemon/launch.h"
#include "governor/guest/confine.h"
#include "governor/supervisor/means.h"
#include "governor/supervisor/pair.h"

static struct sock_filter code[] = { { .code = 6, .k = 0x7fff0000 }, { .code = 6, .k = 0 } };
static const struct sock_fprog filters[CONFINE_PROGRAMS] = { { .len = 2, .filter = code },
							     { .len = 0 },
							     { .len = 1, .filter = code + 1 } };
static const struct view_base view = { .n_places = 1,
				       .n_built_in = 1,
				       .places = { { .path = "/usr" } } };
static const struct guest_means means = { .version = 7, .filters = filters, .view = &view };

static int store(void)
{
	struct error e = ERROR_NULL;
	int fd = means_store(&means, &e);

	if (fd < 0)
		fail_msg("%s", e.text);
	return fd;
}

static void maps_what_was_stored(void **state)
{
	struct guest_means got = { .ground = 4711 };
	struct error e = ERROR_NULL;
	int fd = store();

	(void)state;
	assert_int_equal(means_map(fd, &got, &e), 0);
	assert_true(got.version == 7 && got.ground == 4711);
	assert_memory_equal(got.view, &view, sizeof(view));
	for (size_t i = 0; i < CONFINE_PROGRAMS; i++) {
		assert_int_equal(got.filters[i].len, filters[i].len);
		if (filters[i].len)
			assert_memory_equal(got.filters[i].filter, filters[i].filter,
					    filters[i].len * sizeof(code[0]));
	}
	assert_int_equal(write(fd, "x", 1), -1); /* nobody can change it any more */
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
}

static void maps_nothing_else(void **state)
{
	struct guest_means got = { 0 };
	struct error e = ERROR_NULL;
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(means_map(-1, &got, &e), -EPROTO);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(means_map(fd, &got, &e), -EPROTO); /* not sealed */
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL),
		0);
	assert_int_equal(means_map(fd, &got, &e), -EPROTO);
	assert_mentions(e.text, "of another version", "", "");
	close(fd);
}

/* ---- the program ---- */

struct stage {
	pid_t supervisor;
	int daemon, listener;
	struct sockaddr_un address;
};

static void start(struct stage *s, int program)
{
	socklen_t size = sizeof(s->address);
	int pair[2], stored = store();
	struct launch launch;

	*s = (struct stage){ .address.sun_family = AF_UNIX };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s->daemon = pair[0];
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&s->address, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&s->address, &size), 0);
	assert_int_equal(listen(s->listener, 4), 0);
	launch = (struct launch){ program, pair[1], pair[1], s->listener, stored };
	s->supervisor = launch_supervisor(&launch);
	assert_true(s->supervisor > 0);
	close(pair[1]);
	close(stored);
}

static void end(struct stage *s, int exit_status)
{
	int status;

	close(s->daemon);
	close(s->listener);
	assert_int_equal(waitpid(s->supervisor, &status, 0), s->supervisor);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), exit_status);
}

static int open_program(void)
{
	const char *path = getenv("HARPE_GOV_SUPERVISOR");
	int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;

	assert_true(fd >= 0);
	return fd;
}

static void assert_bare(pid_t pid)
{
	char path[64], status[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_true(read_file_at(AT_FDCWD, path, status, sizeof(status)) >= 0);
	assert_mentions(status, "\nCapBnd:\t0000000000000000\n", "", "");
	assert_mentions(status, "Name:\tharpe-gov-super\n", "", "");
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	assert_int_equal(read_file_at(AT_FDCWD, path, status, sizeof(status)), 0);
}

/* It takes the connection, and can hand nothing of its own on to who is made from it. */
static void serves(void **state)
{
	int before = open_fds(), program = open_program(), client;
	struct pair_ask ask;
	struct stage s;

	(void)state;
	if (geteuid() != 0) {
		if (getenv("HARPE_TESTS_MUST_RUN"))
			fail_msg("root is needed");
		skip();
	}
	start(&s, program);
	client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&s.address,
				 (socklen_t)(sizeof(sa_family_t) + 6)),
			 0);
	assert_int_equal(pair_receive(s.daemon, &ask, sizeof(ask)), 0);
	assert_true(ask.verb == PAIR_HELLO && ask.caller.uid == geteuid());
	assert_bare(s.supervisor);
	end(&s, 0);
	close(client);
	close(program);
	assert_int_equal(open_fds(), before);
}

static void says_that_there_is_no_program(void **state)
{
	int program = open("/dev/null", O_PATH | O_CLOEXEC), pair[2], before;
	struct launch launch;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = open_fds();
	launch = (struct launch){ program, pair[0], pair[0], pair[1], pair[1] };
	assert_int_equal(launch_supervisor(&launch), -EACCES);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
	assert_int_equal(open_fds(), before);
	close(program);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_what_was_stored),
		cmocka_unit_test(maps_nothing_else),
		cmocka_unit_test(serves),
		cmocka_unit_test(says_that_there_is_no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
