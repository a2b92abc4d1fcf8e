/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier daemon left, in directories of the test's own that stand for its cgroups. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "governor/daemon/sweep.h"
#include "governor/supervisor/ledger.h"

#define ID "0123456789abcdef"

static char root[40], slice[64], ledger[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/harpe-gov-test-sweep-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(slice, sizeof(slice), "%s/harpe.slice", root);
	snprintf(ledger, sizeof(ledger), "%s/runs", root);
	return mkdir(slice, 0700) | ledger_open(ledger, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes the directory @below in harpe.slice, and a scope in it. */
static void make_scope(const char *below, const char *scope)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "mkdir -p %s/%s/%s/guest && cd %s/%s/%s && touch cgroup.kill guest/memory.peak",
		 slice, below, scope, slice, below, scope);
	assert_int_equal(system(command), 0);
}

static void put(const char *below, const char *file, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", slice, below, file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, text, strlen(text)), 0);
	close(fd);
}

static bool was_killed(const char *scope)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/cgroup.kill", slice, scope);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size > 0;
}

static struct report found;

static void on_found(const struct report *r)
{
	found = *r;
}

static void settle(void)
{
	struct report r;

	report_clear(&r);
	strcpy(r.id, ID);
	strcpy(r.profile, "web");
	strcpy(r.scope, "harpe-" ID ".scope");
	assert_int_equal(ledger_note(ledger, &r, NULL), 0);
	report_clear(&found);
	assert_int_equal(sweep_ledger(slice, ledger, on_found, NULL), 0);
	assert_string_equal(found.id, ID);
}

static void counters_are_found_in_any_part(void **state)
{
	static const char *const parts[] = { "harpe-web.slice", "harpe-web.slice/harpe-web-1.slice",
					     "harpe-web.slice/harpe-web-63.slice" };
	char scope[128], path[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(scope, sizeof(scope), "%s/harpe-" ID ".scope", parts[i]);
		make_scope(parts[i], "harpe-" ID ".scope");
		put(scope, "guest/memory.peak", "4096\n");
		settle();
		assert_int_equal(found.memory_peak, 4096);
		snprintf(path, sizeof(path), "%s/%s", slice, scope);
		assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	}
	settle();
	assert_int_equal(found.memory_peak, REPORT_UNKNOWN);
}

/* Systemd, which takes them away one after the other. */
static void *take_away(void *unused)
{
	static const char *const scopes[] = { "harpe-drop.slice/harpe-pin-drop-1-1.scope",
					      "harpe-web.slice/harpe-web-1.slice/harpe-02.scope",
					      "harpe-web.slice/harpe-01.scope" };

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		char path[256];

		while (!was_killed(scopes[i]))
			usleep(10000);
		snprintf(path, sizeof(path), "%s/%s", slice, scopes[i]);
		nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	return NULL;
}

static void kills_in_all_parts_and_nowhere_else(void **state)
{
	struct error e = ERROR_NULL;
	pthread_t systemd;

	(void)state;
	make_scope("harpe-drop.slice", "harpe-pin-drop-1-1.scope");
	make_scope("harpe-web.slice", "harpe-01.scope");
	make_scope("harpe-web.slice/harpe-web-1.slice", "harpe-02.scope");
	make_scope("harpe-web.slice/harpe-web-1.slice", "other.scope");
	make_scope("harpe-web.slice/other.scope", "harpe-03.scope");
	assert_int_equal(pthread_create(&systemd, NULL, take_away, NULL), 0);
	if (sweep_slices(slice, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(pthread_join(systemd, NULL), 0);
	assert_false(was_killed("harpe-web.slice/harpe-web-1.slice/other.scope"));
	assert_false(was_killed("harpe-web.slice/other.scope/harpe-03.scope"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counters_are_found_in_any_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kills_in_all_parts_and_nowhere_else, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
