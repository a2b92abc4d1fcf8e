/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon: the only writer of uids, firewall and scopes. One event loop, nothing in it blocks on
 * a client or on systemd.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "governor/config.h"
#include "governor/identity.h"
#include "governor/pair.h"
#include "governor/pin.h"
#include "governor/scope.h"
#include "nft/firewall.h"

struct run;

/* Of one network profile. */
struct profile_slice {
	char path[PATH_TEXT_MAX]; /* the slice's cgroup directory */
	struct pin pin;		  /* keeps its controllers on */
};

struct daemon {
	struct config *config; /* replaced as a whole by a reload */
	sd_event *event;
	struct identity_pool *pool;
	struct scopes *scopes;
	struct firewall *firewall;
	struct firewall_policy policy;
	struct sock_fprog filter;
	char slice_path[PATH_TEXT_MAX]; /* of harpe.slice */
	struct profile_slice slices[PROFILE_COUNT];
	int listen_fd;
	sd_event_source *listener, *retry, *quarantine;
	struct run *runs; /* oldest first */
	uint32_t n_runs;
	uint64_t last_serial;
	bool unverified; /* a uid came back since the last look */
	bool stopping;
};

/* Fills in the paths and ids of the slices, which systemd made. */
int daemon_find_slices(struct daemon *d, struct error *e);

/* Is the firewall in place: our table as committed, slice id fresh? When it is not (-ESTALE), all
 * guests are ended and it is rebuilt. Other errors: could not look. */
int daemon_check_policy(struct daemon *d, struct error *e);

/* Loads the table unowned and returns: for early boot, before there is a bus. A daemon that serves
 * has loaded it already, and owns it. */
int daemon_load_firewall_once(struct error *e);

/* Takes a uid back; it is free again when it was found clean, a moment later. */
void daemon_quarantine(struct daemon *d, uint32_t uid);

/* Looks at the quarantine now, when something came back since the last look. */
void daemon_verify_uids(struct daemon *d);

/* Reads the configuration anew; the old one stays when it is bad or would need a restart. */
int daemon_reload(struct daemon *d, struct error *e);

/* Serves until SIGTERM. Returns 0 or a negative errno with a sentence. */
int daemon_serve(struct error *e);
