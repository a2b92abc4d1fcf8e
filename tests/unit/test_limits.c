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
	{ LIMIT_IO_WEIGHT, "1", 1 },	 { LIMIT_IO_WEIGHT, "10000", 10000 },
	{ LIMIT_IO_READ, "4K", 4096 },	 { LIMIT_IO_WRITE, "infinity", LIMIT_INFINITY },
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
	{ LIMIT_PIDS, "0", -ERANGE, "pids: \"0\" is too little: 1 is the least" },
	{ LIMIT_PIDS, "-1", -EINVAL, "pids: \"-1\" is not a number such as 128" },
	{ LIMIT_TIME, "10us", -ERANGE, "time: \"10us\" is too little: 1ms is the least" },
	{ LIMIT_TIME, "2 h", -EINVAL, "time: \"2 h\" is not a duration such as 30s" },
	{ LIMIT_CPU_TIME, "0", -ERANGE, "cpu-time: \"0\" is too little: 1ms is the least" },
	{ LIMIT_IO_WEIGHT, "10001", -ERANGE,
	  "io-weight: \"10001\" is too much: 10000 is the most" },
	{ LIMIT_IO_WEIGHT, "infinity", -ERANGE,
	  "io-weight: \"infinity\" is too much: 10000 is the most" },
	{ LIMIT_IO_READ, "1K", -ERANGE, "io-read: \"1K\" is too little: 4K is the least" },
	{ LIMIT_IO_WRITE, "1M/s", -EINVAL,
	  "io-write: \"1M/s\" is not a number of bytes per second such as 10M" },
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

static const struct {
	enum limit limit;
	uint64_t value;
	const char *text;
} kernel_texts[] = {
	{ LIMIT_MEMORY, 8 << 20, "memory.max=8388608" },
	{ LIMIT_SWAP, LIMIT_INFINITY, "memory.swap.max=max" },
	{ LIMIT_CPU, 500000, "cpu.max=\"50000 100000\"" },
	{ LIMIT_PIDS, 7, "pids.max=7" },
	{ LIMIT_TIME, 1000, "a timer of the supervisor" },
	{ LIMIT_CPU_TIME, LIMIT_INFINITY, "nothing" },
	{ LIMIT_IO_WEIGHT, 100, "io.weight=\"default 100\"" },
	{ LIMIT_IO_READ, 4096, "io.max=\"rbps=4096\" for each disk" },
	{ LIMIT_IO_WRITE, LIMIT_INFINITY, "nothing" },
};

static void says_what_the_kernel_is_told(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernel_texts); i++)
		assert_string_equal(limit_kernel_text(kernel_texts[i].limit, kernel_texts[i].value,
						      text, sizeof(text)),
				    kernel_texts[i].text);
}

/* Only what nobody asked for, and is as the kernel does by itself, may be missing. */
static void knows_what_may_be_missing(void **state)
{
	const uint32_t io = 1u << LIMIT_IO_WEIGHT | 1u << LIMIT_IO_READ | 1u << LIMIT_IO_WRITE;
	struct limits asked, granted = { { 1, 2, 3, 4, 5, LIMIT_INFINITY, IO_WEIGHT_DEFAULT,
					   LIMIT_INFINITY, LIMIT_INFINITY } };

	(void)state;
	limits_clear(&asked);
	assert_int_equal(limits_untold(&asked, &granted), io);
	asked.value[LIMIT_IO_READ] = LIMIT_INFINITY; /* no limit needs no controller */
	assert_int_equal(limits_untold(&asked, &granted), io);
	asked.value[LIMIT_IO_WEIGHT] = IO_WEIGHT_DEFAULT;
	assert_int_equal(limits_untold(&asked, &granted), io & ~(1u << LIMIT_IO_WEIGHT));
	granted.value[LIMIT_IO_WRITE] = 4096;
	assert_int_equal(limits_untold(&asked, &granted), 1u << LIMIT_IO_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_complete),
		cmocka_unit_test(clears),
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(says_what_the_kernel_is_told),
		cmocka_unit_test(knows_what_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
