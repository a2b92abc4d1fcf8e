/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The firewall of the guests: one table, one output chain that drops what the pool's uids send,
 * whatever happens elsewhere on the host.
 *
 * This library knows uids and cgroup ids; nothing of guests. It speaks netlink itself (libnftnl for
 * the objects, libmnl for the wire) and never runs a program. Everything it changes goes in one
 * transaction: a half-applied table is never visible.
 *
 * The table, in nft's words:
 *
 *	table inet harpe_gov {                          # flags owner while a daemon holds it
 *		set pool {
 *			type uid
 *			size 256                        # as many as there are elements
 *			counter                         # one per element: a guest's own drops
 *			elements = { 90000, 90001, ... }
 *		}
 *		set strays {                            # filled by the kernel, not by commits
 *			type cgroupsv2
 *			size 65535; flags dynamic,timeout; timeout 1d
 *		}
 *		chain output {
 *			type filter hook output priority -10; policy accept;
 *			meta skuid @pool drop
 *			socket cgroupv2 level 1 "harpe.slice" update @strays { socket cgroupv2 level
 *3 counter } socket cgroupv2 level 1 "harpe.slice" counter drop
 *		}
 *	}
 *
 * Why two matches: `meta skuid` does not see packets of sockets without an open file (orphans after
 * close(2), sockets made inside the kernel for AF_SMC or AF_RXRPC), the cgroup of the socket's
 * creator does. Why positive matches only: a packet without an owner must never be dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define FIREWALL_TABLE	  "harpe_gov"
#define FIREWALL_PRIORITY (-10) /* before filter (0): a foreign accept cannot come first */
#define FIREWALL_UNKNOWN  UINT64_MAX

struct firewall_policy {
	uint32_t first_uid, uid_count; /* the pool */
	uint64_t slice_id;	       /* cgroup id (st_ino) of harpe.slice */
	uint32_t slice_level;	       /* its depth: 1. Levels are counted from the root of ... */
	uint32_t scope_level;	       /* ... our cgroup namespace. A guest's scope: 3 */
};

struct firewall;

/* Opens a netlink socket of its own. */
int firewall_open(struct firewall **ret, struct error *e);

/* Goes on with a socket that an earlier process kept (the service manager's fd store), and so
 * with the table that it owns. Takes @fd over in every case. */
int firewall_adopt(int fd, struct firewall **ret, struct error *e);

void firewall_free(struct firewall *fw);
int firewall_fd(const struct firewall *fw);

/* Replaces the table by @policy in one transaction and reads it back. With @owned the table belongs
 * to this socket: nobody else can change it and it disappears when the last copy of the socket is
 * closed. -EPERM: another socket owns the table. -EOPNOTSUPP, -EPROTONOSUPPORT, -ENOENT: the kernel
 * lacks what the sentence names. */
int firewall_load(struct firewall *fw, const struct firewall_policy *policy, bool owned,
		  struct error *e);

/* Removes the table; fine when there is none. */
int firewall_remove(struct firewall *fw, struct error *e);

/* Is the kernel's table what firewall_load() committed? One round trip while the table is owned and
 * nothing on the host committed anything (generation id), a whole comparison otherwise. 0 = yes;
 * -ESTALE = no, the sentence says what differs; other negative errno = could not look (-EINVAL:
 * nothing was loaded yet). */
int firewall_check(struct firewall *fw, struct error *e);

/* Is the kernel's table what @policy asks for, whoever loaded it? For those who only look. Returns
 * as firewall_check(); *ret_owner is the netlink port of the socket that owns it, usually the pid
 * of its process, 0 = nobody does. */
int firewall_inspect(struct firewall *fw, const struct firewall_policy *policy, uint32_t *ret_owner,
		     struct error *e);

/* Packets of @uid dropped by the first rule since the table was loaded. -ENOENT: there is no table,
 * or the uid is not in its pool. */
int firewall_uid_drops(struct firewall *fw, uint32_t uid, uint64_t *ret_packets, struct error *e);

/* Packets of the scope with cgroup id @scope_id dropped by the slice's rule: 0 when there were none
 * within the last day. -ENOENT: there is no table. */
int firewall_stray_drops(struct firewall *fw, uint64_t scope_id, uint64_t *ret_packets,
			 struct error *e);
