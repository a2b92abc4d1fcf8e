/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

const struct limit_info limit_table[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = { "memory", "memory_bytes", UNIT_SIZE, 8u << 20, UINT64_C(512) << 20,
			   UINT64_C(4) << 30, "memory of all processes together" },
	[LIMIT_SWAP] = { "swap", "swap_bytes", UNIT_SIZE, 0, 0, 0, "swap on top of the memory" },
	[LIMIT_CPU] = { "cpu", "cpu_usec_per_sec", UNIT_CPU, USEC_PER_SEC / 1000, USEC_PER_SEC,
			4 * USEC_PER_SEC, "share of CPU time; 100% is one CPU" },
	[LIMIT_PIDS] = { "pids", "pids", UNIT_COUNT, 1, 128, 1024, "processes and threads" },
	[LIMIT_TIME] = { "time", "time_usec", UNIT_DURATION, 1000, 600 * USEC_PER_SEC,
			 86400 * USEC_PER_SEC, "wall-clock time" },
	[LIMIT_CPU_TIME] = { "cpu-time", "cpu_time_usec", UNIT_DURATION, 1000, LIMIT_INFINITY,
			     LIMIT_INFINITY, "CPU time of all processes together" },
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
	if (r == -ERANGE && strspn(text, "0") != strlen(text))
		return error_set(e, r, "%s: \"%s\" is too large; \"infinity\" is no limit",
				 info->name, shown);
	return error_set(e, r, "%s: \"%s\" is not %s", info->name, shown,
			 unit_expected(info->unit));
}

int limit_parse(enum limit limit, const char *text, uint64_t *ret, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char shown[72], min[32];
	uint64_t v;
	int r;

	r = unit_parse(info->unit, text, &v);
	if (r < 0)
		return refuse_text(info, text, r, e);
	if (v < info->min)
		return error_set(e, -ERANGE, "%s: \"%s\" is too little: %s is the least",
				 info->name, text_escape(text, shown, sizeof(shown)),
				 unit_format(info->unit, info->min, min, sizeof(min)));
	*ret = v;
	return 0;
}

#define CPU_PERIOD_USEC	   UINT64_C(100000)
#define CPU_QUOTA_MIN_USEC UINT64_C(1000)

static void cpu_max_text(uint64_t quota, char *buf, size_t size)
{
	uint64_t period = CPU_PERIOD_USEC;

	if (quota == LIMIT_INFINITY) {
		snprintf(buf, size, "cpu.max=\"max %" PRIu64 "\"", period);
		return;
	}
	if (quota * period / USEC_PER_SEC < CPU_QUOTA_MIN_USEC)
		period = CPU_QUOTA_MIN_USEC * USEC_PER_SEC / quota;
	if (period > USEC_PER_SEC)
		period = USEC_PER_SEC;
	snprintf(buf, size, "cpu.max=\"%" PRIu64 " %" PRIu64 "\"", quota * period / USEC_PER_SEC,
		 period);
}

const char *limit_kernel_text(enum limit limit, uint64_t value, char *buf, size_t size)
{
	static const char *const files[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = "memory.max",
		[LIMIT_SWAP] = "memory.swap.max",
		[LIMIT_PIDS] = "pids.max",
	};

	if (limit == LIMIT_CPU)
		cpu_max_text(value, buf, size);
	else if (!files[limit])
		snprintf(buf, size, "%s",
			 value == LIMIT_INFINITY ? "nothing" : "a timer of the supervisor");
	else if (value == LIMIT_INFINITY)
		snprintf(buf, size, "%s=max", files[limit]);
	else
		snprintf(buf, size, "%s=%" PRIu64, files[limit], value);
	return buf;
}
