/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/supervisor/ledger.h"

#define ID "0123456789abcdef"

struct ledger {
	char parent[40], path[64];
	size_t n;
	struct report found;
};

static int set_up(void **state)
{
	struct ledger *l = calloc(1, sizeof(*l));
	struct stat st;

	strcpy(l->parent, "/tmp/harpe-gov-test-ledger-XXXXXX");
	assert_non_null(mkdtemp(l->parent));
	snprintf(l->path, sizeof(l->path), "%s/runs", l->parent);
	assert_int_equal(ledger_open(l->path, NULL), 0);
	assert_int_equal(ledger_open(l->path, NULL), 0); /* as it was */
	assert_int_equal(stat(l->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	*state = l;
	return 0;
}

/* The directory is empty: rmdir(2) says so. */
static int tear_down(void **state)
{
	struct ledger *l = *state;
	int r = rmdir(l->path) | rmdir(l->parent);

	free(l);
	return r;
}

static void on_found(void *userdata, struct report *r)
{
	struct ledger *l = userdata;

	l->n++;
	l->found = *r;
}

static size_t settle(struct ledger *l)
{
	struct error e = ERROR_NULL;

	l->n = 0;
	if (ledger_settle(l->path, on_found, l, &e) < 0)
		fail_msg("%s", e.text);
	return l->n;
}

static void keeps_what_is_known(void **state)
{
	struct ledger *l = *state;
	struct report r;

	report_clear(&r);
	strcpy(r.id, ID);
	strcpy(r.name, "job");
	r.uid = 90001;
	r.asked.value[LIMIT_PIDS] = 7;
	strcpy(r.origins.text[LIMIT_PIDS], "request");
	assert_int_equal(ledger_note(l->path, &r, NULL), 0);
	r.started_usec = 1;
	assert_int_equal(ledger_note(l->path, &r, NULL), 0); /* instead of the first */
	assert_int_equal(settle(l), 1);
	assert_memory_equal(&l->found, &r, sizeof(r));
	assert_int_equal(settle(l), 0);
}

static void forgets(void **state)
{
	struct ledger *l = *state;
	struct report r;

	report_clear(&r);
	strcpy(r.id, ID);
	assert_int_equal(ledger_note(l->path, &r, NULL), 0);
	ledger_forget(l->path, ID);
	ledger_forget(l->path, ID);
	assert_int_equal(settle(l), 0);
}

/* In a child that may write no more than 8 bytes of a file; its wait status. */
static int write_half(const struct ledger *l, const struct report *r, void (*on_limit)(int))
{
	const struct rlimit limit = { .rlim_cur = 8, .rlim_max = 8 };
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGXFSZ, on_limit);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(-ledger_note(l->path, r, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_killed_half_way(const struct ledger *l, const struct report *r)
{
	int status = write_half(l, r, SIG_DFL);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

static void survives_its_writer(void **state)
{
	struct ledger *l = *state;
	struct report r, second;

	report_clear(&r);
	strcpy(r.id, ID);
	strcpy(r.name, "job");
	assert_int_equal(ledger_note(l->path, &r, NULL), 0);
	second = r;
	second.started_usec = 1;
	assert_killed_half_way(l, &second);
	assert_int_equal(settle(l), 1);
	assert_memory_equal(&l->found, &r, sizeof(r));
	assert_killed_half_way(l, &second); /* of a first entry nothing is to be read */
	assert_int_equal(settle(l), 0);
}

/* In a process of its own: the exit status says what went wrong. */
static int note_twice_in_a_page(struct ledger *l, struct report *r)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("test", l->path, "tmpfs", 0, "size=4096") < 0)
		return 1;
	if (ledger_note(l->path, r, NULL) < 0)
		return 2;
	r->started_usec = 1;
	if (ledger_note(l->path, r, NULL) < 0)
		return 3;
	if (settle(l) != 1 || memcmp(&l->found, r, sizeof(*r)) != 0)
		return 4;
	return umount(l->path) == 0 ? 0 : 5;
}

static void needs_no_room_for_two(void **state)
{
	struct ledger *l = *state;
	struct report r;
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	report_clear(&r);
	strcpy(r.id, ID);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(note_twice_in_a_page(l, &r));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What is no longer true does not stay, and nothing else does. */
static void leaves_nothing_untrue(void **state)
{
	struct ledger *l = *state;
	char unfinished[128];
	struct report r;
	int status;

	report_clear(&r);
	strcpy(r.id, ID);
	strcpy(r.name, "job");
	snprintf(unfinished, sizeof(unfinished), "%s/." ID, l->path);
	assert_int_equal(ledger_note(l->path, &r, NULL), 0);
	status = write_half(l, &r, SIG_IGN);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EFBIG);
	assert_true(access(unfinished, F_OK) < 0);
	assert_int_equal(settle(l), 1);
	assert_string_equal(l->found.id, ID);
	assert_string_equal(l->found.name, "");
}

static void put(const struct ledger *l, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", l->path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, text, strlen(text)), 0);
	close(fd);
}

/* Cut short, or of another version: a run ended all the same. */
static void knows_the_id_of_what_it_cannot_read(void **state)
{
	static const char *const texts[] = { "", "x", "\x10\0\0\0 nothing of ours" };
	struct ledger *l = *state;
	struct report want;

	report_clear(&want);
	strcpy(want.id, ID);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put(l, ID, texts[i]);
		assert_int_equal(settle(l), 1);
		assert_memory_equal(&l->found, &want, sizeof(want));
	}
}

static void leaves_other_files_alone(void **state)
{
	static const char *const names[] = { "README", "0123456789ABCDEF", "0123456789abcdef0",
					     ".README", ".0123456789abcdef0" };
	struct ledger *l = *state;
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put(l, names[i], "");
	assert_int_equal(settle(l), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", l->path, names[i]);
		assert_int_equal(unlink(path), 0);
	}
}

static void complains(void **state)
{
	struct error e = ERROR_NULL;
	struct report r;

	(void)state;
	report_clear(&r);
	strcpy(r.id, ID);
	assert_int_equal(ledger_note("/nowhere", &r, &e), -ENOENT);
	assert_mentions(e.text, "/nowhere/", ID, ": cannot be written");
	assert_int_equal(ledger_settle("/nowhere", on_found, NULL, &e), -ENOENT);
	assert_int_equal(ledger_open("/nowhere/runs", &e), -ENOENT);
	assert_mentions(e.text, "/nowhere/runs: cannot be made", "", "");
}

#define ledger_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ledger_test(keeps_what_is_known),
		ledger_test(survives_its_writer),
		ledger_test(needs_no_room_for_two),
		ledger_test(leaves_nothing_untrue),
		ledger_test(forgets),
		ledger_test(knows_the_id_of_what_it_cannot_read),
		ledger_test(leaves_other_files_alone),
		cmocka_unit_test(complains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
