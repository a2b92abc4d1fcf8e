/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/units.h"

#define KIB UINT64_C(1024)
#define SEC USEC_PER_SEC

static const struct {
	enum unit_kind kind;
	const char *text;
	int r;
	uint64_t value;
} parse_cases[] = {
	{ UNIT_COUNT, "1", 0, 1 },
	{ UNIT_COUNT, "128", 0, 128 },
	{ UNIT_COUNT, "0128", 0, 128 },
	{ UNIT_COUNT, "infinity", 0, LIMIT_INFINITY },
	{ UNIT_COUNT, "max", 0, LIMIT_INFINITY },
	{ UNIT_COUNT, "0", -ERANGE, 0 },
	{ UNIT_COUNT, "128K", -EINVAL, 0 },
	{ UNIT_COUNT, "", -EINVAL, 0 },
	{ UNIT_COUNT, "-1", -EINVAL, 0 },
	{ UNIT_COUNT, "+1", -EINVAL, 0 },
	{ UNIT_COUNT, " 1", -EINVAL, 0 },
	{ UNIT_COUNT, "1 ", -EINVAL, 0 },
	{ UNIT_COUNT, "0x10", -EINVAL, 0 },
	{ UNIT_COUNT, "1e3", -EINVAL, 0 },
	{ UNIT_COUNT, "Infinity", -EINVAL, 0 },
	{ UNIT_COUNT, "9223372036854775807", 0, INT64_MAX },
	{ UNIT_COUNT, "9223372036854775808", -ERANGE, 0 },
	{ UNIT_COUNT, "18446744073709551615", -ERANGE, 0 },
	{ UNIT_COUNT, "18446744073709551616", -ERANGE, 0 },
	{ UNIT_COUNT, "99999999999999999999999", -ERANGE, 0 },
	{ UNIT_SIZE, "0", 0, 0 },
	{ UNIT_SIZE, "4096", 0, 4096 },
	{ UNIT_SIZE, "512K", 0, 512 * KIB },
	{ UNIT_SIZE, "512M", 0, 512 * KIB *KIB },
	{ UNIT_SIZE, "1G", 0, KIB *KIB *KIB },
	{ UNIT_SIZE, "2T", 0, 2 * KIB *KIB *KIB *KIB },
	{ UNIT_SIZE, "max", 0, LIMIT_INFINITY },
	{ UNIT_SIZE, "8388607T", 0, UINT64_C(8388607) << 40 },
	{ UNIT_SIZE, "8388608T", -ERANGE, 0 },
	{ UNIT_SIZE, "99999999999T", -ERANGE, 0 },
	{ UNIT_SIZE, "M", -EINVAL, 0 },
	{ UNIT_SIZE, "64Q", -EINVAL, 0 },
	{ UNIT_SIZE, "64MB", -EINVAL, 0 },
	{ UNIT_SIZE, "64m", -EINVAL, 0 },
	{ UNIT_SIZE, "64 M", -EINVAL, 0 },
	{ UNIT_SIZE, "1.5G", -EINVAL, 0 },
	{ UNIT_SIZE, "1G512M", -EINVAL, 0 },
	{ UNIT_SIZE, "-1M", -EINVAL, 0 },
	{ UNIT_SIZE, "infinityM", -EINVAL, 0 },
	{ UNIT_SIZE, "64M\n", -EINVAL, 0 },
	{ UNIT_SIZE, "50%", -EINVAL, 0 },
	{ UNIT_DURATION, "0", 0, 0 },
	{ UNIT_DURATION, "30", 0, 30 * SEC },
	{ UNIT_DURATION, "30s", 0, 30 * SEC },
	{ UNIT_DURATION, "30sec", 0, 30 * SEC },
	{ UNIT_DURATION, "250us", 0, 250 },
	{ UNIT_DURATION, "500ms", 0, 500000 },
	{ UNIT_DURATION, "5min", 0, 300 * SEC },
	{ UNIT_DURATION, "5m", 0, 300 * SEC },
	{ UNIT_DURATION, "2h", 0, 7200 * SEC },
	{ UNIT_DURATION, "1d", 0, 86400 * SEC },
	{ UNIT_DURATION, "1h30min", 0, 5400 * SEC },
	{ UNIT_DURATION, "1s500ms", 0, SEC + 500000 },
	{ UNIT_DURATION, "infinity", 0, LIMIT_INFINITY },
	{ UNIT_DURATION, "1h30", -EINVAL, 0 },
	{ UNIT_DURATION, "1h 30min", -EINVAL, 0 },
	{ UNIT_DURATION, "s", -EINVAL, 0 },
	{ UNIT_DURATION, "1.5h", -EINVAL, 0 },
	{ UNIT_DURATION, "1hinfinity", -EINVAL, 0 },
	{ UNIT_DURATION, "1y", -EINVAL, 0 },
	{ UNIT_DURATION, "106751991d", 0, UINT64_C(106751991) * 86400 * SEC },
	{ UNIT_DURATION, "106751992d", -ERANGE, 0 },
	{ UNIT_DURATION, "106751991d1d", -ERANGE, 0 },
	{ UNIT_CPU, "100%", 0, SEC },
	{ UNIT_CPU, "50%", 0, SEC / 2 },
	{ UNIT_CPU, "250%", 0, 5 * SEC / 2 },
	{ UNIT_CPU, "0.5%", 0, 5000 },
	{ UNIT_CPU, "0.0001%", 0, 1 },
	{ UNIT_CPU, "33.3333%", 0, 333333 },
	{ UNIT_CPU, "0%", 0, 0 },
	{ UNIT_CPU, "infinity", 0, LIMIT_INFINITY },
	{ UNIT_CPU, "20", -EINVAL, 0 },
	{ UNIT_CPU, "0.5", -EINVAL, 0 },
	{ UNIT_CPU, "%", -EINVAL, 0 },
	{ UNIT_CPU, "50%%", -EINVAL, 0 },
	{ UNIT_CPU, "50 %", -EINVAL, 0 },
	{ UNIT_CPU, ".5%", -EINVAL, 0 },
	{ UNIT_CPU, "5.%", -EINVAL, 0 },
	{ UNIT_CPU, "0.00001%", -EINVAL, 0 },
	{ UNIT_CPU, "-5%", -EINVAL, 0 },
	{ UNIT_CPU, "922337203685477%", 0, UINT64_C(922337203685477) * 10000 },
	{ UNIT_CPU, "922337203685478%", -ERANGE, 0 },
};

static void parses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parse_cases); i++) {
		uint64_t value = 4711;
		int r = unit_parse(parse_cases[i].kind, parse_cases[i].text, &value);

		if (r != parse_cases[i].r || value != (r < 0 ? 4711 : parse_cases[i].value))
			fail_msg("case %zu \"%s\": %d, %ju", i, parse_cases[i].text, r,
				 (uintmax_t)value);
	}
}

static const struct {
	enum unit_kind kind;
	uint64_t value;
	const char *text;
	int exact; /* reads back as the same value */
} format_cases[] = {
	{ UNIT_COUNT, 128, "128", 1 },
	{ UNIT_COUNT, 1234567, "1234567", 1 },
	{ UNIT_COUNT, LIMIT_INFINITY, "infinity", 1 },
	{ UNIT_SIZE, 0, "0", 1 },
	{ UNIT_SIZE, 1, "1", 1 },
	{ UNIT_SIZE, 1023, "1023", 1 },
	{ UNIT_SIZE, 4096, "4K", 1 },
	{ UNIT_SIZE, 64 * KIB *KIB, "64M", 1 },
	{ UNIT_SIZE, 1023 * KIB, "1023K", 1 },
	{ UNIT_SIZE, 1536 * KIB *KIB, "1.5G", 0 },
	{ UNIT_SIZE, 64 * KIB *KIB + 1, "64M", 0 },
	{ UNIT_SIZE, 1025, "1K", 0 },
	{ UNIT_SIZE, 1234567, "1.18M", 0 },
	{ UNIT_SIZE, 123456789, "118M", 0 },
	{ UNIT_SIZE, 2048 * KIB *KIB *KIB *KIB, "2048T", 1 },
	{ UNIT_SIZE, LIMIT_INFINITY, "infinity", 1 },
	{ UNIT_DURATION, 0, "0us", 1 },
	{ UNIT_DURATION, 999, "999us", 1 },
	{ UNIT_DURATION, 1000, "1ms", 1 },
	{ UNIT_DURATION, 500000, "500ms", 1 },
	{ UNIT_DURATION, 1500000, "1.5s", 0 },
	{ UNIT_DURATION, 2 * SEC, "2s", 1 },
	{ UNIT_DURATION, 90 * SEC, "90s", 1 },
	{ UNIT_DURATION, 600 * SEC, "10min", 1 },
	{ UNIT_DURATION, 5400 * SEC, "90min", 1 },
	{ UNIT_DURATION, 86400 * SEC, "1d", 1 },
	{ UNIT_DURATION, 2345678, "2.35s", 0 },
	{ UNIT_DURATION, 10012345, "10s", 0 },
	{ UNIT_DURATION, LIMIT_INFINITY, "infinity", 1 },
	{ UNIT_CPU, SEC, "100%", 1 },
	{ UNIT_CPU, 5000, "0.5%", 1 },
	{ UNIT_CPU, 1, "0.0001%", 1 },
	{ UNIT_CPU, 333333, "33.3333%", 1 },
	{ UNIT_CPU, LIMIT_INFINITY, "infinity", 1 },
};

static void formats(void **state)
{
	char text[32];
	uint64_t back;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(format_cases); i++) {
		assert_string_equal(unit_format(format_cases[i].kind, format_cases[i].value, text,
						sizeof(text)),
				    format_cases[i].text);
		if (!format_cases[i].exact)
			continue;
		assert_int_equal(unit_parse(format_cases[i].kind, text, &back), 0);
		assert_true(back == format_cases[i].value);
	}
}

static void formats_into_little(void **state)
{
	char text[4];

	(void)state;
	unit_format(UNIT_COUNT, 1234567, text, sizeof(text));
	assert_string_equal(text, "123");
}

static const struct {
	const char *text;
	int r;
	uint64_t value;
} kernel_cases[] = {
	{ "0", 0, 0 },
	{ "12 34", 0, 12 },
	{ "12\nx", 0, 12 },
	{ "max", 0, LIMIT_INFINITY },
	{ "max 100000\n", 0, LIMIT_INFINITY },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "\n", -EINVAL, 0 },
	{ "maximum", -EINVAL, 0 },
	{ "12x", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
};

static void parses_kernel_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernel_cases); i++) {
		uint64_t value = 4711;
		int r = parse_u64_prefix(kernel_cases[i].text, &value);

		if (r != kernel_cases[i].r || value != (r < 0 ? 4711 : kernel_cases[i].value))
			fail_msg("case %zu \"%s\": %d", i, kernel_cases[i].text, r);
	}
}

static void finds_keys(void **state)
{
	static const char text[] = "usage_usec 12\nuser_usec 7\nnr_periods x\nlast 9";
	uint64_t value = 0;

	(void)state;
	assert_int_equal(keyed_u64(text, "usage_usec", &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(keyed_u64(text, "last", &value), 0);
	assert_int_equal(value, 9);
	assert_int_equal(keyed_u64(text, "user", &value), -ENOENT);
	assert_int_equal(keyed_u64(text, "usec", &value), -ENOENT);
	assert_int_equal(keyed_u64(text, "nr_periods", &value), -EINVAL);
}

static void expects(void **state)
{
	(void)state;
	for (int kind = UNIT_COUNT; kind <= UNIT_CPU; kind++)
		assert_true(strncmp(unit_expected(kind), "a ", 2) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(formats),
		cmocka_unit_test(formats_into_little),
		cmocka_unit_test(parses_kernel_text),
		cmocka_unit_test(finds_keys),
		cmocka_unit_test(expects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
