/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/limits.h"

static void table_is_complete(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *info = &limit_table[i];

		assert_true(info->name[0] && info->json[0] && info->help[0]);
		for (int j = 0; j < i; j++) {
			assert_string_not_equal(info->name, limit_table[j].name);
			assert_string_not_equal(info->json, limit_table[j].json);
		}
	}
}

static void clears(void **state)
{
	struct limits l;

	(void)state;
	limits_clear(&l);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_true(l.value[i] == LIMIT_UNSET);
}

static const struct {
	enum limit limit;
	const char *text;
	uint64_t value;
} accepted[] = {
	{ LIMIT_MEMORY, "8M", 8 << 20 }, { LIMIT_MEMORY, "infinity", LIMIT_INFINITY },
	{ LIMIT_SWAP, "0", 0 },		 { LIMIT_CPU, "0.1%", 1000 },
	{ LIMIT_CPU, "400%", 4000000 },	 { LIMIT_PIDS, "1", 1 },
	{ LIMIT_TIME, "1ms", 1000 },	 { LIMIT_CPU_TIME, "2min", 120000000 },
};

static void accepts(void **state)
{
	struct error e;
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		assert_int_equal(limit_parse(accepted[i].limit, accepted[i].text, &value, &e), 0);
		assert_true(value == accepted[i].value);
		assert_int_equal(limit_parse(accepted[i].limit, accepted[i].text, &value, NULL), 0);
	}
}

static const struct {
	enum limit limit;
	const char *text;
	int r;
	const char *sentence;
} refused[] = {
	{ LIMIT_MEMORY, "64Q", -EINVAL, "memory: \"64Q\" is not a size such as 512M" },
	{ LIMIT_MEMORY, "", -EINVAL, "memory: \"\" is not a size such as 512M" },
	{ LIMIT_MEMORY, "8388607Kx", -EINVAL, "memory: \"8388607Kx\" is not a size such as 512M" },
	{ LIMIT_MEMORY, "8191K", -ERANGE, "memory: \"8191K\" is too little: 8M is the least" },
	{ LIMIT_MEMORY, "9999999999T", -ERANGE,
	  "memory: \"9999999999T\" is too large; \"infinity\" is no limit" },
	{ LIMIT_MEMORY, "1\n\x1b[2J", -EINVAL,
	  "memory: \"1\\x0a\\x1b[2J\" is not a size such as 512M" },
	{ LIMIT_CPU, "20", -EINVAL, "cpu: \"20\" lacks the percent sign: write 20%" },
	{ LIMIT_CPU, "1.5", -EINVAL, "cpu: \"1.5\" lacks the percent sign: write 1.5%" },
	{ LIMIT_CPU, "0.05%", -ERANGE, "cpu: \"0.05%\" is too little: 0.1% is the least" },
	{ LIMIT_CPU, "half", -EINVAL,
	  "cpu: \"half\" is not a CPU quota such as 50% (200% is two CPUs)" },
	{ LIMIT_PIDS, "0", -ERANGE, "pids: \"0\" is not a number such as 128" },
	{ LIMIT_PIDS, "-1", -EINVAL, "pids: \"-1\" is not a number such as 128" },
	{ LIMIT_TIME, "10us", -ERANGE, "time: \"10us\" is too little: 1ms is the least" },
	{ LIMIT_TIME, "2 h", -EINVAL, "time: \"2 h\" is not a duration such as 30s" },
	{ LIMIT_CPU_TIME, "0", -ERANGE, "cpu-time: \"0\" is too little: 1ms is the least" },
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct error e = ERROR_NULL;
		uint64_t value = 4711;

		assert_int_equal(limit_parse(refused[i].limit, refused[i].text, &value, &e),
				 refused[i].r);
		assert_string_equal(e.text, refused[i].sentence);
		assert_int_equal(value, 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_complete),
		cmocka_unit_test(clears),
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
