/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

const struct limit_info limit_table[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = {
		.name = "memory",
		.json = "memory_bytes",
		.unit = UNIT_SIZE,
		.min = MEMORY_MIN,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = UINT64_C(512) << 20,
		.ceiling = UINT64_C(4) << 30,
		.help = "memory of all processes together",
	},
	[LIMIT_SWAP] = {
		.name = "swap",
		.json = "swap_bytes",
		.unit = UNIT_SIZE,
		.min = 0,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = 0,
		.ceiling = 0,
		.help = "swap on top of the memory",
	},
	[LIMIT_CPU] = {
		.name = "cpu",
		.json = "cpu_usec_per_sec",
		.unit = UNIT_CPU,
		.min = USEC_PER_SEC / 1000,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = USEC_PER_SEC,
		.ceiling = 4 * USEC_PER_SEC,
		.help = "share of CPU time; 100% is one CPU",
	},
	[LIMIT_PIDS] = {
		.name = "pids",
		.json = "pids",
		.unit = UNIT_COUNT,
		.min = 1,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = 128,
		.ceiling = 1024,
		.help = "processes and threads",
	},
	[LIMIT_TIME] = {
		.name = "time",
		.json = "time_usec",
		.unit = UNIT_DURATION,
		.min = 1000,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = 600 * USEC_PER_SEC,
		.ceiling = 86400 * USEC_PER_SEC,
		.help = "wall-clock time",
	},
	[LIMIT_CPU_TIME] = {
		.name = "cpu-time",
		.json = "cpu_time_usec",
		.unit = UNIT_DURATION,
		.min = 1000,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_UNSET,
		.standard = LIMIT_INFINITY,
		.ceiling = LIMIT_INFINITY,
		.help = "CPU time of all processes together",
	},
	[LIMIT_IO_WEIGHT] = {
		.name = "io-weight",
		.json = "io_weight",
		.unit = UNIT_COUNT,
		.min = 1,
		.max = 10000,
		.idle = IO_WEIGHT_DEFAULT,
		.standard = IO_WEIGHT_DEFAULT,
		.ceiling = IO_WEIGHT_DEFAULT,
		.help = "share of disk time",
	},
	[LIMIT_IO_READ] = {
		.name = "io-read",
		.json = "io_read_bytes_per_sec",
		.unit = UNIT_RATE,
		.min = 4096,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_INFINITY,
		.standard = LIMIT_INFINITY,
		.ceiling = LIMIT_INFINITY,
		.help = "bytes read per second",
	},
	[LIMIT_IO_WRITE] = {
		.name = "io-write",
		.json = "io_write_bytes_per_sec",
		.unit = UNIT_RATE,
		.min = 4096,
		.max = LIMIT_INFINITY,
		.idle = LIMIT_INFINITY,
		.standard = LIMIT_INFINITY,
		.ceiling = LIMIT_INFINITY,
		.help = "bytes written per second",
	},
};

void limits_clear(struct limits *l)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		l->value[i] = LIMIT_UNSET;
}

static int refuse_text(const struct limit_info *info, const char *text, int r, struct error *e)
{
	char shown[72];

	text_escape(text, shown, sizeof(shown));
	if (info->unit == UNIT_CPU && text[0] && strspn(text, "0123456789.") == strlen(text))
		return error_set(e, r, "%s: \"%s\" lacks the percent sign: write %s%%", info->name,
				 shown, shown);
	if (r == -ERANGE && strspn(text, "0") == strlen(text))
		return error_set(e, r, "%s: \"%s\" is too little: %" PRIu64 " is the least",
				 info->name, shown, info->min);
	if (r == -ERANGE)
		return error_set(e, r, "%s: \"%s\" is too large; \"infinity\" is no limit",
				 info->name, shown);
	return error_set(e, r, "%s: \"%s\" is not %s", info->name, shown,
			 unit_expected(info->unit));
}

int limit_parse(enum limit limit, const char *text, uint64_t *ret, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char shown[72], bound[32];
	uint64_t v;
	int r;

	r = unit_parse(info->unit, text, &v);
	if (r < 0)
		return refuse_text(info, text, r, e);
	if (v < info->min)
		return error_set(e, -ERANGE, "%s: \"%s\" is too little: %s is the least",
				 info->name, text_escape(text, shown, sizeof(shown)),
				 unit_format(info->unit, info->min, bound, sizeof(bound)));
	if (v > info->max)
		return error_set(e, -ERANGE, "%s: \"%s\" is too much: %s is the most", info->name,
				 text_escape(text, shown, sizeof(shown)),
				 unit_format(info->unit, info->max, bound, sizeof(bound)));
	*ret = v;
	return 0;
}

#define CPU_PERIOD_USEC	   UINT64_C(100000)
#define CPU_QUOTA_MIN_USEC UINT64_C(1000)

const char *cpu_max_text(uint64_t quota, char *buf, size_t size)
{
	uint64_t period = CPU_PERIOD_USEC;

	if (quota == LIMIT_INFINITY) {
		snprintf(buf, size, "max %" PRIu64, period);
		return buf;
	}
	if (quota * period / USEC_PER_SEC < CPU_QUOTA_MIN_USEC)
		period = CPU_QUOTA_MIN_USEC * USEC_PER_SEC / quota;
	if (period > USEC_PER_SEC)
		period = USEC_PER_SEC;
	snprintf(buf, size, "%" PRIu64 " %" PRIu64, quota * period / USEC_PER_SEC, period);
	return buf;
}

/* How the kernel is told a number; LIMIT_INFINITY is @none. */
static const struct kernel_text {
	const char *before, *after, *none;
} kernel_texts[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = { "memory.max=", "", "memory.max=max" },
	[LIMIT_SWAP] = { "memory.swap.max=", "", "memory.swap.max=max" },
	[LIMIT_PIDS] = { "pids.max=", "", "pids.max=max" },
	[LIMIT_IO_WEIGHT] = { "io.weight=\"default ", "\"", "nothing" },
	[LIMIT_IO_READ] = { "io.max=\"rbps=", "\" for each disk", "nothing" },
	[LIMIT_IO_WRITE] = { "io.max=\"wbps=", "\" for each disk", "nothing" },
};

const char *limit_kernel_text(enum limit limit, uint64_t value, char *buf, size_t size)
{
	const struct kernel_text *t = &kernel_texts[limit];
	char quota[CPU_MAX_TEXT_MAX];

	if (limit == LIMIT_CPU)
		snprintf(buf, size, "cpu.max=\"%s\"", cpu_max_text(value, quota, sizeof(quota)));
	else if (!t->before)
		snprintf(buf, size, "%s",
			 value == LIMIT_INFINITY ? "nothing" : "a timer of the supervisor");
	else if (value == LIMIT_INFINITY)
		snprintf(buf, size, "%s", t->none);
	else
		snprintf(buf, size, "%s%" PRIu64 "%s", t->before, value, t->after);
	return buf;
}

uint32_t limits_untold(const struct limits *asked, const struct limits *granted)
{
	uint32_t untold = 0;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t idle = limit_table[i].idle;

		if (granted->value[i] == idle &&
		    (asked->value[i] == LIMIT_UNSET || idle == LIMIT_INFINITY))
			untold |= 1u << i;
	}
	return untold;
}
