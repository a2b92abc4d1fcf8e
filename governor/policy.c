/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/policy.h"

#include <errno.h>
#include <unistd.h>

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes == LIMIT_INFINITY ? bytes : bytes & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static int check_value(enum limit limit, uint64_t value, uint64_t ceiling, struct error *e)
{
	const struct limit_info *info = &limit_table[limit];
	char asked[32], most[32];

	if (value > INT64_MAX && value != LIMIT_INFINITY) /* no parser makes it */
		return error_set(e, -ERANGE, "--%s: is too large", info->name);
	if (value < info->min)
		return error_set(e, -EINVAL, "--%s: %s is below %s, the least that works",
				 info->name, unit_format(info->unit, value, asked, sizeof(asked)),
				 unit_format(info->unit, info->min, most, sizeof(most)));
	if (value > ceiling)
		return error_set(e, -EPERM,
				 "--%s: %s is above %s, the ceiling in " CONFIG_PATH
				 "; ask for less, or ask the administrator to raise it",
				 info->name, unit_format(info->unit, value, asked, sizeof(asked)),
				 unit_format(info->unit, ceiling, most, sizeof(most)));
	return 0;
}

int policy_limits(const struct config *c, const struct access *access, const struct limits *asked,
		  struct limits *ret, struct error *e)
{
	struct limits merged;
	int r;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t value = asked->value[i];

		if (value == LIMIT_UNSET)
			value = c->defaults.value[i];
		r = check_value((enum limit)i, value, access_ceiling(c, access, (enum limit)i), e);
		if (r < 0)
			return r;
		merged.value[i] = limit_table[i].unit == UNIT_SIZE ? whole_pages(value) : value;
	}
	*ret = merged;
	return 0;
}
