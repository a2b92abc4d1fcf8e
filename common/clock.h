/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>
#include <time.h>

/* What clock_gettime(2) says of @clock, in microseconds. */
uint64_t clock_usec(clockid_t clock);

/* The other way round: @usec as system calls take a time. */
struct timespec clock_timespec(uint64_t usec);
