/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slices of the network profiles, as units of systemd's. The built-in ones have a unit file;
 * those of the configuration are transient (org.freedesktop.systemd1(5), StartTransientUnit), so
 * that drop-ins of the administrator's apply to them as well. Each carries the profile's addresses
 * for systemd's own filter: IPAddressDeny=any, IPAddressAllow= (systemd.resource-control(5)).
 *
 * All of this asks and waits: for a process of its own, and while the daemon starts.
 */
#pragma once

#include "governor/daemon/config.h"

/* Makes or changes the slices of all profiles in @c that are not built in. */
int slices_make(const struct config *c, struct error *e);

/* Does systemd hold IPAddressDeny=any for every profile's slice, and no IPAddressAllow= in it, in
 * its parts or above that is not the profile's? -ESTALE names the slice. */
int slices_check(const struct config *c, struct error *e);

/* One rule of systemd's: addresses that are allowed or denied. */
struct ip_rule {
	int family;
	uint8_t address[16]; /* IPv4 uses the first 4 bytes */
	uint32_t prefix;
};

/* The pure part: may @rule stand in IPAddressAllow= for @p? */
bool slices_rule_is_due(const struct profile *p, const struct ip_rule *rule);
