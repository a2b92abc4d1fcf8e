/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "governor/guest/cgroup_counters.h"

#define FIRST_USEC   20000u
#define LONGEST_USEC (60 * USEC_PER_SEC)

static int arm(const struct sampler *s)
{
	uint64_t wait = (clock_usec(CLOCK_MONOTONIC) - s->started_usec) / 3;
	struct itimerspec t = { 0 };

	wait = wait < FIRST_USEC ? FIRST_USEC : wait > LONGEST_USEC ? LONGEST_USEC : wait;
	t.it_value = clock_timespec(wait);
	return timerfd_settime(s->timer, 0, &t, NULL) < 0 ? -errno : 0;
}

/* Reading is what makes poll(2) wait for the next change. 1 = there was a kill. */
static int read_events(const struct sampler *s)
{
	char text[512];
	uint64_t kills;
	ssize_t n = s->events < 0 ? -1 : pread(s->events, text, sizeof(text) - 1, 0);

	if (n < 0)
		return 0; /* the cgroup is gone: so is the guest */
	text[n] = '\0';
	return keyed_u64(text, "oom_kill", &kills) == 0 && kills > 0;
}

int sampler_start(struct sampler *s, const struct cgroup *cgroup, struct report *report)
{
	int r;

	s->cgroup = cgroup;
	s->report = report;
	s->started_usec = clock_usec(CLOCK_MONOTONIC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = s->timer < 0 ? -errno : arm(s);
	if (r < 0)
		return r;
	s->events = openat(cgroup->guest_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	read_events(s);
	return 0;
}

void sampler_close(struct sampler *s)
{
	close_fd(&s->timer);
	close_fd(&s->events);
	*s = SAMPLER_NULL;
}

void sampler_tick(struct sampler *s)
{
	cgroup_sample_memory(s->cgroup, s->report);
	arm(s); /* at worst it is not looked at again */
}

int sampler_hit(struct sampler *s)
{
	cgroup_sample_memory(s->cgroup, s->report);
	return read_events(s);
}
