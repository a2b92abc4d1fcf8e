/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/PID/status, and flat-keyed cgroup files: text that a process can influence by its name.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "governor/confine.h"

#define UID 90000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is there a line that starts with @line? */
static int has_line(const char *text, const char *line)
{
	for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
		if (strncmp(text, line, strlen(line)) == 0)
			return 1;
	return 0;
}

/* Less than confine_verify_status() asks for, and written another way. */
static void check_guest(const char *text)
{
	static const char *const lines[] = {
		"Uid:\t90000\t90000\t90000\t90000",
		"Gid:\t90000\t90000\t90000\t90000",
		"Groups:\t",
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!has_line(text, lines[i]))
			abort();
}

static void read_key(const char *text, const char *key)
{
	char line[64];
	uint64_t value;

	snprintf(line, sizeof(line), "%s ", key);
	if (keyed_u64(text, key, &value) == 0 && !has_line(text, line))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct error e = ERROR_NULL;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	r = confine_verify_status(text, UID, &e);
	if (r == 0)
		check_guest(text);
	else if (!e.text[0])
		abort();
	read_key(text, "usage_usec");
	read_key(text, "oom_kill");
	free(text);
	return 0;
}
