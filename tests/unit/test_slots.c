/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which guests may be in a scope that was made before they were asked for, and whether it is there.
 */
#include "tests/unit/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "governor/daemon/place.h"
#include "governor/daemon/slots.h"

#define MIB  (UINT64_C(1) << 20)
#define HOUR (3600 * USEC_PER_SEC)

static const struct limits made = { { 64 * MIB, 8 * MIB, 500000, 128, LIMIT_INFINITY,
				      LIMIT_INFINITY, IO_WEIGHT_DEFAULT, LIMIT_INFINITY,
				      LIMIT_INFINITY } };

static bool fits(enum limit limit, uint64_t value)
{
	struct limits limits = made;

	limits.value[limit] = value;
	return slots_fit(&made, &limits);
}

static void fits_what_it_was_made_for(void **state)
{
	(void)state;
	assert_true(slots_fit(&made, &made));
}

/* guest/ can have less of these, and never more. */
static void fits_less_of_what_guest_bounds(void **state)
{
	static const enum limit tight[] = { LIMIT_MEMORY, LIMIT_SWAP, LIMIT_CPU };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tight); i++) {
		uint64_t value = made.value[tight[i]];

		assert_true(fits(tight[i], 0));
		assert_true(fits(tight[i], value - 1));
		assert_false(fits(tight[i], value + 1));
		assert_false(fits(tight[i], LIMIT_INFINITY));
	}
}

static void fits_no_other_share_of_disks(void **state)
{
	static const enum limit of_scope[] = { LIMIT_IO_WEIGHT, LIMIT_IO_READ, LIMIT_IO_WRITE };
	static const uint64_t other[] = { 1, IO_WEIGHT_DEFAULT - 1, IO_WEIGHT_DEFAULT + 1, MIB };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of_scope); i++)
		for (size_t j = 0; j < ARRAY_SIZE(other); j++)
			assert_false(fits(of_scope[i], other[j]));
}

/* A bound on disks that the slot has, too, is not to be lifted. */
static void fits_no_lifted_bound(void **state)
{
	struct limits bounded = made, limits = made;

	(void)state;
	bounded.value[LIMIT_IO_WRITE] = MIB;
	assert_false(slots_fit(&bounded, &limits));
	limits.value[LIMIT_IO_WRITE] = MIB;
	assert_true(slots_fit(&bounded, &limits));
}

/* These the scope knows nothing of. */
static void fits_anything_of_guests_own(void **state)
{
	static const enum limit own[] = { LIMIT_PIDS, LIMIT_CPU_TIME };
	static const uint64_t any[] = { 1, 129, LIMIT_INFINITY };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		for (size_t j = 0; j < ARRAY_SIZE(any); j++)
			assert_true(fits(own[i], any[j]));
}

/* Systemd counts from when the slot was made, which may be an hour ago. */
static void fits_runs_that_systemd_does_not_cut_off(void **state)
{
	static const struct {
		uint64_t made, time;
		bool fits;
	} cases[] = {
		{ LIMIT_INFINITY, LIMIT_INFINITY, true },
		{ LIMIT_INFINITY, 1, true },
		{ LIMIT_INFINITY, 100 * HOUR, true },
		{ 3 * HOUR, 2 * HOUR, true },
		{ 3 * HOUR, 1, true },
		{ 3 * HOUR, 2 * HOUR + 1, false },
		{ 3 * HOUR, 3 * HOUR, false },
		{ 3 * HOUR, 4 * HOUR, false },
		{ 3 * HOUR, LIMIT_INFINITY, false },
		{ HOUR, 1, false }, /* never wrapped around */
		{ 1, 2, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limits slot = made, limits = made;

		slot.value[LIMIT_TIME] = cases[i].made;
		limits.value[LIMIT_TIME] = cases[i].time;
		assert_int_equal(slots_fit(&slot, &limits), cases[i].fits);
	}
}

/* One that does not fit is enough. */
static void fits_as_a_whole(void **state)
{
	struct limits limits = made;

	(void)state;
	limits.value[LIMIT_MEMORY] = MIB;
	limits.value[LIMIT_SWAP] = 0;
	limits.value[LIMIT_CPU] = 1000;
	limits.value[LIMIT_PIDS] = 1;
	assert_true(slots_fit(&made, &limits));
	limits.value[LIMIT_CPU] = made.value[LIMIT_CPU] + 1;
	assert_false(slots_fit(&made, &limits));
}

/* The same directory as before, with its holder in it. */
static void sees_that_a_place_is_gone(void **state)
{
	struct run r = { .path = "/tmp/harpe-gov-test-slots-XXXXXX" };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(r.path));
	assert_int_equal(stat(r.path, &st), 0);
	r.scope_id = st.st_ino;
	assert_int_equal(holder_start(&r.holder), 0);
	assert_true(place_is_there(&r));
	r.scope_id++;
	assert_false(place_is_there(&r));
	r.scope_id--;
	assert_int_equal(rmdir(r.path), 0);
	assert_false(place_is_there(&r));
	assert_int_equal(mkdir(r.path, 0700), 0);
	assert_int_equal(stat(r.path, &st), 0);
	r.scope_id = st.st_ino;
	holder_kill(&r.holder);
	for (int tries = 0; tries < 5000 && !holder_is_dead(&r.holder); tries++)
		usleep(1000);
	assert_false(place_is_there(&r));
	holder_stop(&r.holder);
	assert_int_equal(rmdir(r.path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_what_it_was_made_for),
		cmocka_unit_test(fits_less_of_what_guest_bounds),
		cmocka_unit_test(fits_no_other_share_of_disks),
		cmocka_unit_test(fits_no_lifted_bound),
		cmocka_unit_test(fits_anything_of_guests_own),
		cmocka_unit_test(fits_runs_that_systemd_does_not_cut_off),
		cmocka_unit_test(fits_as_a_whole),
		cmocka_unit_test(sees_that_a_place_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
