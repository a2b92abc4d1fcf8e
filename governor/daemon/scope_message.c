/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/scope_message.h"

#include <signal.h>

#define STOP_TIMEOUT_USEC  (2 * USEC_PER_SEC) /* SIGKILL is the first signal already */
#define RUNTIME_GRACE_USEC (30 * USEC_PER_SEC)

static uint64_t backstop_usec(const struct limits *l)
{
	uint64_t time = l->value[LIMIT_TIME];

	return time == LIMIT_INFINITY ? LIMIT_INFINITY : time + RUNTIME_GRACE_USEC;
}

/* What every scope has, whatever its limits: systemd's own last lines of defence are that the scope
 * is stopped with the daemon (BindsTo), after it (Before: units stop in reverse order) so that the
 * daemon can end the guest itself and say why, and killed at once when it is stopped. */
static int append_fixed(sd_bus_message *m, const struct scope_spec *spec)
{
	int r = sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)", "PIDs", "au", 1,
				      (uint32_t)spec->pid, "Slice", "s", spec->slice, "Description",
				      "s", spec->description, "CollectMode", "s",
				      "inactive-or-failed", "BindsTo", "as", 1, SERVICE, "Before",
				      "as", 1, SERVICE, "DefaultDependencies", "b", 1);

	if (r < 0)
		return r;
	return sd_bus_message_append(m, "(sv)(sv)(sv)(sv)", "DelegateControllers", "as", 4, "cpu",
				     "memory", "pids", "io", "KillSignal", "i", SIGKILL,
				     "TimeoutStopUSec", "t", STOP_TIMEOUT_USEC, "TasksMax", "t",
				     UINT64_MAX);
}

/* UINT64_MAX is "no limit" on both sides. */
static int append_limits(sd_bus_message *m, const struct limits *l)
{
	return sd_bus_message_append(
		m, "(sv)(sv)(sv)(sv)(sv)", "MemoryMax", "t", l->value[LIMIT_MEMORY],
		"MemorySwapMax", "t", l->value[LIMIT_SWAP], "CPUQuotaPerSecUSec", "t",
		l->value[LIMIT_CPU], "IOWeight", "t", l->value[LIMIT_IO_WEIGHT], "RuntimeMaxUSec",
		"t", backstop_usec(l));
}

int scope_message_start(sd_bus *bus, const struct scope_spec *spec, sd_bus_message **ret)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, MANAGER_NAME, MANAGER_PATH,
					       MANAGER_INTERFACE, "StartTransientUnit");

	if (r >= 0)
		r = sd_bus_message_append(m, "ss", spec->name, "fail");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = append_fixed(m, spec);
	if (r >= 0)
		r = append_limits(m, spec->limits);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r < 0) {
		sd_bus_message_unref(m);
		return r;
	}
	*ret = m;
	return 0;
}
