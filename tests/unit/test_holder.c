/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/daemon/holder.h"

#define MANY	 200
#define PATIENCE 5000 /* ms; used up only when something is wrong */

static struct holder start(void)
{
	struct holder h = { 0 };

	assert_int_equal(holder_start(&h), 0);
	assert_true(h.pid > 0);
	return h;
}

static int fds_of(pid_t pid)
{
	char path[64];
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int exists(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* It does what it has to in its own time: waits until it has closed everything, which is the last.
 */
static void settle(const struct holder *h)
{
	for (int ms = 0; fds_of(h->pid) != 0; ms++) {
		assert_true(ms < PATIENCE);
		usleep(1000);
	}
}

static void wait_for_death(const struct holder *h)
{
	for (int ms = 0; !holder_is_dead(h); ms++) {
		assert_true(ms < PATIENCE);
		usleep(1000);
	}
}

static void has_no_descriptors(void **state)
{
	int pair[2], before = open_fds();
	struct holder h;
	char byte;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	h = start();
	settle(&h);
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 0); /* nobody else holds the other end */
	close(pair[0]);
	assert_int_equal(open_fds(), before); /* it closed its own only */
	holder_stop(&h);
}

static void takes_no_signals_but_the_last(void **state)
{
	struct holder h = start();

	(void)state;
	settle(&h);
	for (int sig = 1; sig <= SIGRTMAX; sig++) /* without the two of the C library's own */
		if (sig != SIGKILL && sig != SIGSTOP && (sig < 32 || sig >= SIGRTMIN))
			kill(h.pid, sig);
	usleep(20000);
	assert_false(holder_is_dead(&h));
	holder_kill(&h);
	wait_for_death(&h);
	holder_stop(&h);
}

static void keeps_its_pid_until_it_is_stopped(void **state)
{
	struct holder h = start();
	pid_t pid = h.pid;

	(void)state;
	assert_false(holder_is_dead(&h));
	assert_true(exists(pid));
	holder_kill(&h);
	wait_for_death(&h);
	assert_true(holder_is_dead(&h)); /* looking does not reap it */
	assert_int_equal(h.pid, pid);
	assert_true(exists(pid));
	holder_kill(&h);
	holder_stop(&h);
	assert_false(exists(pid));
	assert_int_equal(h.pid, 0);
	assert_null(h.stack);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void stops_it_alive_too(void **state)
{
	struct holder h = start();
	pid_t pid = h.pid;

	(void)state;
	holder_stop(&h);
	assert_false(exists(pid));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* kill(0) would be for the whole process group: tried in one of its own. */
static void is_fine_when_there_is_none(void **state)
{
	pid_t pid = fork();
	int status = -1;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct holder none = { 0 };

		setpgid(0, 0);
		holder_kill(&none);
		holder_stop(&none);
		holder_stop(&none);
		_exit(holder_is_dead(&none) || none.pid != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Other children of the daemon's are none of its business. */
static void knows_its_own_death_only(void **state)
{
	struct holder h = start();
	pid_t other = fork();

	(void)state;
	assert_true(other >= 0);
	if (other == 0)
		_exit(7);
	usleep(20000);
	assert_false(holder_is_dead(&h));
	holder_stop(&h);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

static pid_t start_in_child(int how_to_die)
{
	pid_t holder = 0, pid;
	int said[2];

	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct holder h = start();

		if (how_to_die != 0)
			settle(&h);
		write_whole(said[1], &h.pid, sizeof(h.pid));
		if (how_to_die != 0)
			kill(getpid(), how_to_die);
		_exit(0); /* at once: the holder may not have come to anything yet */
	}
	close(said[1]);
	assert_int_equal(read(said[0], &holder, sizeof(holder)), sizeof(holder));
	close(said[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return holder;
}

static void dies_with_its_maker(void **state)
{
	static const int ends[] = { 0, SIGKILL, SIGTERM };

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	for (int i = 0; i < 20 * (int)ARRAY_SIZE(ends); i++) {
		pid_t pid = start_in_child(ends[i % (int)ARRAY_SIZE(ends)]);
		pid_t got = 0;

		for (int ms = 0; got == 0; ms++) {
			assert_true(ms < PATIENCE);
			got = waitpid(pid, NULL, WNOHANG);
			usleep(got == 0 ? 1000 : 0);
		}
		assert_int_equal(got, pid);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* Whoever is killed for memory in the scope takes all that share the holder's memory along. */
static void is_never_killed_for_memory(void **state)
{
	_cleanup_free_ char *unit = source_text("units/harpe-gov.service");

	(void)state;
	assert_mentions(unit, "\nOOMScoreAdjust=-1000\n", "", "");
}

static void holds_many_at_once(void **state)
{
	struct holder h[MANY];
	int before = open_fds(), canary = 4711;

	(void)state;
	for (int i = 0; i < MANY; i++)
		h[i] = start();
	for (int i = 0; i < MANY; i++)
		settle(&h[i]);
	for (int i = 0; i < MANY; i += 2)
		holder_stop(&h[i]);
	for (int i = 1; i < MANY; i += 2) {
		assert_false(holder_is_dead(&h[i]));
		holder_stop(&h[i]);
	}
	assert_int_equal(open_fds(), before);
	assert_int_equal(canary, 4711);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_no_descriptors),
		cmocka_unit_test(takes_no_signals_but_the_last),
		cmocka_unit_test(keeps_its_pid_until_it_is_stopped),
		cmocka_unit_test(stops_it_alive_too),
		cmocka_unit_test(is_fine_when_there_is_none),
		cmocka_unit_test(knows_its_own_death_only),
		cmocka_unit_test(dies_with_its_maker),
		cmocka_unit_test(is_never_killed_for_memory),
		cmocka_unit_test(holds_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
