/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transient scopes, by sd-bus (org.freedesktop.systemd1(5)). Asynchronous: the daemon never waits
 * for PID 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "common/limits.h"
#include "governor/supervisor/pair.h"

#define SLICE	       "harpe.slice" /* all guests; aggregate limits, the firewall's match */
#define SERVICE	       "harpe-gov.service"
#define SCOPE_NAME_MAX 64

struct scopes; /* the connection and the jobs under way */

/* @r is 0 once the scope is active and -EINPROGRESS when systemd took too long to say so: the
 * caller need not wait, but a last call follows once it is known what became of it. Any other
 * negative errno: there is no scope. Both come with a sentence. */
typedef void (*scope_callback)(void *userdata, int r, const struct error *e);

/* Connects to the system bus and joins @event. */
int scopes_new(sd_event *event, struct scopes **ret, struct error *e);
void scopes_free(struct scopes *s);

struct scope_spec {
	const char *name, *slice, *description;
	pid_t pid; /* the process that it is made around */
	const struct limits *limits;
};

/* Starts a scope; @callback comes later, unless scope_forget() was called. Until its last call the
 * process must not be reaped: systemd may look at its number any time. */
int scope_start(struct scopes *s, const struct scope_spec *spec, scope_callback callback,
		void *userdata, struct error *e);

/* No callback for @userdata any more. */
void scope_forget(struct scopes *s, const void *userdata);

/* Asks systemd to stop the unit; nobody waits for it. */
void scope_stop(struct scopes *s, const char *name);

/* Asks systemd for ActiveState of the unit; @handler gets the answer, unless *ret is given up. A
 * negative errno when it cannot be asked. */
int scope_ask_active(struct scopes *s, const char *name, sd_bus_message_handler_t handler,
		     void *userdata, sd_bus_slot **ret);

/* Does that answer leave it open that the unit is active? No: systemd stops it, or did. */
bool scope_may_be_active(sd_bus_message *answer);

/* The cgroup directory of the scope @name that @pid is in, from /proc: systemd's word is not
 * enough, a dead process can be "attached" (the scope would then never end). -ESRCH when @pid is
 * not in it. */
int scope_path(const char *name, pid_t pid, char path[PATH_TEXT_MAX], struct error *e);

/* Is systemd's program attached to the scope's cgroup @path? It carries the rules of all slices
 * above; slices themselves have none. 0 or -ESTALE. */
int scope_check_ip_deny(const char *path, struct error *e);
