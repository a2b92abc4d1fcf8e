/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What systemd is told about a scope: the call of StartTransientUnit; and about a slice. */
#pragma once

#include <systemd/sd-bus.h>

#include "governor/daemon/scope.h"

#define MANAGER_NAME	  "org.freedesktop.systemd1"
#define MANAGER_PATH	  "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"

/* Builds the call that starts @spec on @bus; the caller unreferences @ret. */
int scope_message_start(sd_bus *bus, const struct scope_spec *spec, sd_bus_message **ret);
