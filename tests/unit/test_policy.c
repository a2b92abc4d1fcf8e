/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "governor/policy.h"

#define MIB (UINT64_C(1) << 20)

/* Other values than the built-in ones; no default is at its ceiling, and nothing is a whole page.
 */
static const struct config sample = {
	.defaults = { { 64 * MIB + 1, 4097, 500000, 10, 1000000, 2000000 } },
	.ceiling = { { 128 * MIB + 5, 3 * MIB + 7, 2000000, 20, 10000000, 20000000 } },
};

/* A section of the caller's that says nothing about limits. */
static const struct access plain = {
	.ceiling = { { LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET,
		       LIMIT_UNSET } },
};

static uint64_t rounded(int limit, uint64_t value)
{
	return limit_table[limit].unit == UNIT_SIZE && value != LIMIT_INFINITY
		       ? value - value % (uint64_t)sysconf(_SC_PAGESIZE)
		       : value;
}

/* @value for one limit, nothing for the others. */
static struct limits asked_for(int limit, uint64_t value)
{
	struct limits l;

	limits_clear(&l);
	l.value[limit] = value;
	return l;
}

static void assert_merges(const struct config *c, int limit, uint64_t value, uint64_t want)
{
	struct limits asked = asked_for(limit, value), got = {};
	struct error e = ERROR_NULL;

	if (policy_limits(c, &plain, &asked, &got, &e) < 0)
		fail_msg("%s", e.text);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_int_equal(got.value[i],
				 i == limit ? want : rounded(i, c->defaults.value[i]));
}

static void assert_refused(const struct config *c, int limit, uint64_t value, int r,
			   const char *sentence)
{
	struct limits asked = asked_for(limit, value), got = { { 4711 } }, before = got;
	struct error e = ERROR_NULL;

	assert_int_equal(policy_limits(c, &plain, &asked, &got, &e), r);
	assert_string_equal(e.text, sentence);
	assert_memory_equal(&got, &before, sizeof(got));
}

static void takes_what_is_asked_or_the_default(void **state)
{
	struct config c;

	(void)state;
	config_defaults(&c);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t value = sample.defaults.value[i] + 1;

		assert_merges(&sample, i, value, rounded(i, value));
		assert_merges(&sample, i, LIMIT_UNSET, rounded(i, sample.defaults.value[i]));
		assert_merges(&c, i, LIMIT_UNSET, c.defaults.value[i]);
	}
}

static void takes_the_ceiling_and_nothing_above(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t most = sample.ceiling.value[i];
		struct limits asked = asked_for(i, most + 1), got;

		assert_merges(&sample, i, most, rounded(i, most));
		assert_int_equal(policy_limits(&sample, &plain, &asked, &got, NULL), -EPERM);
		asked = asked_for(i, LIMIT_INFINITY);
		assert_int_equal(policy_limits(&sample, &plain, &asked, &got, NULL), -EPERM);
	}
}

static void takes_the_least_and_nothing_below(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t least = limit_table[i].min;
		struct limits asked = asked_for(i, least - 1), got;

		assert_merges(&sample, i, least, rounded(i, least));
		if (least > 0)
			assert_int_equal(policy_limits(&sample, &plain, &asked, &got, NULL),
					 -EINVAL);
	}
}

static void says_what_would_do(void **state)
{
	static const char hint[] = ", the ceiling in /etc/harpe-gov/harpe-gov.conf; ask for less, "
				   "or ask the administrator to raise it";
	struct config c;
	char sentence[256];

	(void)state;
	config_defaults(&c);
	snprintf(sentence, sizeof(sentence), "--memory: 8G is above 4G%s", hint);
	assert_refused(&c, LIMIT_MEMORY, 8192 * MIB, -EPERM, sentence);
	snprintf(sentence, sizeof(sentence), "--swap: 1M is above 0%s", hint);
	assert_refused(&c, LIMIT_SWAP, MIB, -EPERM, sentence);
	snprintf(sentence, sizeof(sentence), "--cpu: infinity is above 400%%%s", hint);
	assert_refused(&c, LIMIT_CPU, LIMIT_INFINITY, -EPERM, sentence);
	assert_refused(&c, LIMIT_MEMORY, MIB, -EINVAL,
		       "--memory: 1M is below 8M, the least that works");
	assert_refused(&c, LIMIT_PIDS, 0, -EINVAL, "--pids: 0 is below 1, the least that works");
	assert_refused(&c, LIMIT_CPU, 999, -EINVAL,
		       "--cpu: 0.0999% is below 0.1%, the least that works");
}

static void allows_no_limit_where_there_is_no_ceiling(void **state)
{
	struct config c = sample;

	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		c.ceiling.value[i] = LIMIT_INFINITY;
		assert_merges(&c, i, LIMIT_INFINITY, LIMIT_INFINITY);
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		c.defaults.value[i] = LIMIT_INFINITY;
		assert_merges(&c, i, LIMIT_UNSET, LIMIT_INFINITY);
	}
}

/* As the kernel does, so that what is read back can be compared. */
static void rounds_sizes_to_whole_pages(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_merges(&sample, LIMIT_MEMORY, 10 * MIB + page - 1, 10 * MIB);
	assert_merges(&sample, LIMIT_MEMORY, 10 * MIB + page, 10 * MIB + page);
	assert_merges(&sample, LIMIT_SWAP, page - 1, 0);
	assert_merges(&sample, LIMIT_SWAP, 0, 0);
	assert_merges(&sample, LIMIT_TIME, page + 1, page + 1);
}

/* The caller's own section goes before [ceiling], to either side. */
static void goes_by_the_callers_section(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t most = sample.ceiling.value[i];
		struct access access = plain;
		struct limits asked = asked_for(i, most), got = {};
		struct error e = ERROR_NULL;

		access.ceiling.value[i] = most - 1;
		assert_int_equal(policy_limits(&sample, &access, &asked, &got, &e), -EPERM);
		assert_mentions(e.text, "--", limit_table[i].name, ": ");
		access.ceiling.value[i] = most + 1;
		asked = asked_for(i, most + 1);
		assert_int_equal(policy_limits(&sample, &access, &asked, &got, &e), 0);
		assert_int_equal(got.value[i], rounded(i, most + 1));
		asked = asked_for(i, most + 2);
		assert_int_equal(policy_limits(&sample, &access, &asked, &got, &e), -EPERM);
		access.ceiling.value[i] = LIMIT_INFINITY;
		asked = asked_for(i, LIMIT_INFINITY);
		assert_int_equal(policy_limits(&sample, &access, &asked, &got, &e), 0);
		assert_int_equal(got.value[i], LIMIT_INFINITY);
	}
}

/* Numbers that no parser returns, but a client that is not ours may send. */
static void refuses_impossible_numbers(void **state)
{
	static const uint64_t numbers[] = { LIMIT_UNSET - 1, (uint64_t)INT64_MAX + 1 };
	struct config c = sample;

	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++)
		c.ceiling.value[i] = LIMIT_INFINITY;
	for (int i = 0; i < LIMIT_COUNT * (int)ARRAY_SIZE(numbers); i++) {
		enum limit limit = (enum limit)(i % LIMIT_COUNT);
		char sentence[64];

		snprintf(sentence, sizeof(sentence), "--%s: is too large", limit_table[limit].name);
		assert_refused(&c, (int)limit, numbers[i / LIMIT_COUNT], -ERANGE, sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_asked_or_the_default),
		cmocka_unit_test(takes_the_ceiling_and_nothing_above),
		cmocka_unit_test(takes_the_least_and_nothing_below),
		cmocka_unit_test(says_what_would_do),
		cmocka_unit_test(allows_no_limit_where_there_is_no_ceiling),
		cmocka_unit_test(rounds_sizes_to_whole_pages),
		cmocka_unit_test(goes_by_the_callers_section),
		cmocka_unit_test(refuses_impossible_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
