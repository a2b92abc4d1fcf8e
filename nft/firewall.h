/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The firewall of the guests: one table, one output chain that drops what the pool's uids send,
 * whatever happens elsewhere on the host.
 *
 * This library knows uids and cgroup ids; nothing of guests. It speaks netlink itself (libnftnl for
 * the objects, libmnl for the wire) and never runs a program. Everything it changes goes in one
 * transaction: a half-applied table is never visible.
 *
 * The table, in nft's words, with two profiles, "drop" (no entries) and "web":
 *
 *	table inet harpe_gov {                          # flags owner[,persist] when held
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
 *		set logged {                            # likewise: one rate limit per uid
 *			type uid
 *			size 256; flags dynamic
 *		}
 *		map profiles {
 *			type cgroupsv2 : verdict
 *			size 128
 *			elements = { "harpe.slice/harpe-drop.slice" : jump profile_drop,
 *				     "harpe.slice/harpe-web.slice" : jump profile_web }
 *		}
 *		set web_ip4 {                           # only when there are such entries
 *			type inet_proto . ipv4_addr . inet_service
 *			size 2; flags interval
 *			elements = { tcp . 192.0.2.10 . 443, icmp . 192.0.2.1 . 0-65535 }
 *		}
 *		set web_ip6 {
 *			type inet_proto . ipv6_addr . inet_service
 *			size 1; flags interval
 *			elements = { tcp . 2001:db8::/32 . 8000-8100 }
 *		}
 *		chain output {
 *			type filter hook output priority -10; policy accept;
 *			socket cgroupv2 level 1 "harpe.slice" jump guests
 *			meta skuid @pool drop
 *		}
 *		chain guests {
 *			socket cgroupv2 level 2 vmap @profiles
 *			meta skuid @pool drop
 *			update @strays { socket cgroupv2 level 3 counter }
 *			update @strays { socket cgroupv2 level 4 counter }
 *			counter drop
 *		}
 *		chain profile_drop {
 *			meta skuid != @pool return
 *		}
 *		chain profile_web {                     # on_deny reject, log to group 1
 *			meta skuid != @pool return
 *			ip hdrlength 5 ip protocol . ip daddr . th dport @web_ip4 accept
 *			ip6 nexthdr . ip6 daddr . th dport @web_ip6 accept
 *			update @logged { meta skuid limit rate 10/second burst 20 packets } \
 *				log prefix "harpe-gov web: " group 1
 *			meta skuid @pool reject with icmpx port-unreachable
 *		}
 *	}
 *
 * Why two matches: `meta skuid` does not see packets of sockets without an open file (orphans after
 * close(2), sockets made inside the kernel for AF_SMC or AF_RXRPC), the cgroup of the socket's
 * creator does. Why positive matches only: a packet without an owner must never be dropped. A
 * process that is no guest pays for one look at its socket's cgroup and one at its uid.
 *
 * A guest is recognised by its slice, so what it sent before close(2) still arrives; a socket in
 * the slice that has an owner outside the pool is no guest's (`!= @pool` does not match where there
 * is no owner) and is dropped as a stray. What no entry allows falls back to chain guests, which
 * drops and counts it; @pool counts what is rejected as well.
 *
 * Only plain headers are allowed: IPv4 options and IPv6 extension headers can name another
 * destination (source routing) than the one that is compared. The host's own addresses are
 * addresses as all others, except loopback: see nft/allow.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "nft/allow.h"

#ifndef NFT_TABLE_F_PERSIST
#define NFT_TABLE_F_PERSIST 0x4 /* Linux 6.9; Debian 12's headers do not have it */
#endif

#define FIREWALL_TABLE	  "harpe_gov"
#define FIREWALL_PRIORITY (-10) /* before filter (0): a foreign accept cannot come first */
#define FIREWALL_UNKNOWN  UINT64_MAX

#define FIREWALL_PROFILES_MAX	  128
#define FIREWALL_PROFILE_NAME_MAX 32	/* with NUL */
#define FIREWALL_ENTRIES_MAX	  32768 /* of all profiles, as given and as the kernel gets them */

/* What happens to a guest's packet that no entry allows. */
enum firewall_deny {
	FIREWALL_DROP,	 /* as if it had been lost: TCP connects hang, UDP sends fail with EPERM */
	FIREWALL_REJECT, /* send(2) fails at once, a connect(2) that blocks after a second */
};

/* The guests of one slice. The built-in profiles are these without entries. */
struct firewall_profile {
	char name[FIREWALL_PROFILE_NAME_MAX]; /* [a-z0-9]+ */
	uint64_t slice_id; /* cgroup id (st_ino) of the slice, at the policy's profile_level */
	enum firewall_deny on_deny;
	bool log; /* what is denied to a uid of the pool goes to an nflog group: prefix "harpe-gov
		   * NAME: ", the uid in the record (NFULA_UID), ten per second and uid. Without a
		   * listener there is no record. */
	uint16_t log_group;
	const struct allow *entries; /* in any order; they may overlap */
	size_t n_entries;
};

/* Everything is the caller's and only read during a call. A scope may also lie one level below
 * scope_level, in a child slice of its profile's. */
struct firewall_policy {
	uint32_t first_uid, uid_count; /* the pool */
	uint64_t slice_id;	       /* cgroup id (st_ino) of harpe.slice */
	uint32_t slice_level;	       /* its depth: 1. Levels are counted from the root of ... */
	uint32_t scope_level;	       /* ... our cgroup namespace. A guest's scope: 3, or 4 */
	uint32_t profile_level;	       /* the slices in between, one per profile: 2 */
	const struct firewall_profile *profiles; /* guests in no profile's slice: as with drop */
	size_t n_profiles;
};

/* Would firewall_load() take @policy? -EINVAL with a sentence that names the profile: a name of
 * another form or used twice, a slice that is unknown or used twice, too many entries. */
int firewall_policy_check(const struct firewall_policy *policy, struct error *e);

/* The part of it that no slice is needed for: adds to *total what the entries of @p take, with
 * those of other profiles before it. -EINVAL with a sentence when that is too many; -ENOMEM. */
int firewall_count_entries(const struct firewall_profile *p, size_t *total, struct error *e);

struct firewall;

/* Opens a netlink socket of its own. */
int firewall_open(struct firewall **ret, struct error *e);

/* Goes on with a socket that an earlier process kept (the service manager's fd store), and so
 * with the table that it owns. Takes @fd over in every case. */
int firewall_adopt(int fd, struct firewall **ret, struct error *e);

void firewall_free(struct firewall *fw);
int firewall_fd(const struct firewall *fw);

/* Replaces the table by @policy in one transaction and reads it back. With @owned the table belongs
 * to this socket: nobody else can change it. When the last copy of the socket is closed it stays
 * without an owner, and whoever comes next may take it over, where the kernel can do that (Linux
 * 6.9, NFT_TABLE_F_PERSIST: tried at the first such load); elsewhere it disappears. -EBUSY: another
 * socket owns the table. -EOPNOTSUPP, -EPROTONOSUPPORT, -ENOENT: the kernel lacks what the sentence
 * names. */
int firewall_load(struct firewall *fw, const struct firewall_policy *policy, bool owned,
		  struct error *e);

/* Does a table that firewall_load() made @owned outlive its socket? False before the first. */
bool firewall_persists(const struct firewall *fw);

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

/* What there is to compare. Without the table, or the object that it is in, everything differs. */
enum firewall_part {
	FIREWALL_PART_TABLE,  /* it is there, not dormant, and nothing is in it that is not ours */
	FIREWALL_PART_CHAINS, /* type, hook, priority, policy */
	FIREWALL_PART_RULES,  /* each expression of each, in their order */
	FIREWALL_PART_SETS,   /* types, flags, sizes */
	FIREWALL_PART_UIDS,   /* elements of the pool's set */
	FIREWALL_PART_PROFILES, /* elements of the others: the slices, what they allow */
	FIREWALL_PART_COUNT,
};

struct firewall_survey {
	uint32_t owner;		       /* as firewall_inspect() has it */
	bool persists;		       /* it outlives its owner, or has */
	uint32_t generation;	       /* in which all of it was so */
	int part[FIREWALL_PART_COUNT]; /* 0, or -ESTALE with the first thing that differs */
	struct error differs[FIREWALL_PART_COUNT];
};

/* As firewall_inspect(), part by part: 0 even when they differ. */
int firewall_survey(struct firewall *fw, const struct firewall_policy *policy,
		    struct firewall_survey *ret, struct error *e);

/* The generation of the host's whole ruleset: it goes up with every commit of anybody's. */
int firewall_generation(struct firewall *fw, uint32_t *ret, struct error *e);

/* Packets of @uid dropped or rejected since the table was loaded. -ENOENT: there is no table,
 * or the uid is not in its pool. */
int firewall_uid_drops(struct firewall *fw, uint32_t uid, uint64_t *ret_packets, struct error *e);

/* Packets of the scope with cgroup id @scope_id that had no uid of the pool: 0 when there were none
 * within the last day. -ENOENT: there is no table. */
int firewall_stray_drops(struct firewall *fw, uint64_t scope_id, uint64_t *ret_packets,
			 struct error *e);
