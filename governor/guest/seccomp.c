/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guests' system call filter, built with libseccomp.
 *
 * The kernel takes int arguments from the lower half of a 64-bit register and ignores the rest, so
 * every comparison that denies is masked, or is an order comparison that garbage in the upper half
 * can only make true.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/confine.h"

#define DENY	     SCMP_ACT_ERRNO(EPERM)
#define ABSENT	     SCMP_ACT_ERRNO(ENOSYS)
#define LOWER_HALF   UINT32_MAX
#define TYPE_MASK    0xf  /* the rest are SOCK_CLOEXEC and SOCK_NONBLOCK */
#define FCHMODAT2    452  /* Linux 6.6, newer than this libseccomp */
#define FILE_SETATTR 469  /* Linux 6.17 */
#define PROGRAM_MAX  4096 /* instructions: BPF_MAXINSNS */

#define ARG_IS(arg, value)   SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, LOWER_HALF, value)
#define ARG_ABOVE(arg, most) SCMP_CMP64(arg, SCMP_CMP_GT, most, 0)
#define HAS_BIT(arg, bit)    SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, bit, bit)
#define TYPE_IS(value)	     SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, TYPE_MASK, value)

static const struct {
	int syscall;
	uint32_t action;
} whole_calls[] = {
	{ SCMP_SYS(add_key), DENY },
	{ SCMP_SYS(request_key), DENY },
	{ SCMP_SYS(keyctl), DENY },
	{ SCMP_SYS(io_uring_setup), DENY },
	{ SCMP_SYS(io_uring_enter), DENY },
	{ SCMP_SYS(io_uring_register), DENY },
	/* Two contexts take all of fs.aio-max-nr, which the whole host shares. */
	{ SCMP_SYS(io_setup), ABSENT },
	{ SCMP_SYS(clone3), ABSENT },
	{ SCMP_SYS(openat2), ABSENT },
	{ SCMP_SYS(seccomp), DENY }, /* see deny_filters() */
	/* Two that trace each other with PTRACE_O_TRACEEXIT can be ended by nobody: the kernel lets
	 * go of tracees only behind that stop (do_exit()). And who asks to be traced gets its
	 * parent for a tracer, which of an orphan is systemd. */
	{ SCMP_SYS(ptrace), DENY },
};

static const int creators[] = { SCMP_SYS(socket), SCMP_SYS(socketpair) };

/* Allowed, in ascending order; @with: only where CONFINE_... says so, 0 = always. */
static const struct {
	int family;
	unsigned int with;
} families[] = {
	{ AF_UNIX, 0 },
	{ AF_INET, 0 },
	{ AF_INET6, 0 },
	{ AF_NETLINK, CONFINE_USER_NAMESPACES },
};

/* Of those other than Unix sockets, with ascending protocols; 0 means the type's own, or is
 * NETLINK_ROUTE. */
static const struct kind {
	int family, type, protocol;
	unsigned int with;
} kinds[] = {
	{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 0 },
	{ AF_INET, SOCK_DGRAM, IPPROTO_ICMP, CONFINE_ICMP },
	{ AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0 },
	{ AF_INET6, SOCK_STREAM, IPPROTO_TCP, 0 },
	{ AF_INET6, SOCK_DGRAM, IPPROTO_UDP, 0 },
	{ AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, CONFINE_ICMP },
	{ AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE, CONFINE_USER_NAMESPACES },
	{ AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, CONFINE_USER_NAMESPACES },
};

static bool is_with(unsigned int needs, unsigned int with)
{
	return (needs & ~with) == 0;
}

static bool is_allowed_family(int family, unsigned int with)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (families[i].family == family)
			return is_with(families[i].with, with);
	return false;
}

static int deny_families(scmp_filter_ctx ctx, int call, unsigned int with)
{
	int last = families[ARRAY_SIZE(families) - 1].family;
	int r = seccomp_rule_add(ctx, DENY, call, 1, ARG_ABOVE(0, (uint64_t)last));

	for (int family = 0; family <= last && r == 0; family++)
		if (!is_allowed_family(family, with))
			r = seccomp_rule_add(ctx, DENY, call, 1, ARG_IS(0, (uint64_t)family));
	return r;
}

static bool is_kind(const struct kind *k, int family, int type, unsigned int with)
{
	return k->family == family && k->type == type && is_with(k->with, with);
}

static bool has_type(int family, int type, unsigned int with)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is_kind(&kinds[i], family, type, with))
			return true;
	return false;
}

/* The next protocol of @type above @protocol that is allowed, 0 when there is none. */
static int next_protocol(int family, int type, unsigned int with, int protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is_kind(&kinds[i], family, type, with) && kinds[i].protocol > protocol)
			return kinds[i].protocol;
	return 0;
}

/* Every protocol of this type but 0 and those that are allowed. */
static int deny_protocols(scmp_filter_ctx ctx, int call, int family, int type, unsigned int with)
{
	int last = 0, next, r = 0;

	while ((next = next_protocol(family, type, with, last)) != 0) {
		for (int other = last + 1; other < next && r == 0; other++)
			r = seccomp_rule_add(ctx, DENY, call, 3, ARG_IS(0, (uint64_t)family),
					     TYPE_IS((uint64_t)type), ARG_IS(2, (uint64_t)other));
		last = next;
	}
	if (r < 0)
		return r;
	return seccomp_rule_add(ctx, DENY, call, 3, ARG_IS(0, (uint64_t)family),
				TYPE_IS((uint64_t)type), ARG_ABOVE(2, (uint64_t)last));
}

static int deny_types(scmp_filter_ctx ctx, int call, int family, unsigned int with)
{
	int r = 0;

	for (int type = 0; type <= TYPE_MASK && r == 0; type++) {
		if (has_type(family, type, with))
			r = deny_protocols(ctx, call, family, type, with);
		else
			r = seccomp_rule_add(ctx, DENY, call, 2, ARG_IS(0, (uint64_t)family),
					     TYPE_IS((uint64_t)type));
	}
	return r;
}

static int deny_sockets_of(scmp_filter_ctx ctx, int call, unsigned int with)
{
	int r = deny_families(ctx, call, with);

	for (size_t i = 0; i < ARRAY_SIZE(families) && r == 0; i++)
		if (families[i].family != AF_UNIX && is_with(families[i].with, with))
			r = deny_types(ctx, call, families[i].family, with);
	return r;
}

static int deny_sockets(scmp_filter_ctx ctx, unsigned int with)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(creators) && r == 0; i++)
		r = deny_sockets_of(ctx, creators[i], with);
	return r;
}

static int deny_user_namespaces(scmp_filter_ctx ctx)
{
	static const int calls[] = { SCMP_SYS(clone), SCMP_SYS(unshare) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls) && r == 0; i++)
		r = seccomp_rule_add(
			ctx, DENY, calls[i], 1,
			SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
	return r;
}

/* Joining a group makes the kernel itself send IGMP or MLD reports, past every owner match. TCP_ULP
 * "smc" would turn an allowed socket into one of a denied family. */
static const struct {
	int level, option;
} socket_options[] = {
	{ IPPROTO_IP, IP_ADD_MEMBERSHIP },
	{ IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP },
	{ IPPROTO_IP, MCAST_JOIN_GROUP },
	{ IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP },
	{ IPPROTO_IPV6, IPV6_JOIN_GROUP },
	{ IPPROTO_IPV6, MCAST_JOIN_GROUP },
	{ IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP },
	{ IPPROTO_IPV6, IPV6_JOIN_ANYCAST },
	{ IPPROTO_TCP, TCP_ULP },
};

static int deny_socket_options(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(socket_options) && r == 0; i++)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(setsockopt), 2,
				     ARG_IS(1, (uint64_t)socket_options[i].level),
				     ARG_IS(2, (uint64_t)socket_options[i].option));
	return r;
}

/* A file with these bits outlives the run as a way back to the guest's uid, wherever a mount of the
 * host's is not nosuid. */
static const uint64_t id_bits[] = { S_ISUID, S_ISGID };

static const struct {
	int syscall;
	unsigned int mode; /* which argument */
} mode_setters[] = {
	{ SCMP_SYS(chmod), 1 }, { SCMP_SYS(fchmod), 1 },  { SCMP_SYS(fchmodat), 2 },
	{ FCHMODAT2, 2 },	{ SCMP_SYS(mkdir), 1 },	  { SCMP_SYS(mkdirat), 2 },
	{ SCMP_SYS(mknod), 1 }, { SCMP_SYS(mknodat), 2 }, { SCMP_SYS(creat), 1 },
};

/* Here the mode counts only with a flag that makes a file; it may be garbage without. */
static const struct {
	int syscall;
	unsigned int flags, mode;
} openers[] = { { SCMP_SYS(open), 1, 2 }, { SCMP_SYS(openat), 2, 3 } };

static const uint64_t making_flags[] = { O_CREAT, O_TMPFILE & ~O_DIRECTORY };

static int deny_id_bit(scmp_filter_ctx ctx, uint64_t bit)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mode_setters) && r == 0; i++)
		r = seccomp_rule_add(ctx, DENY, mode_setters[i].syscall, 1,
				     HAS_BIT(mode_setters[i].mode, bit));
	for (size_t i = 0; i < ARRAY_SIZE(openers) && r == 0; i++)
		for (size_t f = 0; f < ARRAY_SIZE(making_flags) && r == 0; f++)
			r = seccomp_rule_add(ctx, DENY, openers[i].syscall, 2,
					     HAS_BIT(openers[i].flags, making_flags[f]),
					     HAS_BIT(openers[i].mode, bit));
	return r;
}

static int deny_id_bits(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(id_bits) && r == 0; i++)
		r = deny_id_bit(ctx, id_bits[i]);
	return r;
}

/* No driver is behind the numbers that are left to a guest, 0:0. But where its --rw directory
 * becomes a layer of overlayfs(5), such a device hides a file. S_IFBLK has the bit as well. */
static int deny_devices(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, DENY, SCMP_SYS(mknod), 1, HAS_BIT(1, S_IFCHR));

	if (r == 0)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(mknodat), 1, HAS_BIT(2, S_IFCHR));
	if (r == 0)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(renameat2), 1,
				     HAS_BIT(4, RENAME_WHITEOUT));
	return r;
}

/* RLIMIT_CORE stays 1: with 0 a core_pattern pipe helper would be run, as root (core(5)). */
static int deny_core_limit(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, DENY, SCMP_SYS(setrlimit), 1, ARG_IS(0, RLIMIT_CORE));

	if (r == 0)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(prlimit64), 2, ARG_IS(1, RLIMIT_CORE),
				     SCMP_CMP64(2, SCMP_CMP_NE, 0, 0));
	return r;
}

static const uint64_t requests[] = {
	/* Of a terminal: input that the next reader takes for typed, the kernel's console, and line
	 * disciplines, whose modules are rarely used code. Nobody needs them but who manages
	 * terminals. */
	TIOCSTI,
	TIOCLINUX,
	TIOCSETD,
	TIOCCONS,
	/* Of files, which belong to the guest in a --rw directory: project ids, and the flag by
	 * which new files inherit them, are what a quota of the caller's goes by. */
	FS_IOC_FSSETXATTR,
	FS_IOC_SETFLAGS,
	/* What would be there when the guest is gone, and be in the caller's way: subvolumes, which
	 * only root may remove, keys of the file system's, files that nobody can change any more.
	 */
	BTRFS_IOC_SUBVOL_CREATE,
	BTRFS_IOC_SUBVOL_CREATE_V2,
	BTRFS_IOC_SNAP_CREATE,
	BTRFS_IOC_SNAP_CREATE_V2,
	BTRFS_IOC_SUBVOL_SETFLAGS,
	FS_IOC_ADD_ENCRYPTION_KEY,
	FS_IOC_SET_ENCRYPTION_POLICY,
	FS_IOC_ENABLE_VERITY,
};

static int deny_requests(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(requests) && r == 0; i++)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(ioctl), 1, ARG_IS(1, requests[i]));
	return r;
}

/* Project ids have a call of their own since Linux 6.17; a lease lets the host's next open(2) of
 * the file wait. */
static int deny_file_calls(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, DENY, FILE_SETATTR, 0);

	if (r == 0)
		r = seccomp_rule_add(ctx, DENY, SCMP_SYS(fcntl), 1, ARG_IS(1, F_SETLEASE));
	return r;
}

/* No filters of a guest's own: their machine code is charged to nobody, and enough of it uses up
 * net.core.bpf_jit_limit, which all of the host shares; then nobody can set a filter any more. */
static int deny_filters(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, DENY, SCMP_SYS(prctl), 1, ARG_IS(0, PR_SET_SECCOMP));
}

/* A core scheduling cookie keeps the other threads of a processor's core idle while the guest runs,
 * which no cpu.max counts. */
static int deny_core_scheduling(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, DENY, SCMP_SYS(prctl), 1, ARG_IS(0, PR_SCHED_CORE));
}

static int (*const rules[])(scmp_filter_ctx ctx) = {
	deny_socket_options, deny_id_bits,    deny_devices, deny_core_limit,
	deny_requests,	     deny_file_calls, deny_filters, deny_core_scheduling,
};

static int add_rules(scmp_filter_ctx ctx, unsigned int with)
{
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, DENY);

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
	for (size_t i = 0; i < ARRAY_SIZE(whole_calls) && r == 0; i++)
		r = seccomp_rule_add(ctx, whole_calls[i].action, whole_calls[i].syscall, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rules) && r == 0; i++)
		r = rules[i](ctx);
	if (r == 0 && !is_with(CONFINE_USER_NAMESPACES, with))
		r = deny_user_namespaces(ctx);
	return r == 0 ? deny_sockets(ctx, with) : r;
}

/* libseccomp writes programs to descriptors only. */
static int export_program(scmp_filter_ctx ctx, struct sock_fprog *ret)
{
	_cleanup_close_ int fd = memfd_create("seccomp", MFD_CLOEXEC);
	_cleanup_free_ struct sock_filter *filter = NULL;
	off_t size;
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return r;
	size = lseek(fd, 0, SEEK_CUR);
	if (size <= 0 || (size_t)size > PROGRAM_MAX * sizeof(*filter))
		return -E2BIG;
	filter = malloc((size_t)size);
	if (!filter)
		return -ENOMEM;
	if (pread(fd, filter, (size_t)size, 0) != size)
		return -EIO;
	ret->len = (unsigned short)((size_t)size / sizeof(*filter));
	ret->filter = TAKE_PTR(filter);
	return 0;
}

static void release_context(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

int confine_compile(unsigned int with, struct sock_fprog *ret, struct error *e)
{
	_cleanup_(release_context) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int r = ctx ? add_rules(ctx, with) : -ENOMEM;

	if (r == 0)
		r = export_program(ctx, ret);
	return r < 0 ? error_errno(e, r, "the system call filter cannot be built") : 0;
}

void confine_free(struct sock_fprog *program)
{
	free(program->filter);
	*program = (struct sock_fprog){ 0 };
}
