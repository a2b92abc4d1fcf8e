/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the host must have before harpe-govd changes anything. Probes try, they never look at a
 * version number, and leave nothing behind. The firewall needs none: its one transaction either
 * happens whole or names what the kernel lacks (nft/refusal.h).
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* All probes, in less than 5 s; with @firewall_only those that the table of the early boot needs.
 * 0, or a negative errno with one sentence: what is missing, and what to do. */
int preflight_check(bool firewall_only, struct error *e);

/* ---- the decisions, on what the kernel said ---- */

/* statfs(2) types of /sys/fs/cgroup and of what hybrid hosts have below it; 0 = nothing there. */
int preflight_hierarchy(long type, long unified_type, struct error *e);

/* cgroup.controllers of the root. */
int preflight_controllers(const char *available, struct error *e);

/* /proc/self/uid_map */
int preflight_user_namespace(const char *uid_map, struct error *e);

/* /proc/self/status */
int preflight_capabilities(const char *status, struct error *e);

/* The errno of mount_setattr(2) for an idmap by a descriptor that is not open. */
int preflight_idmap(int number, struct error *e);

/* The errno of unshare(2) for a user namespace, 0 = it worked. */
int preflight_user_namespaces(int number, struct error *e);

/* The controllers that every guest needs; io is used when it is there. NULL at the end. */
extern const char *const preflight_needed[];
