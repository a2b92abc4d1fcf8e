/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest says to `harpe-gov verify`, in pieces whose size is the first byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "governor/verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const ids[] = { "network.tcp", "limits.memory", "" };

static void take(void *userdata, char *line)
{
	if (strlen(line) >= SAID_LINE_MAX || strchr(line, '\n') || strchr(line, '\033'))
		abort();
	said_add(line, ids, ARRAY_SIZE(ids), userdata);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said said[ARRAY_SIZE(ids)] = { 0 };
	struct said_lines lines = { .used = 0 };
	size_t piece = size ? data[0] + 1u : 1;

	for (size_t at = 1; at < size; at += piece)
		said_feed(&lines, (const char *)data + at, size - at < piece ? size - at : piece,
			  take, said);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (said[i].n > 2 ||
		    strnlen(said[i].outcome, SAID_OUTCOME_MAX) == SAID_OUTCOME_MAX ||
		    strnlen(said[i].detail, SAID_DETAIL_MAX) == SAID_DETAIL_MAX)
			abort();
	return 0;
}
