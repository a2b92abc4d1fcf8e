/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/limits.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"

const struct limit_info limit_table[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = { "memory", "memory_bytes", UNIT_SIZE, 8u << 20,
			   "memory of all its processes together" },
	[LIMIT_SWAP] = { "swap", "swap_bytes", UNIT_SIZE, 0, "swap on top of the memory" },
	[LIMIT_CPU] = { "cpu", "cpu_usec_per_sec", UNIT_CPU, USEC_PER_SEC / 1000,
			"share of CPU time; 100% is one CPU" },
	[LIMIT_PIDS] = { "pids", "pids", UNIT_COUNT, 1, "processes and threads" },
	[LIMIT_TIME] = { "time", "time_usec", UNIT_DURATION, 1000, "wall-clock time" },
	[LIMIT_CPU_TIME] = { "cpu-time", "cpu_time_usec", UNIT_DURATION, 1000,
			     "CPU time of all its processes together" },
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
