/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/PID/status, and cgroup files, flat-keyed or nested: text that a process can influence by
 * its name, or that only the kernel writes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "governor/guest/cgroup_io.h"
#include "governor/guest/confine.h"

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

/* The value of a line is at least the smallest and at most the sum of all. */
static void read_io(const char *text)
{
	uint64_t value, least, sum;
	int r = io_smallest(text, "rbytes", &least);

	if (io_sum(text, "rbytes", &sum) == 0 && r < 0)
		abort();
	if (io_value_of(text, "8:0", "rbytes", &value) < 0)
		return;
	if (!strstr(text, "8:0 ") || !strstr(text, " rbytes="))
		abort();
	if (r == 0 && value < least)
		abort();
	if (io_sum(text, "rbytes", &sum) == 0 && value > sum)
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
	read_io(text);
	free(text);
	return 0;
}
