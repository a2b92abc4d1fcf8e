/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "governor/daemon/policy.h"

#define MIB (UINT64_C(1) << 20)

/* Other values than the built-in ones; no default is at its ceiling, and nothing is a whole page.
 */
static const struct config sample = {
	.defaults = { { 64 * MIB + 1, 4097, 500000, 10, 1000000, 2000000, 50, 5000, 6000 } },
	.ceiling = { { 128 * MIB + 5, 3 * MIB + 7, 2000000, 20, 10000000, 20000000, 200, 50000,
		       60000 } },
};

/* A section of the caller's that says nothing about limits. */
static const struct access plain = {
	.ceiling = { { LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET,
		       LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET } },
	.section = CONFIG_PLAIN_SECTIONS,
};

static void finds_the_profile(void **state)
{
	const struct profile *p = NULL;
	struct access only = { .name = "ci",
			       .profiles = {
				       .n = 1, .name = { "isolated" }, .from = "/etc/x.conf:7" } };
	static struct config c;
	struct error e = ERROR_NULL;

	(void)state;
	config_defaults(&c);
	profile_init(&c.profiles[c.n_profiles++], "web");
	assert_int_equal(policy_profile(&c, &plain, "", &p, &e), 0);
	assert_string_equal(p->name, "isolated");
	assert_true(p->own_network);
	assert_int_equal(policy_profile(&c, &plain, "drop", &p, &e), 0);
	assert_string_equal(p->name, "drop");
	assert_false(p->own_network);
	assert_int_equal(policy_profile(&c, &plain, "lan", &p, &e), -EINVAL);
	assert_string_equal(e.text, "--net: there is no network profile \"lan\"; you may ask for "
				    "isolated, drop, reject");
	assert_int_equal(policy_profile(&c, &only, "lan", &p, &e), -EINVAL);
	assert_mentions(e.text, "; you may ask for isolated", "", "");
	assert_int_equal(policy_profile(&c, &plain, "web", &p, &e), -EACCES); /* not for all */
	assert_string_equal(e.text, "--net: web is none of the profiles that [access] in "
				    "/etc/harpe-gov/harpe-gov.conf and its drop-ins allows you; "
				    "ask for another, or ask the administrator");
	strcpy(c.net, "web");
	assert_int_equal(policy_profile(&c, &plain, "web", &p, &e), 0);
	strcpy(c.net, "isolated");
	assert_int_equal(policy_profile(&c, &only, "", &p, &e), 0);
	assert_int_equal(policy_profile(&c, &only, "drop", &p, &e), -EACCES);
	assert_string_equal(e.text, "--net: drop is none of the profiles that [access ci] in "
				    "/etc/x.conf:7 allows you; ask for another, or ask the "
				    "administrator");
}

/* The sentence has room for some. */
static void lists_many_profiles(void **state)
{
	const struct profile *p = NULL;
	struct access all = { .name = "all" };
	static struct config c;
	struct error e = ERROR_NULL;

	(void)state;
	config_defaults(&c);
	for (uint32_t i = 0; i < ACCESS_MEMBERS_MAX; i++) {
		struct profile *made = &c.profiles[c.n_profiles++];

		profile_init(made, "abcdefghijklmnopqrstuvwxyz00000");
		made->name[PROFILE_NAME_MAX - 1] = (char)('0' + i % 10);
		made->name[PROFILE_NAME_MAX - 2] = (char)('0' + i / 10);
		strcpy(all.profiles.name[all.profiles.n++], made->name);
	}
	assert_int_equal(policy_profile(&c, &all, "lan", &p, &e), -EINVAL);
	assert_mentions(e.text, "; you may ask for abcdefghijklmnopqrstuvwxyz00000, abc", "", "");
	assert_string_equal(e.text + strlen(e.text) - strlen("z00004, ..."), "z00004, ...");
}

static struct limit_origins origins; /* of the last merge */

static int policy(const struct config *c, const struct access *access, const struct limits *asked,
		  struct limits *ret, struct error *e)
{
	memset(&origins, 0, sizeof(origins));
	return policy_limits(c, access, asked, ret, &origins, e);
}

/* Is "infinity" no value of this limit's? */
static bool is_bounded(int limit)
{
	return limit_table[limit].max != LIMIT_INFINITY;
}

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

	if (policy(c, &plain, &asked, &got, &e) < 0)
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

	assert_int_equal(policy(c, &plain, &asked, &got, &e), r);
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
		assert_int_equal(policy(&sample, &plain, &asked, &got, NULL), -EPERM);
		asked = asked_for(i, LIMIT_INFINITY);
		assert_int_equal(policy(&sample, &plain, &asked, &got, NULL),
				 is_bounded(i) ? -ERANGE : -EPERM);
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
			assert_int_equal(policy(&sample, &plain, &asked, &got, NULL), -EINVAL);
	}
}

/* As if the key had been on that line of the first file. */
static void config_sets(struct config *c, int section, int key, uint32_t line)
{
	c->origin[section][key] = (struct origin){ .file = 1, .line = line };
}

/* The request, a line of the configuration, or nothing but the program itself. */
static void says_where_limits_come_from(void **state)
{
	struct config c;
	struct limits asked = asked_for(LIMIT_CPU, 500000), got;

	(void)state;
	config_defaults(&c);
	c.n_files = 1;
	strcpy(c.files[1], "/etc/x.conf");
	config_sets(&c, 1, LIMIT_PIDS, 12); /* the keys of [defaults] are in the limits' order */
	assert_int_equal(policy(&c, &plain, &asked, &got, NULL), 0);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_string_equal(origins.text[i], i == LIMIT_CPU    ? "request"
						     : i == LIMIT_PIDS ? "/etc/x.conf:12"
								       : "built in");
}

static void says_what_would_do(void **state)
{
	static const char hint[] = "; ask for less, or ask the administrator to raise it";
	struct config c;
	char sentence[256];

	(void)state;
	config_defaults(&c);
	assert_refused(&c, LIMIT_MEMORY, 8192 * MIB, -EPERM,
		       "--memory: 8G is above 4G, the built-in ceiling; ask for less, or ask the "
		       "administrator for memory in [ceiling] of /etc/harpe-gov/harpe-gov.conf");
	c.n_files = 1;
	strcpy(c.files[1], "/etc/x.conf");
	config_sets(&c, 2, 1, 7); /* swap, the second key of [ceiling] */
	config_sets(&c, 2, 2, 8);
	snprintf(sentence, sizeof(sentence),
		 "--swap: 1M is above 0, the ceiling in /etc/x.conf:7%s", hint);
	assert_refused(&c, LIMIT_SWAP, MIB, -EPERM, sentence);
	snprintf(sentence, sizeof(sentence),
		 "--cpu: infinity is above 400%%, the ceiling in /etc/x.conf:8%s", hint);
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
		if (is_bounded(i))
			continue;
		assert_merges(&c, i, LIMIT_INFINITY, LIMIT_INFINITY);
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (is_bounded(i))
			continue;
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
		assert_int_equal(policy(&sample, &access, &asked, &got, &e), -EPERM);
		assert_mentions(e.text, "--", limit_table[i].name, ": ");
		access.ceiling.value[i] = most + 1;
		asked = asked_for(i, most + 1);
		assert_int_equal(policy(&sample, &access, &asked, &got, &e), 0);
		assert_int_equal(got.value[i], rounded(i, most + 1));
		asked = asked_for(i, most + 2);
		assert_int_equal(policy(&sample, &access, &asked, &got, &e), -EPERM);
		if (is_bounded(i))
			continue;
		access.ceiling.value[i] = LIMIT_INFINITY;
		asked = asked_for(i, LIMIT_INFINITY);
		assert_int_equal(policy(&sample, &access, &asked, &got, &e), 0);
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
		cmocka_unit_test(finds_the_profile),
		cmocka_unit_test(lists_many_profiles),
		cmocka_unit_test(takes_what_is_asked_or_the_default),
		cmocka_unit_test(takes_the_ceiling_and_nothing_above),
		cmocka_unit_test(takes_the_least_and_nothing_below),
		cmocka_unit_test(says_where_limits_come_from),
		cmocka_unit_test(says_what_would_do),
		cmocka_unit_test(allows_no_limit_where_there_is_no_ceiling),
		cmocka_unit_test(rounds_sizes_to_whole_pages),
		cmocka_unit_test(goes_by_the_callers_section),
		cmocka_unit_test(refuses_impossible_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
