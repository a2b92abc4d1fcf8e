/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "governor/identity.h"

#define FIRST UINT32_C(3000000000) /* nobody's */
#define COUNT 5
#define STEPS 20000

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

static void assert_exhausted(struct identity_pool *p)
{
	struct error e = ERROR_NULL;
	uint32_t uid = 4711;

	assert_int_equal(identity_lease(p, &uid, &e), -EUSERS);
	assert_string_equal(e.text, "all 5 uids of the pool are in use; wait for a guest to end, "
				    "or raise [pool] count");
	assert_int_equal(uid, 4711);
}

static void leases_until_all_are_out(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(identity_leased(p), i);
		assert_int_equal(lease(p), FIRST + i);
	}
	assert_exhausted(p);
	assert_int_equal(identity_leased(p), COUNT);
	identity_return(p, FIRST + 3);
	assert_int_equal(identity_leased(p), COUNT - 1);
	assert_int_equal(lease(p), FIRST + 3);
	assert_exhausted(p);
	identity_pool_free(p);
	identity_pool_free(NULL);
}

static void takes_the_longest_unused_first(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);

	(void)state;
	for (int i = 0; i < 3; i++)
		lease(p);
	identity_return(p, FIRST + 2);
	identity_return(p, FIRST);
	identity_return(p, FIRST + 1);
	for (uint32_t i = 3; i < COUNT; i++)
		assert_int_equal(lease(p), FIRST + i);
	assert_int_equal(lease(p), FIRST + 2);
	assert_int_equal(lease(p), FIRST);
	assert_int_equal(lease(p), FIRST + 1);
	identity_pool_free(p);
}

/* Any order of leases and returns: no uid is ever out twice, and none is lost. */
static void never_leases_a_uid_twice(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);
	uint32_t out[COUNT], n = 0;

	(void)state;
	srandom(1);
	for (int step = 0; step < STEPS; step++) {
		if (n == COUNT || (n > 0 && random() % 2)) {
			uint32_t i = (uint32_t)random() % n;

			identity_return(p, out[i]);
			out[i] = out[--n];
			continue;
		}
		out[n] = lease(p);
		assert_in_range(out[n], FIRST, FIRST + COUNT - 1);
		for (uint32_t i = 0; i < n; i++)
			assert_int_not_equal(out[i], out[n]);
		assert_int_equal(identity_leased(p), ++n);
	}
	identity_pool_free(p);
}

/* ---- uids that somebody has ---- */

static void holds_nothing_back_when_nobody_is_there(void **state)
{
	struct identity_pool *p = new_pool(FIRST, COUNT);
	struct error e = ERROR_NULL;
	int before = open_fds();

	(void)state;
	assert_int_equal(identity_hold_back_busy(p, &e), 0);
	assert_int_equal(open_fds(), before);
	assert_int_equal(identity_leased(p), 0);
	assert_int_equal(lease(p), FIRST);
	identity_pool_free(p);
}

/* This very process is busy, at either end of a pool. */
static void holds_back_its_own_uid(void **state)
{
	uint32_t own = geteuid();
	struct identity_pool *p = new_pool(own, COUNT);
	struct error e = ERROR_NULL;
	uint32_t uid;
	int held = identity_hold_back_busy(p, &e);

	(void)state;
	assert_true(held >= 1);
	assert_int_equal(identity_leased(p), 0);
	for (int i = held; i < COUNT; i++)
		assert_int_not_equal(lease(p), own);
	assert_int_equal(identity_lease(p, &uid, &e), -EUSERS);
	identity_pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leases_until_all_are_out),
		cmocka_unit_test(takes_the_longest_unused_first),
		cmocka_unit_test(never_leases_a_uid_twice),
		cmocka_unit_test(holds_nothing_back_when_nobody_is_there),
		cmocka_unit_test(holds_back_its_own_uid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
