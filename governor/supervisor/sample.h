/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest's memory is made of (memory.stat), looked at while it runs, since all of that falls
 * to nothing when it dies, and no kernel keeps a peak of it.
 *
 * It is looked at often in the beginning and then ever more seldom, so that a guest of any age was
 * seen in the last quarter of its life, or minute; and, once between two such looks, when the
 * memory limit is hit. What comes and goes in between is not seen. A look is dear (the kernel sums
 * up all that changed in any cgroup), and a thousand guests that sleep have to cost next to
 * nothing.
 */
#pragma once

#include "common/report.h"
#include "governor/guest/cgroup.h"

struct sampler {
	const struct cgroup *cgroup;
	struct report *report;
	int timer;  /* to be polled for POLLIN */
	int events; /* to be polled for POLLPRI (memory.events), or -1 */
	uint64_t started_usec;
};

#define SAMPLER_NULL ((struct sampler){ .timer = -1, .events = -1 })

/* Starts; 0 or a negative errno. @cgroup and @report must live as long. */
int sampler_start(struct sampler *s, const struct cgroup *cgroup, struct report *report);
void sampler_close(struct sampler *s);

/* The timer fired: looks, and sets it again. */
void sampler_tick(struct sampler *s);

/* The limit was hit: looks. Returns 1 when the kernel has killed for it: the first process may wait
 * for a throttled disk, and so not be dead for long. */
int sampler_hit(struct sampler *s);
