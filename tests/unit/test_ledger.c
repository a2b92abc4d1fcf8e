/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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

/* Killed by the kernel between two halves of an entry. */
static void write_half(const struct ledger *l, const struct report *r)
{
	const struct rlimit limit = { .rlim_cur = 8, .rlim_max = 8 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		setrlimit(RLIMIT_FSIZE, &limit);
		ledger_note(l->path, r, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
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
	write_half(l, &second);
	assert_int_equal(settle(l), 1);
	assert_memory_equal(&l->found, &r, sizeof(r));
	write_half(l, &second); /* of a first entry nothing is to be read */
	assert_int_equal(settle(l), 0);
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
	static const char *const names[] = { "README", "0123456789ABCDEF", "0123456789abcdef0" };
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
		ledger_test(forgets),
		ledger_test(knows_the_id_of_what_it_cannot_read),
		ledger_test(leaves_other_files_alone),
		cmocka_unit_test(complains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
