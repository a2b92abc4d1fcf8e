/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/part.h"

#include <stdio.h>

unsigned int part_count(uint32_t uids)
{
	uint32_t n = uids / PART_SCOPES + 1; /* a uid that came back can have a scope still */

	return n < PARTS_MAX ? n : PARTS_MAX;
}

unsigned int part_with_room(const uint32_t n_scopes[], unsigned int n_parts)
{
	unsigned int i = 0;

	while (i + 1 < n_parts && n_scopes[i] >= PART_SCOPES)
		i++;
	return i;
}

const char *part_unit(const char *profile, unsigned int part, char buf[PART_UNIT_MAX])
{
	if (part == 0)
		snprintf(buf, PART_UNIT_MAX, "harpe-%s.slice", profile);
	else
		snprintf(buf, PART_UNIT_MAX, "harpe-%s-%u.slice", profile, part);
	return buf;
}

void part_path(const char *slice, const char *profile, unsigned int part, char buf[PATH_TEXT_MAX])
{
	char unit[PART_UNIT_MAX];

	snprintf(buf, PATH_TEXT_MAX, "%s%s%s", slice, part ? "/" : "",
		 part ? part_unit(profile, part, unit) : "");
}
