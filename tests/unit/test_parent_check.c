/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "governor/supervisor/parent_check.h"

static int pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	assert_true(fd >= 0);
	return fd;
}

static void takes_a_pidfd(void **state)
{
	_cleanup_close_ int fd = pidfd_of(getpid());

	(void)state;
	assert_int_equal(parent_check(fd, NULL), 0);
}

static void knows_the_dead(void **state)
{
	pid_t pid = fork();
	_cleanup_close_ int fd = -1;

	(void)state;
	if (pid == 0)
		pause();
	fd = pidfd_of(pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(parent_check(fd, NULL), 1);
}

static void refuses_all_else(void **state)
{
	int pipes[2], fds[] = {
		open("/proc/self/status", O_RDONLY | O_CLOEXEC),
		open("/proc/self", O_PATH | O_CLOEXEC),
		open("/dev/null", O_RDWR | O_CLOEXEC),
		memfd_create("[pidfd]", MFD_CLOEXEC),
		eventfd(0, EFD_CLOEXEC),
		epoll_create1(EPOLL_CLOEXEC),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct error e = ERROR_NULL;

		assert_true(fds[i] >= 0);
		assert_int_equal(parent_check(fds[i], &e), -EINVAL);
		assert_string_equal(e.text, "what came for the caller's parent is no pidfd");
		close(fds[i]);
	}
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(parent_check(pipes[0], NULL), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(parent_check(pipes[0], NULL), -EINVAL);
}

static void reads_fdinfo(void **state)
{
	(void)state;
	assert_int_equal(parent_check_text("pos:\t0\nPid:\t-1\nNSpid:\t-1\n", NULL), 1);
	assert_int_equal(parent_check_text("pos:\t0\nPid:\t17\nNSpid:\t17\n", NULL), 0);
	assert_int_equal(parent_check_text("pos:\t0\nPid:\t0\nNSpid:\t0\n", NULL), 0);
	assert_int_equal(parent_check_text("pos:\t0\nPid:\t-17\n", NULL), 0);
	assert_int_equal(parent_check_text("pos:\t0\nNSpid:\t17\n", NULL), -EINVAL);
	assert_int_equal(parent_check_text("pos:\t0\nflags:\tPid:\t17\n", NULL), -EINVAL);
	assert_int_equal(parent_check_text("", NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_pidfd),
		cmocka_unit_test(knows_the_dead),
		cmocka_unit_test(refuses_all_else),
		cmocka_unit_test(reads_fdinfo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
