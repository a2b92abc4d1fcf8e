/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers from outside: sizes, durations, CPU quotas, counts. One parser for the command line, the
 * configuration and kernel text; the suffixes are those of systemd.resource-control(5) and
 * systemd.time(7).
 *
 * "infinity" (and "max", the kernel's word) is LIMIT_INFINITY everywhere. Signs, blanks, fractions
 * (except of CPU) and numbers above INT64_MAX are -EINVAL or -ERANGE; nothing is clamped silently.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LIMIT_INFINITY UINT64_MAX
#define LIMIT_UNSET    (UINT64_MAX - 1) /* "not asked for"; no parser returns it */

#define USEC_PER_SEC UINT64_C(1000000)

enum unit_kind {
	UNIT_COUNT,    /* "128": 1 or more */
	UNIT_SIZE,     /* "512M", "1G", "4096": bytes; K M G T are powers of 1024 */
	UNIT_DURATION, /* "30s", "500ms", "5min", "2h", "1d", "1h30min", "30" = seconds:
			  microseconds */
	UNIT_CPU,      /* "50%", "200%", "0.5%": microseconds of CPU time per second */
	UNIT_RATE,     /* "10M": bytes per second, written as UNIT_SIZE */
};

/* Parses @text whole. Returns 0, -EINVAL (not of this kind) or -ERANGE (does not fit). */
int unit_parse(enum unit_kind kind, const char *text, uint64_t *ret);

/* The text of @value: what unit_parse() reads back, except that sizes and durations that no unit
 * tells in three digits are rounded to them for people ("1.5G"). "infinity" for LIMIT_INFINITY. */
const char *unit_format(enum unit_kind kind, uint64_t value, char *buf, size_t size);

/* What a value of this kind looks like, for error messages: "a size such as 512M". */
const char *unit_expected(enum unit_kind kind);

/* A decimal number at the start of @text, ended by NUL, blank or newline; "max" is
 * LIMIT_INFINITY. For kernel files. */
int parse_u64_prefix(const char *text, uint64_t *ret);

/* "QUOTA PERIOD", microseconds both, as cpu.max has them (cgroup-v2.rst); a quota of LIMIT_INFINITY
 * is none. */
int parse_cpu_max(const char *text, uint64_t *ret_quota, uint64_t *ret_period);

/* What that makes of a second, microseconds; LIMIT_INFINITY stays. */
uint64_t cpu_per_second(uint64_t quota, uint64_t period);
