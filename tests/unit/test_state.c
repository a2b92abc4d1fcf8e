/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/state.h"

#define PATH "/tmp/harpe-gov-state-XXXXXX"

struct place {
	char dir[32], path[40];
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	*state = p;
	strcpy(p->dir, PATH);
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/state", p->dir);
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	rmdir(p->dir);
	free(p);
	return 0;
}

/* In another process, as locks do not hold one's own back. */
static enum state read_state(const struct place *p, char *refusal, size_t size)
{
	int status, pipe_fds[2];
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char text[ERROR_TEXT_MAX];
		enum state s = state_read(p->path, text, sizeof(text));

		_exit(write(pipe_fds[1], text, sizeof(text)) == sizeof(text) ? (int)s : 100);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(read(pipe_fds[0], refusal, size), size);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return (enum state)WEXITSTATUS(status);
}

static void expect(const struct place *p, enum state wanted, const char *sentence)
{
	char refusal[ERROR_TEXT_MAX];

	assert_int_equal(read_state(p, refusal, sizeof(refusal)), wanted);
	assert_string_equal(refusal, sentence);
}

static void knows_nothing_without_a_file(void **state)
{
	expect(*state, STATE_UNKNOWN, "");
}

static void is_held_as_long_as_the_daemon_lives(void **state)
{
	struct place *p = *state;
	struct stat st;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int fd = state_hold(p->path, NULL);

		if (fd < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	expect(p, STATE_SERVES, "");
	state_refuse(p->path, "a second one, started by hand");
	expect(p, STATE_SERVES, "");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect(p, STATE_ABSENT, "");
}

static void keeps_a_refusal_until_the_next_start(void **state)
{
	struct place *p = *state;
	int before = open_fds(), fd;

	state_refuse(p->path, "cgroup v2 needed");
	expect(p, STATE_ABSENT, "cgroup v2 needed");
	state_refuse(p->path, "line\nfeed");
	expect(p, STATE_ABSENT, "line\\x0afeed");
	fd = state_hold(p->path, NULL);
	assert_true(fd >= 0);
	expect(p, STATE_SERVES, "");
	close(fd);
	assert_int_equal(open_fds(), before);
}

/* Who may only read can take no lock that a daemon would meet. */
static void is_not_hindered_by_a_reader(void **state)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct place *p = *state;
	char leftover[64];
	int old, fd;

	state_refuse(p->path, "");
	old = open(p->path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fcntl(old, F_OFD_SETLK, &lock), 0);
	expect(p, STATE_ABSENT, "");
	snprintf(leftover, sizeof(leftover), "%s.new", p->path);
	assert_int_equal(symlink("/dev/null", leftover), 0);
	fd = state_hold(p->path, NULL);
	assert_true(fd >= 0);
	expect(p, STATE_SERVES, "");
	close(fd);
	close(old);
}

static void says_where_it_cannot_write(void **state)
{
	struct error e = ERROR_NULL;

	(void)state;
	assert_true(state_hold("/nowhere/state", &e) < 0);
	assert_mentions(e.text, "/nowhere/state: cannot be written", "", "");
	state_refuse("/nowhere/state", "nobody reads this");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(knows_nothing_without_a_file),
		TEST(is_held_as_long_as_the_daemon_lives),
		TEST(keeps_a_refusal_until_the_next_start),
		TEST(is_not_hindered_by_a_reader),
		TEST(says_where_it_cannot_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
