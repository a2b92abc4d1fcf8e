/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon: the only writer of uids, firewall and scopes. One event loop, nothing in it blocks on
 * a client or on systemd.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "governor/daemon/config.h"
#include "governor/daemon/identity.h"
#include "governor/daemon/part.h"
#include "governor/daemon/pin.h"
#include "governor/daemon/scope.h"
#include "governor/guest/confine.h"
#include "governor/guest/view_base.h"
#include "governor/supervisor/pair.h"
#include "nft/firewall.h"
#include "nft/monitor.h"

struct run;

/* One part of a profile's slice, see part.h. */
struct part {
	struct daemon *d;
	struct pin pin;		/* keeps its controllers on */
	sd_event_source *watch; /* of the directory with this id */
	uint64_t watched;
};

/* The slice of one network profile. It stays when a reload takes the profile away: guests may be in
 * it. */
struct profile_slice {
	char profile[PROFILE_NAME_MAX + 1];
	char unit[PROFILE_NAME_MAX + 16];
	char path[PATH_TEXT_MAX]; /* its cgroup directory */
	uint64_t id;		  /* its cgroup id, as the firewall knows it */
	bool own_network, resolver;
	unsigned int filter; /* which of the daemon's filters */
	struct part parts[PARTS_MAX];
};

/* More than there can be profiles: those of former configurations stay. */
#define SLICES_MAX (2 * CONFIG_PROFILES_MAX)

struct daemon {
	struct config *config; /* replaced as a whole by a reload */
	sd_event *event;
	struct identity_pool *pool;
	struct scopes *scopes;
	struct firewall *firewall;
	struct firewall_policy policy; /* points into config */
	struct firewall_profile profiles[CONFIG_PROFILES_MAX];
	struct sock_fprog filters[CONFINE_PROGRAMS]; /* those that a profile needs, or needed */
	struct view_base view;			     /* what every guest sees of the host */
	int ground;				     /* view_ground_make(): what that is built on */
	bool new_filter;			     /* since means_fd was written */
	uint32_t means;				     /* counts the changes of both */
	int means_fd;				     /* both, as supervisors map them (means.h) */
	int program;				     /* of supervisors */
	char slice_path[PATH_TEXT_MAX];		     /* of harpe.slice */
	struct profile_slice *slices[SLICES_MAX];
	size_t n_slices;
	int listen_fd;
	int mountinfo; /* of the host; and what it said (daemon_mounts.h) */
	uint64_t mounts_seen;
	int monitor;		  /* of the ruleset */
	struct monitor_news news; /* what was heard since the last look */
	sd_event_source *look;	  /* at the ruleset, soon */
	sd_event_source *listener, *need_spare, *quarantine, *slots;
	struct run *runs, *last_run; /* oldest first */
	struct run *spare;	     /* of them: its supervisor waits for a connection (spare.h) */
	uint32_t n_runs;
	uint64_t last_serial;
	uint32_t slot_epoch;  /* counts the changes of what slots are made with */
	bool unverified;      /* a uid came back since the last look */
	uint64_t looked_usec; /* when all of the quarantine was looked at, CLOCK_MONOTONIC */
	bool stopping;
};

/* Reads the files; to be freed with daemon_free_config(). */
int daemon_read_config(struct config **ret, struct error *e);
void daemon_free_config(struct config **config);

/* Finds the slices of the configuration's profiles, which systemd made, and makes the firewall's
 * policy of both. */
int daemon_make_policy(struct daemon *d, struct error *e);

/* The same, and puts it in force; the old one stays when that fails. */
int daemon_load_policy(struct daemon *d, struct error *e);

void daemon_free_policy(struct daemon *d);

/* The slice of a profile that the configuration has, or had; NULL for others. */
struct profile_slice *daemon_slice(const struct daemon *d, const char *profile);

/* Watches all profiles' slices and starts their pins, where that is not so already. */
int daemon_serve_slices(struct daemon *d, struct error *e);

/* The same again: what was lost since comes back. */
void daemon_keep_slices(struct daemon *d);

/* A scope is about to be in the part of @slice: starts its pin if there is none. */
void daemon_keep_part(struct daemon *d, struct profile_slice *slice, unsigned int number);

/* Watches the part, in which a scope is. Without (which the journal tells) it takes longer until it
 * is seen that one is gone. */
void daemon_watch_part(struct daemon *d, struct profile_slice *slice, unsigned int number);

/* The end of all that. */
void daemon_leave_slices(struct daemon *d);

/* Is the firewall in place for guests in @slice: our table as committed, slice ids fresh? When it
 * is not (-ESTALE), all guests are ended and it is rebuilt. Other errors: could not look. */
int daemon_check_policy(struct daemon *d, const struct profile_slice *slice, struct error *e);

/* Somebody committed something to the host's ruleset: looks whether our table is still what it must
 * be, with the consequences of daemon_check_policy(). */
void daemon_ruleset_changed(struct daemon *d);

/* Loads the table unowned and returns: for early boot, before there is a bus, and when a daemon was
 * lost with it. A daemon that serves has loaded it already, and owns it. */
int daemon_load_firewall_once(struct error *e);

/* Makes the pool; uids that something on the host has are in quarantine. */
int daemon_make_pool(struct daemon *d, struct error *e);

/* The timer behind the following: a negative errno when there is none. */
int daemon_add_pool_source(struct daemon *d);

/* Takes a uid back; it is free again when it was found clean, a moment later. */
void daemon_quarantine(struct daemon *d, uint32_t uid);

/* Looks at the quarantine now, when something came back since the last look. */
void daemon_verify_uids(struct daemon *d);

/* Reads the configuration anew; the old one stays when it is bad or would need a restart. */
int daemon_reload(struct daemon *d, struct error *e);

/* Serves until SIGTERM. Returns 0 or a negative errno with a sentence. */
int daemon_serve(struct error *e);
