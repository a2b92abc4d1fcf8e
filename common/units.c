/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"

/* Nothing above fits a signed 64 bit number, which JSON, the kernel's page counters and sd-bus
 * properties are made of; it also keeps parsed numbers apart from the special values. */
#define VALUE_MAX ((uint64_t)INT64_MAX)

#define CPU_DIGITS 4 /* after the point: 0.0001 % is 1 us per second */

struct suffix {
	const char *text;
	uint64_t scale;
};

/* Ascending; unit_format() uses the first name of each scale. */
static const struct suffix size_suffixes[] = {
	{ "", 1 },
	{ "K", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 },
};

static const struct suffix duration_suffixes[] = {
	{ "us", 1 },
	{ "usec", 1 },
	{ "ms", 1000 },
	{ "msec", 1000 },
	{ "s", USEC_PER_SEC },
	{ "", USEC_PER_SEC },
	{ "sec", USEC_PER_SEC },
	{ "min", 60 * USEC_PER_SEC },
	{ "m", 60 * USEC_PER_SEC },
	{ "h", 3600 * USEC_PER_SEC },
	{ "hr", 3600 * USEC_PER_SEC },
	{ "d", 86400 * USEC_PER_SEC },
};

static const struct unit {
	const char *expected;
	const struct suffix *suffixes;
	size_t n_suffixes;
	uint64_t min;
	uint64_t human; /* exact values are printed as they are below this many */
} units[] = {
	[UNIT_COUNT] = { "a number such as 128", size_suffixes, 1, 1, UINT64_MAX },
	[UNIT_SIZE] = { "a size such as 512M", size_suffixes, ARRAY_SIZE(size_suffixes), 0, 1024 },
	[UNIT_DURATION] = { "a duration such as 30s", duration_suffixes,
			    ARRAY_SIZE(duration_suffixes), 0, 1000 },
	[UNIT_CPU] = { "a CPU quota such as 50% (200% is two CPUs)", NULL, 0, 0, 0 },
	[UNIT_RATE] = { "a number of bytes per second such as 10M", size_suffixes,
			ARRAY_SIZE(size_suffixes), 0, 1024 },
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* value * scale + add, or -ERANGE above VALUE_MAX. */
static int scaled(uint64_t value, uint64_t scale, uint64_t add, uint64_t *ret)
{
	uint64_t v;

	if (__builtin_mul_overflow(value, scale, &v) || __builtin_add_overflow(v, add, &v) ||
	    v > VALUE_MAX)
		return -ERANGE;
	*ret = v;
	return 0;
}

/* The digits at *text, which is moved behind them. */
static int parse_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	*text = p;
	*ret = v;
	return 0;
}

int parse_u64_prefix(const char *text, uint64_t *ret)
{
	uint64_t v = LIMIT_INFINITY;
	int r = 0;

	if (strncmp(text, "max", 3) == 0)
		text += 3;
	else
		r = parse_digits(&text, &v);
	if (r < 0)
		return r;
	if (*text != '\0' && *text != ' ' && *text != '\n')
		return -EINVAL;
	*ret = v;
	return 0;
}

int parse_cpu_max(const char *text, uint64_t *ret_quota, uint64_t *ret_period)
{
	const char *blank = strchr(text, ' ');

	if (!blank)
		return -EINVAL;
	if (parse_u64_prefix(text, ret_quota) < 0 || parse_u64_prefix(blank + 1, ret_period) < 0)
		return -EINVAL;
	return *ret_period > 0 ? 0 : -EINVAL;
}

uint64_t cpu_per_second(uint64_t quota, uint64_t period)
{
	return quota == LIMIT_INFINITY ? quota : quota * USEC_PER_SEC / period;
}

static const struct suffix *find_suffix(const struct unit *unit, const char *text, size_t len)
{
	for (size_t i = 0; i < unit->n_suffixes; i++)
		if (strlen(unit->suffixes[i].text) == len &&
		    memcmp(unit->suffixes[i].text, text, len) == 0)
			return &unit->suffixes[i];
	return NULL;
}

/* One "NUMBER[SUFFIX]" at *text, added to *sum. */
static int parse_part(const struct unit *unit, const char **text, uint64_t *sum)
{
	const struct suffix *suffix;
	uint64_t v;
	size_t len;
	int r;

	r = parse_digits(text, &v);
	if (r < 0)
		return r;
	len = strcspn(*text, "0123456789");
	suffix = find_suffix(unit, *text, len);
	if (!suffix)
		return -EINVAL;
	*text += len;
	return scaled(v, suffix->scale, *sum, sum);
}

/* Durations may have several parts, as in "1h30min"; only a lone number goes without suffix. */
static int parse_suffixed(enum unit_kind kind, const char *text, uint64_t *ret)
{
	const char *p = text;
	uint64_t sum = 0;
	int r;

	do {
		r = parse_part(&units[kind], &p, &sum);
		if (r < 0)
			return r;
	} while (*p != '\0' && kind == UNIT_DURATION);
	if (*p != '\0' || (is_digit(p[-1]) && strspn(text, "0123456789") != strlen(text)))
		return -EINVAL;
	*ret = sum;
	return 0;
}

static int parse_fraction(const char **text, uint64_t *ret)
{
	uint64_t v = 0;
	int digits = 0;

	if (**text == '.') {
		for (++*text; is_digit(**text) && digits < CPU_DIGITS; ++*text, digits++)
			v = v * 10 + (uint64_t)(**text - '0');
		if (digits == 0)
			return -EINVAL;
	}
	for (; digits < CPU_DIGITS; digits++)
		v *= 10;
	*ret = v;
	return 0;
}

static int parse_cpu(const char *text, uint64_t *ret)
{
	uint64_t whole, fraction;
	int r;

	r = parse_digits(&text, &whole);
	if (r < 0)
		return r;
	r = parse_fraction(&text, &fraction);
	if (r < 0)
		return r;
	if (strcmp(text, "%") != 0)
		return -EINVAL;
	return scaled(whole, USEC_PER_SEC / 100, fraction, ret);
}

int unit_parse(enum unit_kind kind, const char *text, uint64_t *ret)
{
	uint64_t v = LIMIT_INFINITY;
	int r = 0;

	if (strcmp(text, "infinity") != 0 && strcmp(text, "max") != 0)
		r = kind == UNIT_CPU ? parse_cpu(text, &v) : parse_suffixed(kind, text, &v);
	if (r < 0)
		return r;
	if (v < units[kind].min)
		return -ERANGE;
	*ret = v;
	return 0;
}

static void strip_zeros(char *number)
{
	char *end = number + strlen(number);

	if (!strchr(number, '.'))
		return;
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

/* The largest unit of which @value is a whole number below unit->human, else NULL. */
static const struct suffix *exact_suffix(const struct unit *unit, uint64_t value)
{
	const struct suffix *s = NULL;

	for (size_t i = 0; i < unit->n_suffixes; i++) {
		const struct suffix *t = &unit->suffixes[i];

		if ((!s || s->scale != t->scale) && value % t->scale == 0 &&
		    value / t->scale < unit->human && (value != 0 || t->scale == 1))
			s = t;
	}
	return s;
}

static const struct suffix *largest_suffix(const struct unit *unit, uint64_t value)
{
	const struct suffix *s = unit->suffixes;

	for (size_t i = 1; i < unit->n_suffixes; i++)
		if (unit->suffixes[i].scale != s->scale && unit->suffixes[i].scale <= value)
			s = &unit->suffixes[i];
	return s;
}

static void format_suffixed(const struct unit *unit, uint64_t value, char *buf, size_t size)
{
	const struct suffix *s = exact_suffix(unit, value);
	char number[40];
	double v;

	if (s) {
		snprintf(buf, size, "%" PRIu64 "%s", value / s->scale, s->text);
		return;
	}
	s = largest_suffix(unit, value);
	v = (double)value / (double)s->scale;
	snprintf(number, sizeof(number), "%.*f", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v);
	strip_zeros(number);
	snprintf(buf, size, "%s%s", number, s->text);
}

static void format_cpu(uint64_t value, char *buf, size_t size)
{
	const uint64_t percent = USEC_PER_SEC / 100;
	char number[40];

	snprintf(number, sizeof(number), "%" PRIu64 ".%0*" PRIu64, value / percent, CPU_DIGITS,
		 value % percent);
	strip_zeros(number);
	snprintf(buf, size, "%s%%", number);
}

const char *unit_format(enum unit_kind kind, uint64_t value, char *buf, size_t size)
{
	if (value == LIMIT_INFINITY)
		snprintf(buf, size, "infinity");
	else if (kind == UNIT_CPU)
		format_cpu(value, buf, size);
	else
		format_suffixed(&units[kind], value, buf, size);
	return buf;
}

const char *unit_expected(enum unit_kind kind)
{
	return units[kind].expected;
}
