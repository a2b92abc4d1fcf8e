/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/clock.h"

#include "common/units.h"

uint64_t clock_usec(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

struct timespec clock_timespec(uint64_t usec)
{
	return (struct timespec){ .tv_sec = (time_t)(usec / USEC_PER_SEC),
				  .tv_nsec = (long)(usec % USEC_PER_SEC) * 1000 };
}
