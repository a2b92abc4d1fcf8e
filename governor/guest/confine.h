/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a process becomes a guest: identity, capabilities, resource limits, system calls; all of it
 * is inherited over execve(2).
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/request.h"

/* ---- system calls ---- */

/* What a profile's guests may do besides; together the index of their program. */
enum {
	CONFINE_ICMP = 1,	     /* ICMP datagrams, icmp(7) */
	CONFINE_USER_NAMESPACES = 2, /* and NETLINK_ROUTE, to set up a network in one */
	CONFINE_PROGRAMS = 4,
};

/* The seccomp program of guests (seccomp(2)) that may do @with besides, compiled once:
 *  - socket(2), socketpair(2): Unix sockets, and IPv4 or IPv6 with TCP or UDP, with CONFINE_ICMP
 *    also ICMP, with CONFINE_USER_NAMESPACES also netlink with NETLINK_ROUTE; nothing else. Other
 *    families and protocols reach the network past a firewall that matches users (AF_SMC, AF_RXRPC,
 *    IPPROTO_SMC).
 *  - setsockopt(2): no joining of multicast groups, for which the kernel itself sends packets; no
 *    TCP_ULP.
 *  - keyctl, add_key, request_key: keys outlive a run and are resolved by root's helpers.
 *  - io_uring: its operations pass no seccomp filter.
 *  - io_setup, which answers ENOSYS: its contexts are bounded for the whole host.
 *  - core scheduling (prctl).
 *  - set-user-ID and set-group-ID bits, in every call that can set them; openat2 answers ENOSYS.
 *  - devices, whiteouts among them.
 *  - changing RLIMIT_CORE.
 *  - ioctl(2): TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS; flags (chattr(1)) and project ids of
 *    files; subvolumes, encryption and verity of file systems. Leases.
 *  - filters of a guest's own: the memory for their machine code is bounded for the whole host.
 *  - user namespaces, but with CONFINE_USER_NAMESPACES; other architectures. clone3 answers ENOSYS:
 * its flags cannot be seen. What is not allowed fails with EPERM. */
int confine_compile(unsigned int with, struct sock_fprog *ret, struct error *e);
void confine_free(struct sock_fprog *program);

/* ---- in the daemon ---- */

/* Once, instead of per run, what all processes made from this one inherit and nobody else can
 * change meanwhile: securebits 0; no signal ignored. SIGPIPE must be blocked by who does not want
 * to die of it. */
int confine_prepare(struct error *e);

/* ---- in the supervisor ---- */

/* Before there is a client: an empty bounding set, so that no process made from this one can ever
 * gain a capability by execve(2) (capabilities(7)), while this one keeps what it has. */
int confine_bound(struct error *e);

/* ---- in the child, in this order ---- */

/* Signal mask, session, session keyring, oom_score_adj, scheduling class, nice value and priority
 * of input and output, as for a fresh program. Dispositions: see confine_prepare(); handlers go at
 * exec. */
int confine_reset_process(struct error *e);

/* Where the kernel has them (landlock(7), ABI 6: Linux 6.12): no signals to processes outside of
 * this one and its children, no connections to abstract Unix sockets of theirs. Nothing where it
 * has not. Before confine_rlimits(): it needs a descriptor. */
int confine_scopes(struct error *e);

/* Has it? For who judges guests from outside, where a domain cannot be seen. */
bool confine_has_scopes(void);

/* The caller's limits, each at most what this process has itself (setrlimit(2)); RLIMIT_CORE is
 * exactly 1: with 0 a core_pattern pipe helper would still be run, as root. RLIMIT_SIGPENDING is
 * small: it bounds POSIX timers. A file is at most @file_bytes long when the caller has no limit of
 * its own; LIMIT_INFINITY is RLIM_INFINITY. */
int confine_rlimits(const struct rlimit limits[GUEST_RLIMITS], uint64_t file_bytes,
		    struct error *e);

/* By root, for whom net.core.bpf_jit_limit is no bound (bpf_jit_charge_modmem() in the kernel). */
int confine_syscalls(const struct sock_fprog *program, struct error *e);

/* No groups, @uid as real, effective, saved, login uid and gid, no capabilities, no new privileges.
 */
int confine_identity(uint32_t uid, struct error *e);

/* ---- in the supervisor ---- */

/* Reads /proc/PID/status back: uids and gids, groups, all five capability sets, NoNewPrivs,
 * Seccomp, signals blocked and ignored. -ESTALE with the line that differs. */
int confine_verify(pid_t pid, uint32_t uid, struct error *e);

/* The pure part of confine_verify(). */
int confine_verify_status(const char *status, uint32_t uid, struct error *e);
