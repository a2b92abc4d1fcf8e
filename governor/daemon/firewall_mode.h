/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `harpe-gov firewall` does, in the daemon's program: it knows the configuration and speaks
 * netlink. It is another process than the daemon that may be running, and only looks at what that
 * one owns.
 */
#pragma once

#include "governor/daemon/daemon.h"
#include "nft/text.h"

/* Exit status of the verb, as of audits. */
enum firewall_status {
	FIREWALL_SAME = 0,    /* in force as wanted; it would pass */
	FIREWALL_OTHER = 1,   /* not as wanted; it would be dropped */
	FIREWALL_OPEN = 2,    /* it cannot be said */
	FIREWALL_STOPPED = 3, /* could not run */
};

/* The words behind "harpe-govd --firewall": show, export, apply, remove, or explain and what
 * firewall_explain() wants. Prints its own errors. Returns an exit status. */
int firewall_mode(char **words);

/* The cgroups that the policy of @d names, at most @max. */
size_t firewall_cgroups(const struct daemon *d, struct text_cgroup *ret, size_t max);

#define FIREWALL_CGROUPS_MAX (SLICES_MAX + 1)

/* Where is a packet to go, and whose is it? */
struct firewall_question {
	const char *profile; /* NULL: a program outside of all profiles */
	const char *uid;     /* NULL: the first of the pool */
	const char *entry;   /* "tcp 192.0.2.10:443" */
	bool json;
};

/* Prints the way of the packet through what is in force and what is wanted. Returns an exit
 * status, or a negative errno with a sentence. */
int firewall_explain(const struct daemon *d, const struct firewall_question *q, struct error *e);
