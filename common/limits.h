/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The limits of a guest, in one table: names, units, wire attributes and report members come from
 * here. The keys of the configuration are in config_keys.c, the options in verb_run.c; guest/ and
 * scope_message.c put them in force.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/units.h"

enum limit {
	LIMIT_MEMORY,	 /* memory.max, bytes */
	LIMIT_SWAP,	 /* memory.swap.max, bytes */
	LIMIT_CPU,	 /* cpu.max, microseconds per second of wall clock */
	LIMIT_PIDS,	 /* pids.max, processes and threads */
	LIMIT_TIME,	 /* wall clock, microseconds */
	LIMIT_CPU_TIME,	 /* CPU time of the whole tree, microseconds */
	LIMIT_IO_WEIGHT, /* io.weight */
	LIMIT_IO_READ,	 /* io.max rbps, of each disk, bytes per second */
	LIMIT_IO_WRITE,	 /* io.max wbps, the same */
	LIMIT_COUNT,
};

struct limits {
	uint64_t value[LIMIT_COUNT];
};

#define MEMORY_MIN	  (8u << 20) /* of a guest */
#define IO_WEIGHT_DEFAULT 100	     /* the kernel's own (cgroup-v2.rst, io.weight) */

/* Where the value of each limit comes from: LIMIT_ASKED, LIMIT_BUILT_IN, "FILE:LINE" of the
 * configuration, or the path of a cgroup above that allows less. "" = unknown. */
#define ORIGIN_TEXT_MAX 128
#define LIMIT_ASKED	"request"
#define LIMIT_BUILT_IN	"built in"
struct limit_origins {
	char text[LIMIT_COUNT][ORIGIN_TEXT_MAX];
};

struct limit_info {
	const char *name; /* "memory": --memory, and the key in [defaults] and [ceiling] */
	const char *json; /* "memory_bytes": the report's member */
	enum unit_kind unit;
	uint64_t min;
	uint64_t max;  /* LIMIT_INFINITY: none, and "infinity" is a value */
	uint64_t idle; /* what the kernel does when it is told nothing: then a missing controller
			  is no matter; LIMIT_UNSET: it must be there in any case */
	uint64_t standard, ceiling; /* built in: what harpe-gov.conf(5) may replace */
	const char *help;
};

extern const struct limit_info limit_table[LIMIT_COUNT];

/* All LIMIT_UNSET. */
void limits_clear(struct limits *l);

/* What is written to cpu.max for @quota microseconds per second. systemd spreads a CPU quota over
 * 100 ms, and over longer, up to 1 s, when less than 1 ms of it would be left
 * (systemd.resource-control(5), CPUQuotaPeriodSec=). Returns @buf. */
#define CPU_MAX_TEXT_MAX 48
const char *cpu_max_text(uint64_t quota, char *buf, size_t size);

/* What the kernel is told, "memory.max=536870912", or who watches over it. */
const char *limit_kernel_text(enum limit limit, uint64_t value, char *buf, size_t size);

/* Bit N: the kernel need not be told limit N, so that it does not matter whether it can be: nobody
 * @asked, and @granted is what it does by itself. */
uint32_t limits_untold(const struct limits *asked, const struct limits *granted);

/* Parses @text for @limit. The sentence starts with the limit's name and says what would do:
 * `memory: "64Q" is not a size such as 512M`; callers put the place ("--") in front. */
int limit_parse(enum limit limit, const char *text, uint64_t *ret, struct error *e);
