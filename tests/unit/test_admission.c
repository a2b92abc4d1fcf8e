/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who gets a place: a daemon of nothing but its configuration and its runs.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>

#include "governor/daemon/admission.h"

#define MIB	 (UINT64_C(1) << 20)
#define RUNS_MAX 32

enum { ALICE = 1001, BOB, CAROL };

struct hall {
	struct config config;
	struct daemon daemon;
	struct run runs[RUNS_MAX];
};

static int set_up(void **state)
{
	struct hall *h = calloc(1, sizeof(*h));

	if (!h)
		return -1;
	config_defaults(&h->config);
	h->config.access[0].max_guests = 2;
	h->daemon.config = &h->config;
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

/* The newest run, at the end of the list; it has a scope when its state says so. */
static struct run *add(struct hall *h, enum run_state run_state, uid_t uid, uint64_t memory)
{
	struct run *r = &h->runs[h->daemon.n_runs++];

	assert_true(h->daemon.n_runs <= RUNS_MAX);
	if (r > h->runs)
		r[-1].next = r;
	else
		h->daemon.runs = r;
	r->d = &h->daemon;
	r->serial = ++h->daemon.last_serial;
	r->state = run_state;
	r->caller.uid = uid;
	r->limits = h->config.defaults;
	r->limits.value[LIMIT_MEMORY] = memory;
	r->has_scope = run_state >= RUN_STARTING && run_state < RUN_OVER;
	return r;
}

static struct run *add_waiting(struct hall *h, uid_t uid)
{
	return add(h, RUN_WAITING, uid, MIB);
}

static void assert_admitted(const struct run *r)
{
	struct error e = ERROR_NULL;

	if (admission_check(r, &e) != 0)
		fail_msg("%s", e.text);
	assert_string_equal(e.text, "");
}

static void assert_kept_out(const struct run *r, int why, const char *sentence)
{
	struct error e = ERROR_NULL;

	assert_int_equal(admission_check(r, &e), why);
	assert_string_equal(e.text, sentence);
	assert_int_equal(admission_check(r, NULL), why);
}

static void knows_what_waiting_can_change(void **state)
{
	(void)state;
	assert_true(admission_is_shortage(-EDQUOT));
	assert_true(admission_is_shortage(-EUSERS));
	assert_true(admission_is_shortage(-ENOBUFS));
	assert_false(admission_is_shortage(0));
	assert_false(admission_is_shortage(-EACCES));
	assert_false(admission_is_shortage(-EINVAL));
	assert_false(admission_is_shortage(-EPERM));
}

/* ---- the caller's own quota ---- */

static void counts_the_guests_of_one_caller(void **state)
{
	struct hall *h = *state;
	struct run *r = add(h, RUN_CONNECTED, ALICE, MIB);

	assert_admitted(r);
	add(h, RUN_RUNNING, BOB, MIB);
	add(h, RUN_RUNNING, BOB, MIB);
	add(h, RUN_RUNNING, ALICE, MIB);
	assert_admitted(r);
	add(h, RUN_RUNNING, ALICE, MIB);
	assert_kept_out(r, -EDQUOT,
			"uid 1001 has 2 guests already, the most that [access] max-guests "
			"allows; wait for one to end, or use --wait");
	assert_admitted(add(h, RUN_CONNECTED, CAROL, MIB));
}

/* All that have a scope count, and nothing else. */
static void counts_every_live_guest(void **state)
{
	for (int s = RUN_CONNECTED; s <= RUN_OVER; s++) {
		struct hall *h;
		int live = s != RUN_CONNECTED && s != RUN_WAITING && s != RUN_OVER;
		struct run *r;

		tear_down(state);
		set_up(state);
		h = *state;
		h->config.access[0].max_guests = 1;
		add(h, (enum run_state)s, ALICE, MIB);
		r = add(h, RUN_CONNECTED, ALICE, MIB);
		/* Who waits for what all share comes before a newcomer. */
		assert_int_equal(admission_check(r, NULL), live		      ? -EDQUOT
							   : s == RUN_WAITING ? -EUSERS
									      : 0);
	}
}

static void goes_by_the_callers_section(void **state)
{
	struct hall *h = *state;
	struct access *few = &h->config.access[1], *no = &h->config.access[2];
	struct run *alice, *bob, *carol;

	h->config.n_access = 3;
	*few = (struct access){ .name = "few", .max_guests = 1 };
	few->groups = (struct members){ .n = 1, .id = { 50 } };
	*no = (struct access){ .name = "no", .max_guests = 0 };
	no->users = (struct members){ .n = 1, .id = { CAROL } };
	for (uid_t uid = ALICE; uid <= CAROL; uid++)
		add(h, RUN_RUNNING, uid, MIB);
	alice = add(h, RUN_CONNECTED, ALICE, MIB);
	alice->caller.n_groups = 1;
	alice->caller.groups[0] = 50;
	bob = add(h, RUN_CONNECTED, BOB, MIB);
	carol = add(h, RUN_CONNECTED, CAROL, MIB);
	assert_kept_out(alice, -EDQUOT,
			"uid 1001 has 1 guest already, the most that [access few] max-guests "
			"allows; wait for one to end, or use --wait");
	assert_admitted(bob);
	assert_kept_out(carol, -EACCES, "uid 1003 may run no guests, says [access no] max-guests");
	h->config.access[0].max_guests = 0;
	assert_kept_out(bob, -EACCES, "uid 1002 may run no guests, says [access] max-guests");
}

/* ---- memory ---- */

static void adds_the_memory_of_all_up(void **state)
{
	struct hall *h = *state;
	struct run *r;

	h->config.pool_memory = 100 * MIB;
	add(h, RUN_STARTING, ALICE, 20 * MIB);
	add(h, RUN_RUNNING, BOB, 30 * MIB);
	add(h, RUN_STUCK, BOB, 10 * MIB);
	add(h, RUN_OVER, BOB, 50 * MIB);
	add(h, RUN_CONNECTED, BOB, 50 * MIB);
	r = add(h, RUN_CONNECTED, CAROL, 40 * MIB);
	assert_admitted(r);
	r->limits.value[LIMIT_MEMORY] = 41 * MIB;
	assert_kept_out(r, -ENOBUFS,
			"--memory: 41M more would pass 100M, the [pool] memory for all guests "
			"together");
	r->limits.value[LIMIT_MEMORY] = 40 * MIB + 4096;
	assert_int_equal(admission_check(r, NULL), -ENOBUFS);
	r->limits.value[LIMIT_MEMORY] = 100 * MIB;
	assert_int_equal(admission_check(r, NULL), -ENOBUFS);
}

/* What could never be is no shortage: nobody waits for it. */
static void refuses_what_never_fits(void **state)
{
	struct hall *h = *state;
	struct run *r = add(h, RUN_CONNECTED, ALICE, 100 * MIB);

	h->config.pool_memory = 100 * MIB;
	assert_admitted(r);
	r->limits.value[LIMIT_MEMORY] = 101 * MIB;
	assert_kept_out(r, -EINVAL,
			"--memory: 101M more would pass 100M, the [pool] memory for all guests "
			"together");
	r->limits.value[LIMIT_MEMORY] = LIMIT_INFINITY;
	assert_kept_out(r, -EINVAL,
			"--memory: infinity more would pass 100M, the [pool] memory for all "
			"guests together");
}

static void takes_everything_without_a_bound(void **state)
{
	struct hall *h = *state;

	h->config.pool_memory = LIMIT_INFINITY;
	add(h, RUN_RUNNING, ALICE, LIMIT_INFINITY);
	add(h, RUN_RUNNING, BOB, INT64_MAX);
	assert_admitted(add(h, RUN_CONNECTED, CAROL, LIMIT_INFINITY));
}

/* A reload may bring a bound, or a lower one. */
static void survives_a_bound_below_what_is_taken(void **state)
{
	struct hall *h = *state;
	struct run *r = add(h, RUN_CONNECTED, CAROL, MIB);

	h->config.pool_memory = 100 * MIB;
	add(h, RUN_RUNNING, ALICE, 200 * MIB);
	assert_int_equal(admission_check(r, NULL), -ENOBUFS);
	add(h, RUN_RUNNING, ALICE, LIMIT_INFINITY);
	assert_int_equal(admission_check(r, NULL), -ENOBUFS); /* the sum did not wrap */
	add(h, RUN_RUNNING, BOB, LIMIT_INFINITY);
	add(h, RUN_RUNNING, BOB, 2 * MIB);
	assert_int_equal(admission_check(r, NULL), -ENOBUFS);
}

static void asks_for_the_quota_first(void **state)
{
	struct hall *h = *state;
	struct run *r = add(h, RUN_CONNECTED, ALICE, 2 * MIB);

	h->config.pool_memory = MIB;
	h->config.access[0].max_guests = 0;
	assert_int_equal(admission_check(r, NULL), -EACCES);
}

/* ---- turns ---- */

static void lets_no_newcomer_overtake(void **state)
{
	struct hall *h = *state;
	struct run *waiting, *newcomer = add(h, RUN_CONNECTED, ALICE, MIB);

	assert_admitted(newcomer);
	waiting = add_waiting(h, BOB);
	assert_kept_out(newcomer, -EUSERS, "others wait for a place already; use --wait");
	assert_admitted(waiting);
	add_waiting(h, CAROL); /* of those who wait nobody is new */
	assert_admitted(waiting);
	newcomer->state = RUN_WAITING;
	assert_admitted(newcomer);
}

/* It waits for its own guests to end, which concerns nobody else. */
static void ignores_who_waits_for_its_own_quota(void **state)
{
	struct hall *h = *state;

	add(h, RUN_RUNNING, BOB, MIB);
	add(h, RUN_RUNNING, BOB, MIB);
	add_waiting(h, BOB);
	assert_admitted(add(h, RUN_CONNECTED, ALICE, MIB));
}

/* Nor does one whose quota became full while it waited: it has no turn either. */
static void ignores_whose_quota_became_full(void **state)
{
	struct hall *h = *state;
	struct run *waiting, *newcomer;

	h->config.access[0].max_guests = 1;
	waiting = add_waiting(h, BOB);
	newcomer = add(h, RUN_CONNECTED, ALICE, MIB);
	assert_int_equal(admission_check(newcomer, NULL), -EUSERS);
	add(h, RUN_RUNNING, BOB, MIB);
	assert_int_equal(admission_check(waiting, NULL), -EDQUOT);
	assert_null(admission_next(&h->daemon));
	assert_admitted(newcomer);
}

static void has_no_next_when_nobody_waits(void **state)
{
	struct hall *h = *state;

	assert_null(admission_next(&h->daemon));
	for (int s = RUN_CONNECTED; s <= RUN_OVER; s++)
		if (s != RUN_WAITING)
			add(h, (enum run_state)s, (uid_t)(2000 + s), MIB);
	assert_null(admission_next(&h->daemon));
}

/* It is given a place, and asked who is next, until nobody is. */
static void assert_order(struct hall *h, struct run *const want[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct run *r = admission_next(&h->daemon);

		if (r != want[i])
			fail_msg("turn %zu: run %d instead of %d", i, r ? (int)r->serial : 0,
				 (int)want[i]->serial);
		r->state = RUN_STARTING;
		r->has_scope = true;
	}
	assert_null(admission_next(&h->daemon));
}

static void serves_the_oldest_first(void **state)
{
	struct hall *h = *state;
	struct run *first = add_waiting(h, CAROL), *second = add_waiting(h, ALICE),
		   *third = add_waiting(h, BOB);

	assert_order(h, (struct run *const[]){ first, second, third }, 3);
}

/* By age, not by place in the list. */
static void goes_by_the_serial(void **state)
{
	struct hall *h = *state;
	struct run *a = add_waiting(h, ALICE), *b = add_waiting(h, BOB);

	a->serial = 12;
	b->serial = 11;
	assert_order(h, (struct run *const[]){ b, a }, 2);
}

static void serves_who_has_least_first(void **state)
{
	struct hall *h = *state;
	struct run *alice, *bob, *carol;

	h->config.access[0].max_guests = 10;
	add(h, RUN_RUNNING, ALICE, MIB);
	add(h, RUN_ENDING, ALICE, MIB);
	add(h, RUN_RUNNING, BOB, MIB);
	alice = add_waiting(h, ALICE);
	bob = add_waiting(h, BOB);
	carol = add_waiting(h, CAROL);
	assert_order(h, (struct run *const[]){ carol, bob, alice }, 3);
}

/* One who asked for much and early does not get it all before the other gets anything. */
static void takes_turns(void **state)
{
	struct hall *h = *state;
	struct run *a[4], *b[2];

	h->config.access[0].max_guests = 10;
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = add_waiting(h, ALICE);
	for (size_t i = 0; i < ARRAY_SIZE(b); i++)
		b[i] = add_waiting(h, BOB);
	assert_order(h, (struct run *const[]){ a[0], b[0], a[1], b[1], a[2], a[3] }, 6);
}

/* Passes over whom no free place would help, until it would. */
static void passes_over_full_quotas(void **state)
{
	struct hall *h = *state;
	struct run *alive = add(h, RUN_RUNNING, ALICE, MIB), *alice, *bob;

	h->config.access[0].max_guests = 1;
	alice = add_waiting(h, ALICE);
	bob = add_waiting(h, BOB);
	assert_order(h, (struct run *const[]){ bob }, 1);
	alive->state = RUN_OVER;
	alive->has_scope = false;
	assert_order(h, (struct run *const[]){ alice }, 1);
}

/* What it needs is not looked at: the large one's turn comes, and then it is waited for. */
static void does_not_prefer_small_ones(void **state)
{
	struct hall *h = *state;
	struct run *large, *small;

	h->config.pool_memory = 100 * MIB;
	add(h, RUN_RUNNING, CAROL, 50 * MIB);
	large = add(h, RUN_WAITING, ALICE, 80 * MIB);
	small = add_waiting(h, BOB);
	assert_ptr_equal(admission_next(&h->daemon), large);
	assert_int_equal(admission_check(large, NULL), -ENOBUFS);
	assert_admitted(small); /* it would fit: not asked is how it waits */
}

#define hall_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_waiting_can_change),
		hall_test(counts_the_guests_of_one_caller),
		hall_test(counts_every_live_guest),
		hall_test(goes_by_the_callers_section),
		hall_test(adds_the_memory_of_all_up),
		hall_test(refuses_what_never_fits),
		hall_test(takes_everything_without_a_bound),
		hall_test(survives_a_bound_below_what_is_taken),
		hall_test(asks_for_the_quota_first),
		hall_test(lets_no_newcomer_overtake),
		hall_test(ignores_who_waits_for_its_own_quota),
		hall_test(ignores_whose_quota_became_full),
		hall_test(has_no_next_when_nobody_waits),
		hall_test(serves_the_oldest_first),
		hall_test(goes_by_the_serial),
		hall_test(serves_who_has_least_first),
		hall_test(takes_turns),
		hall_test(passes_over_full_quotas),
		hall_test(does_not_prefer_small_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
