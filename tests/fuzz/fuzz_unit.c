/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers from outside: the first byte is the kind, the rest the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A number fits 63 bits or is infinite. Sizes and durations are rounded when they are printed; the
 * others read back. */
static void read_unit(enum unit_kind kind, const char *text)
{
	char shown[64];
	uint64_t value, back;

	if (unit_parse(kind, text, &value) < 0)
		return;
	if (value > INT64_MAX && value != LIMIT_INFINITY)
		abort();
	unit_format(kind, value, shown, sizeof(shown));
	if (kind != UNIT_COUNT && kind != UNIT_CPU)
		return;
	if (value != INT64_MAX && (unit_parse(kind, shown, &back) < 0 || back != value))
		abort();
}

static void read_limit(enum limit limit, const char *text)
{
	struct error e = ERROR_NULL;
	uint64_t value;
	int r = limit_parse(limit, text, &value, &e);

	if (r < 0 ? !e.text[0] : value < limit_table[limit].min || value > limit_table[limit].max)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size ? malloc(size) : NULL;
	uint64_t value;

	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	read_unit((enum unit_kind)(data[0] % (UNIT_RATE + 1)), text);
	read_limit((enum limit)(data[0] % LIMIT_COUNT), text);
	parse_u64_prefix(text, &value);
	free(text);
	return 0;
}
