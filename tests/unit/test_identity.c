/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/daemon/identity.h"

#define FIRST UINT32_C(3100000000) /* nobody's; test_as_root.c has others */
#define COUNT 5
#define STEPS 2000

static struct identity_pool *new_pool(uint32_t first, uint32_t count)
{
	struct identity_pool *p = NULL;

	assert_int_equal(identity_pool_new(first, count, &p), 0);
	assert_non_null(p);
	return p;
}

static uint32_t lease(struct identity_pool *p)
{
	struct error e = ERROR_NULL;
	uint32_t uid = 0;

	if (identity_lease(p, &uid, &e) < 0)
		fail_msg("%s", e.text);
	return uid;
}

static void no_one_held(uint32_t uid, const char *why)
{
	fail_msg("uid %u is held: %s", uid, why);
}

static void verify(struct identity_pool *p)
{
	struct error e = ERROR_NULL;

	if (identity_verify(p, no_one_held, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(identity_n_quarantined(p), 0);
}

static struct identity_pool *new_clean_pool(void)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);

	verify(p);
	return p;
}

static void assert_exhausted(struct identity_pool *p)
{
	struct error e = ERROR_NULL;
	uint32_t uid = 4711;

	assert_int_equal(identity_n_free(p), 0);
	assert_int_equal(identity_lease(p, &uid, &e), -EUSERS);
	assert_string_equal(e.text, "no uid of the pool's 5 is free; wait for a guest to end, "
				    "use --wait, or raise [pool] count");
	assert_int_equal(uid, 4711);
}

static void starts_in_quarantine(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);

	(void)state;
	assert_int_equal(identity_n_quarantined(p), COUNT);
	assert_exhausted(p);
	verify(p);
	assert_int_equal(identity_n_free(p), COUNT);
	identity_pool_free(p);
}

static void leases_until_all_are_out(void **state)
{
	struct identity_pool *p = new_clean_pool();

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(identity_n_free(p), COUNT - i);
		assert_int_equal(lease(p), FIRST + i);
	}
	assert_exhausted(p);
	identity_return(p, FIRST + 3);
	assert_int_equal(identity_n_quarantined(p), 1);
	assert_exhausted(p);
	verify(p);
	assert_int_equal(identity_n_free(p), 1);
	assert_int_equal(lease(p), FIRST + 3);
	assert_exhausted(p);
	identity_pool_free(p);
	identity_pool_free(NULL);
}

static void takes_the_longest_unused_first(void **state)
{
	static const uint32_t back[] = { FIRST + 2, FIRST, FIRST + 1 };
	struct identity_pool *p = new_clean_pool();

	(void)state;
	for (int i = 0; i < 3; i++)
		lease(p);
	for (size_t i = 0; i < ARRAY_SIZE(back); i++) {
		identity_return(p, back[i]);
		verify(p);
	}
	for (uint32_t i = 3; i < COUNT; i++)
		assert_int_equal(lease(p), FIRST + i);
	for (size_t i = 0; i < ARRAY_SIZE(back); i++)
		assert_int_equal(lease(p), back[i]);
	identity_pool_free(p);
}

/* Any order of leases, returns and looks: no uid is ever out twice, and none is lost. */
static void never_leases_a_uid_twice(void **state)
{
	struct identity_pool *p = new_clean_pool();
	uint32_t out[COUNT], n = 0;

	(void)state;
	srandom(1);
	for (int step = 0; step < STEPS; step++) {
		assert_int_equal(identity_n_free(p) + identity_n_quarantined(p) + n, COUNT);
		if (random() % 32 == 0)
			verify(p);
		if (identity_n_free(p) == 0 || (n > 0 && random() % 2)) {
			uint32_t i = n > 0 ? (uint32_t)random() % n : 0;

			if (n == 0)
				continue;
			identity_return(p, out[i]);
			out[i] = out[--n];
			continue;
		}
		out[n] = lease(p);
		assert_in_range(out[n], FIRST, FIRST + COUNT - 1);
		for (uint32_t i = 0; i < n; i++)
			assert_int_not_equal(out[i], out[n]);
		n++;
	}
	identity_pool_free(p);
}

/* ---- uids that somebody has ---- */

static uint32_t last_held, n_held;

static void note_held(uint32_t uid, const char *why)
{
	assert_string_equal(why, "a process has it");
	last_held = uid;
	n_held++;
}

static void leaves_no_descriptor(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);
	int before = open_fds();

	(void)state;
	verify(p);
	assert_int_equal(open_fds(), before);
	identity_pool_free(p);
}

/* This very process is busy. */
static void holds_its_own_uid(void **state)
{
	uint32_t own = geteuid(), uid;
	struct identity_pool *p = new_pool(own, 1);
	struct error e = ERROR_NULL;

	(void)state;
	n_held = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(identity_verify(p, note_held, &e), 0);
		assert_int_equal(n_held, 1); /* named once */
		assert_int_equal(last_held, own);
		assert_int_equal(identity_n_quarantined(p), 1);
		assert_int_equal(identity_lease(p, &uid, &e), -EUSERS);
	}
	identity_pool_free(p);
}

/* A process that has @uid, until the test kills it; 0 without the right to make one. */
static pid_t start_process(uint32_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(1);
		close(ready[0]);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

/* Also a zombie has it. */
static void holds_a_returned_one_while_a_process_has_it(void **state)
{
	struct identity_pool *p = new_clean_pool();
	uint32_t uid = lease(p);
	pid_t pid = start_process(uid);

	(void)state;
	if (pid == 0)
		skip();
	identity_return(p, uid);
	n_held = 0;
	identity_verify_returned(p, note_held);
	assert_int_equal(n_held, 1);
	assert_int_equal(last_held, uid);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	identity_verify_returned(p, note_held);
	assert_int_equal(identity_n_quarantined(p), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	identity_verify_returned(p, note_held);
	assert_int_equal(identity_n_quarantined(p), 0);
	assert_int_equal(n_held, 1);
	identity_pool_free(p);
}

/* What was there before the guests is looked for everywhere, not only as a real uid. */
static void frees_only_what_guests_returned(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);

	(void)state;
	identity_verify_returned(p, no_one_held);
	assert_int_equal(identity_n_quarantined(p), COUNT);
	verify(p);
	identity_return(p, lease(p));
	identity_verify_returned(p, no_one_held);
	assert_int_equal(identity_n_free(p), COUNT);
	identity_pool_free(p);
}

/* ---- the kernel's words ---- */

#define FOUND_MAX 16

struct found {
	uint32_t n, uids[FOUND_MAX];
};

static void note_found(void *userdata, uint32_t uid)
{
	struct found *f = userdata;

	assert_true(f->n < FOUND_MAX);
	f->uids[f->n++] = uid;
}

static void assert_found(const struct found *got, uint32_t n, const uint32_t uids[])
{
	assert_int_equal(got->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got->uids[i], uids[i]);
}

static const struct {
	const char *status;
	uint32_t n, uids[4];
} statuses[] = {
	{ "Name:\tsh\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", 4, { 1, 2, 3, 4 } },
	{ "Name:\tsh\nUid:\t0\t0\t3000000000\t4294967294\nGid:\t5\t6\t7\t8\n",
	  4,
	  { 0, 0, 3000000000, 4294967294 } },
	{ "Name:\tUid:\nUid:\t1\t1\t1\t2\n", 4, { 1, 1, 1, 2 } },
	{ "Name:\tUid:\t9\nState:\tUid:\t9\nGid:\t9\t9\t9\t9\n", 0, {} },
	{ "Name:\tsh\nGid:\t5\t6\t7\t8\nGroups:\t9\n", 0, {} },
	{ "Name:\tsh\nUid:\t1\t2\t3\t4", 4, { 1, 2, 3, 4 } },
	{ "Name:\tsh\nUid:\t1\t2", 2, { 1, 2 } }, /* cut */
	{ "Name:\tsh\nUid:", 0, {} },
	{ "Name:\tsh\nUid:\tx\t2\n", 0, {} },
	{ "Name:\tsh\nFUid:\t9\nUids:\t9\n", 0, {} },
	{ "", 0, {} },
};

static void reads_all_four_uids(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct found got = { 0 };

		identity_parse_status(statuses[i].status, note_found, &got);
		assert_found(&got, statuses[i].n, statuses[i].uids);
	}
}

static void parse_key_users(const char *text, struct found *got)
{
	FILE *file = fmemopen((void *)text, strlen(text), "re");

	assert_non_null(file);
	*got = (struct found){ 0 };
	identity_parse_key_users(file, note_found, got);
	fclose(file);
}

static void reads_who_owns_keys(void **state)
{
	static const uint32_t owners[] = { 0, 1000, 65534, 3000000000, 4294967294 };
	struct found got;

	(void)state;
	parse_key_users("    0:    24 23/23 2/1000000 40/25000000\n"
			" 1000:     3 2/2 2/200 40/20000\n"
			"90000:     1 0/0 0/200 0/20000\n" /* had some */
			"65534:     1 1/1 1/200 9/20000\n"
			"3000000000:     1 1/0 1/200 9/20000\n"
			"4294967294:     1 12/0 1/200 9/20000\n",
			&got);
	assert_found(&got, ARRAY_SIZE(owners), owners);
	parse_key_users("\n", &got);
	assert_int_equal(got.n, 0);
	parse_key_users("uid: 1 2/3\n90000: x 1/1\n90000 1 1/1\n90000: 1\n", &got);
	assert_int_equal(got.n, 0);
}

/* The two parsers against the kernel that runs. */
static void finds_itself(void **state)
{
	char status[8192];
	struct found got = { 0 };
	const uint32_t own[] = { getuid(), geteuid(), geteuid(), geteuid() };

	(void)state;
	assert_true(read_file_at(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0);
	identity_parse_status(status, note_found, &got);
	assert_found(&got, ARRAY_SIZE(own), own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_in_quarantine),
		cmocka_unit_test(leases_until_all_are_out),
		cmocka_unit_test(takes_the_longest_unused_first),
		cmocka_unit_test(never_leases_a_uid_twice),
		cmocka_unit_test(leaves_no_descriptor),
		cmocka_unit_test(holds_its_own_uid),
		cmocka_unit_test(holds_a_returned_one_while_a_process_has_it),
		cmocka_unit_test(frees_only_what_guests_returned),
		cmocka_unit_test(reads_all_four_uids),
		cmocka_unit_test(reads_who_owns_keys),
		cmocka_unit_test(finds_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
