/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a guest looks from outside, and its system call filter: tried by doing what it forbids.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/guest/confine.h"

#define UID	    90000u
#define STATUS_SIZE 8192
#define HIGH	    (UINT64_C(1) << 32)

/* ---- /proc/PID/status ---- */

static const char guest_status[] = "Name:\tpython3\n"
				   "Umask:\t0022\n"
				   "Uid:\t90000\t90000\t90000\t90000\n"
				   "Gid:\t90000\t90000\t90000\t90000\n"
				   "FDSize:\t64\n"
				   "Groups:\t \n"
				   "SigBlk:\t0000000000000000\n"
				   "SigIgn:\t0000000000000000\n"
				   "CapInh:\t0000000000000000\n"
				   "CapPrm:\t0000000000000000\n"
				   "CapEff:\t0000000000000000\n"
				   "CapBnd:\t0000000000000000\n"
				   "CapAmb:\t0000000000000000\n"
				   "NoNewPrivs:\t1\n"
				   "Seccomp:\t2\n"
				   "Seccomp_filters:\t1\n"
				   "Cpus_allowed:\t3\n";

static const char *const keys[] = { "Uid:",	   "Gid:",     "Groups:", "CapInh:",
				    "CapPrm:",	   "CapEff:",  "CapBnd:", "CapAmb:",
				    "NoNewPrivs:", "Seccomp:", "SigBlk:", "SigIgn:" };

/* The line of @key, and its length with the newline. */
static const char *line_of(const char *status, const char *key, size_t *ret_len)
{
	char start[32];
	const char *line;

	snprintf(start, sizeof(start), "\n%s", key);
	line = strstr(status, start);
	assert_non_null(line);
	*ret_len = strcspn(line + 1, "\n") + 1;
	return line + 1;
}

/* The status with @text in place of the line of @key. */
static void replaced(const char *key, const char *text, char status[STATUS_SIZE])
{
	size_t len;
	const char *line = line_of(guest_status, key, &len);

	snprintf(status, STATUS_SIZE, "%.*s%s%s", (int)(line - guest_status), guest_status, text,
		 line + len);
}

static void assert_differs(const char *status, const char *key)
{
	struct error e = ERROR_NULL;

	if (confine_verify_status(status, UID, &e) != -ESTALE)
		fail_msg("taken for a guest's:\n%s", status);
	assert_mentions(e.text, "\"", key, "");
}

static void knows_a_guest(void **state)
{
	struct error e = ERROR_NULL;
	char status[STATUS_SIZE];

	(void)state;
	assert_int_equal(confine_verify_status(guest_status, UID, &e), 0);
	replaced("Groups:", "Groups:\t\n", status);
	assert_int_equal(confine_verify_status(status, UID, &e), 0);
	assert_differs(guest_status + strlen("Name:\tpython3\nUmask:\t0022\nU"), "Uid:");
	assert_int_equal(confine_verify_status("", UID, &e), -ESTALE);
	assert_int_equal(confine_verify_status(guest_status, UID + 1, &e), -ESTALE);
	assert_string_equal(e.text, "the guest has \"Uid:\t90000\t90000\t90000\t90000\" where "
				    "\"\t90001\t90001\t90001\t90001\" was set");
}

static void misses_every_line(void **state)
{
	char status[STATUS_SIZE], other[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		replaced(keys[i], "", status);
		assert_differs(status, keys[i]);
		/* where it does not count */
		snprintf(other, sizeof(other), "x%.*s\n",
			 (int)strcspn(strstr(guest_status, keys[i]), "\n"),
			 strstr(guest_status, keys[i]));
		replaced(keys[i], other, status);
		assert_differs(status, keys[i]);
	}
}

/* A newline is left out: behind "Groups:\t" it would be right. */
static void sees_every_changed_byte(void **state)
{
	char status[STATUS_SIZE];

	(void)state;
	strcpy(status, guest_status);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t len, at;
		const char *line = line_of(guest_status, keys[i], &len);

		for (at = (size_t)(line - guest_status); guest_status[at] != '\n'; at++) {
			for (int c = 0; c < 256; c++) {
				status[at] = (char)c;
				if (c != '\n' && status[at] != guest_status[at])
					assert_int_equal(confine_verify_status(status, UID, NULL),
							 -ESTALE);
			}
			status[at] = guest_status[at];
		}
	}
}

static const struct {
	const char *key, *line;
} other_lines[] = {
	{ "Uid:", "Uid:\t0\t0\t0\t0\n" },
	{ "Uid:", "Uid:\t90000\t90000\t90000\t0\n" },
	{ "Uid:", "Uid:\t90000\t90000\t90000\t900000\n" },
	{ "Uid:", "Uid:\t90000\t90000\t90000\n" },
	{ "Gid:", "Gid:\t90000\t90000\t0\t90000\n" },
	{ "Groups:", "Groups:\t0 \n" },
	{ "Groups:", "Groups:\t90000\n" },
	{ "Groups:", "Groups:\t  27 100 \n" },
	{ "CapBnd:", "CapBnd:\t000001ffffffffff\n" },
	{ "CapEff:", "CapEff:\t00000000000000001\n" },
	{ "CapAmb:", "CapAmb:\t8000000000000000\n" },
	{ "NoNewPrivs:", "NoNewPrivs:\t10\n" },
	{ "NoNewPrivs:", "NoNewPrivs:\t0\n" },
	{ "Seccomp:", "Seccomp:\t0\n" },
	{ "Seccomp:", "Seccomp:\t1\n" },
	{ "SigBlk:", "SigBlk:\t0000000000004000\n" },
	{ "SigIgn:", "SigIgn:\t0000000000001000\n" },
};

static void sees_other_values(void **state)
{
	char status[STATUS_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(other_lines); i++) {
		replaced(other_lines[i].key, other_lines[i].line, status);
		assert_differs(status, other_lines[i].key);
	}
}

/* ---- the filter ---- */

static unsigned int besides; /* of the filter: CONFINE_... */

static int enter_filter(struct error *e)
{
	struct sock_fprog program;
	int r = confine_compile(besides, &program, e);

	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(e, -errno, "no_new_privs");
	r = confine_syscalls(&program, e);
	confine_free(&program);
	return r;
}

/* Runs @f in a child behind the filter; what it finds wrong is in its sentence. */
static void assert_filtered(int (*f)(struct error *e))
{
	struct error e = ERROR_NULL;
	int said[2];
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (enter_filter(&e) == 0)
			f(&e);
		_exit(write(said[1], &e, sizeof(e)) < 0);
	}
	close(said[1]);
	assert_int_equal(read(said[0], &e, sizeof(e)), sizeof(e));
	close(said[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (e.text[0])
		fail_msg("%s", e.text);
}

static int is_allowed(int family, int type, int protocol)
{
	int icmp = family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6;

	if (family == AF_UNIX)
		return 1;
	if (family == AF_NETLINK)
		return (besides & CONFINE_USER_NAMESPACES) && protocol == 0 &&
		       ((type & 0xf) == SOCK_RAW || (type & 0xf) == SOCK_DGRAM);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	return ((type & 0xf) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) ||
	       ((type & 0xf) == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP ||
					       ((besides & CONFINE_ICMP) && protocol == icmp)));
}

/* The error of socket(2) or socketpair(2), 0 when it worked. */
static int socket_error(long call, const uint64_t args[3])
{
	int pair[2] = { -1, -1 };
	long r = syscall(call, args[0], args[1], args[2], pair);
	int error = r < 0 ? errno : 0;

	if (error)
		return error;
	if (call == SYS_socket)
		pair[0] = (int)r;
	close_fd(&pair[0]);
	close_fd(&pair[1]);
	return 0;
}

static const long creators[] = { SYS_socket, SYS_socketpair };

static int check_error(const char *what, const uint64_t args[3], int got, int want, struct error *e)
{
	if (got == want)
		return 0;
	return error_set(e, -EINVAL, "%s(%#jx, %#jx, %#jx): %s instead of %s", what,
			 (uintmax_t)args[0], (uintmax_t)args[1], (uintmax_t)args[2], strerror(got),
			 strerror(want));
}

/* With something in the upper half of any of the arguments, which the kernel does not look at. */
static int check_denied(const uint64_t args[3], struct error *e)
{
	static const uint64_t garbage[] = { HIGH, UINT64_C(0xffffffff00000000) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(creators) * ARRAY_SIZE(garbage) * 8 && r == 0; i++) {
		uint64_t high = garbage[i / 8 % ARRAY_SIZE(garbage)];
		long call = creators[i / 8 / ARRAY_SIZE(garbage)];
		uint64_t with[3];

		for (int j = 0; j < 3; j++)
			with[j] = args[j] | (i >> j & 1 ? high : 0);
		r = check_error(call == SYS_socket ? "socket" : "socketpair", with,
				socket_error(call, with), EPERM, e);
	}
	return r;
}

static int check_socket(int family, int type, int protocol, struct error *e)
{
	const uint64_t args[3] = { (unsigned int)family, (unsigned int)type,
				   (unsigned int)protocol };

	if (!is_allowed(family, type, protocol))
		return check_denied(args, e);
	for (size_t i = 0; i < ARRAY_SIZE(creators); i++)
		if (socket_error(creators[i], args) == EPERM)
			return check_error("allowed", args, EPERM, 0, e);
	return 0;
}

/* Every family there is and some that there are not, with every type, and protocols that are known
 * to lead to other kinds of sockets. */
static int check_all_sockets(struct error *e)
{
	static const int protocols[] = { 0,
					 IPPROTO_ICMP,
					 IPPROTO_TCP,
					 IPPROTO_UDP,
					 IPPROTO_ICMPV6,
					 IPPROTO_SCTP,
					 IPPROTO_UDPLITE,
					 IPPROTO_RAW,
					 256 /* SMC */,
					 262 /* MPTCP */,
					 INT32_MAX,
					 -1 };
	static const int more_families[] = { 46, 255, 256 + AF_INET, INT32_MAX, INT32_MIN, -1 };
	int r = 0;

	for (int i = 0; i < 46 + (int)ARRAY_SIZE(more_families); i++)
		for (int type = 0; type < 16; type++)
			for (size_t p = 0; p < ARRAY_SIZE(protocols) && r == 0; p++)
				r = check_socket(i < 46 ? i : more_families[i - 46], type,
						 protocols[p], e);
	return r;
}

static void denies_sockets_but_unix_tcp_and_udp(void **state)
{
	(void)state;
	assert_filtered(check_all_sockets);
}

static int check_all_protocols(struct error *e)
{
	int r = 0;

	static const int ip_and_netlink[] = { AF_INET, AF_INET6, AF_NETLINK };

	for (int protocol = 0; protocol < 512; protocol++)
		for (int type = SOCK_STREAM; type <= SOCK_RAW; type++)
			for (size_t i = 0; i < ARRAY_SIZE(ip_and_netlink) && r == 0; i++)
				r = check_socket(ip_and_netlink[i], type, protocol, e);
	return r;
}

static void denies_other_protocols(void **state)
{
	(void)state;
	assert_filtered(check_all_protocols);
}

static void allows_icmp_where_it_is_due(void **state)
{
	(void)state;
	besides = CONFINE_ICMP;
	assert_filtered(check_all_sockets);
	assert_filtered(check_all_protocols);
	besides = 0;
}

static const struct {
	long call;
	uint64_t args[3];
} usable[] = {
	{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 } },
	{ SYS_socket, { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0 } },
	{ SYS_socket, { AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0 } },
	{ SYS_socketpair, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 } },
	{ SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET, 0 } },
	{ SYS_socket, { AF_INET, SOCK_STREAM, 0 } },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP } },
	{ SYS_socket, { AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0 } },
	{ SYS_socket, { AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP } },
};

static int use_sockets(struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(usable) && r == 0; i++)
		r = check_error("usable", usable[i].args,
				socket_error(usable[i].call, usable[i].args), 0, e);
	return r;
}

static void allows_usual_sockets(void **state)
{
	(void)state;
	assert_filtered(use_sockets);
}

/* Flags beside a denied type. */
static int use_flags(struct error *e)
{
	static const int flags[] = { SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK,
				     0x7fffffff & ~0xf };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags) && r == 0; i++)
		r = check_socket(AF_INET, SOCK_RAW | flags[i], IPPROTO_TCP, e);
	for (size_t i = 0; i < ARRAY_SIZE(flags) && r == 0; i++)
		r = check_socket(AF_INET6, SOCK_STREAM | flags[i], 256, e);
	for (size_t i = 0; i < ARRAY_SIZE(flags) && r == 0; i++)
		r = check_socket(AF_NETLINK, SOCK_DGRAM | flags[i], 0, e);
	return r;
}

static void sees_through_flags(void **state)
{
	(void)state;
	assert_filtered(use_flags);
}

#define X32 0x40000000 /* the other system call table of x86-64 */

static const struct call {
	const char *name;
	long number;
	uint64_t args[6];
	int error;
} filtered_calls[] = {
	{ "add_key", SYS_add_key, { 0 }, EPERM },
	{ "request_key", SYS_request_key, { 0 }, EPERM },
	{ "keyctl",
	  SYS_keyctl,
	  { KEYCTL_GET_KEYRING_ID, (uint32_t)KEY_SPEC_SESSION_KEYRING },
	  EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 1 }, EPERM },
	{ "io_uring_enter", SYS_io_uring_enter, { UINT32_MAX }, EPERM },
	{ "io_uring_register", SYS_io_uring_register, { UINT32_MAX }, EPERM },
	{ "unshare", SYS_unshare, { CLONE_NEWUSER }, EPERM },
	{ "unshare, more", SYS_unshare, { CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS }, EPERM },
	{ "clone", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
	{ "clone, more", SYS_clone, { CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD }, EPERM },
	{ "clone3", SYS_clone3, { 0 }, ENOSYS },
	{ "IP_ADD_MEMBERSHIP", SYS_setsockopt, { UINT32_MAX, 0, 35 }, EPERM },
	{ "IP_ADD_SOURCE_MEMBERSHIP", SYS_setsockopt, { UINT32_MAX, 0, 39 }, EPERM },
	{ "MCAST_JOIN_GROUP", SYS_setsockopt, { UINT32_MAX, 0, 42 }, EPERM },
	{ "MCAST_JOIN_SOURCE_GROUP", SYS_setsockopt, { UINT32_MAX, 0, 46 }, EPERM },
	{ "IPV6_JOIN_GROUP", SYS_setsockopt, { UINT32_MAX, 41, 20 }, EPERM },
	{ "IPV6_JOIN_ANYCAST", SYS_setsockopt, { UINT32_MAX, 41, 27 }, EPERM },
	{ "MCAST_JOIN_GROUP", SYS_setsockopt, { UINT32_MAX, 41, 42 }, EPERM },
	{ "MCAST_JOIN_SOURCE_GROUP", SYS_setsockopt, { UINT32_MAX, 41, 46 }, EPERM },
#ifdef __x86_64__
	{ "socket of x32", X32 | SYS_socket, { AF_INET, SOCK_STREAM, 0 }, EPERM },
	{ "keyctl of x32", X32 | SYS_keyctl, { KEYCTL_GET_KEYRING_ID }, EPERM },
	{ "getpid of x32", X32 | SYS_getpid, { 0 }, EPERM },
#endif
	{ "openat2", SYS_openat2, { (uint32_t)AT_FDCWD }, ENOSYS },
	{ "setrlimit", SYS_setrlimit, { RLIMIT_CORE }, EPERM },
	{ "prlimit64", SYS_prlimit64, { 0, RLIMIT_CORE, 8 }, EPERM },
	{ "prlimit64, far", SYS_prlimit64, { 0, RLIMIT_CORE, HIGH }, EPERM },
	{ "prlimit64 of another", SYS_prlimit64, { INT32_MAX, RLIMIT_CORE, 8 }, EPERM },
	{ "prlimit64, reading", SYS_prlimit64, { 0, RLIMIT_CORE, 0 }, 0 },
	{ "setrlimit of files", SYS_setrlimit, { RLIMIT_NOFILE }, EFAULT },
	{ "prlimit64 of files", SYS_prlimit64, { 0, RLIMIT_NOFILE, 8 }, EFAULT },
	{ "seccomp", SYS_seccomp, { SECCOMP_SET_MODE_FILTER }, EPERM },
	{ "seccomp, strict", SYS_seccomp, { SECCOMP_SET_MODE_STRICT }, EPERM },
	{ "PR_SET_SECCOMP", SYS_prctl, { PR_SET_SECCOMP, SECCOMP_MODE_FILTER }, EPERM },
	{ "PR_SET_NAME", SYS_prctl, { PR_SET_NAME }, EFAULT },
	{ "PTRACE_ATTACH", SYS_ptrace, { PTRACE_ATTACH, INT32_MAX }, EPERM },
	{ "PTRACE_SEIZE", SYS_ptrace, { PTRACE_SEIZE, INT32_MAX }, EPERM },
	{ "PTRACE_TRACEME", SYS_ptrace, { PTRACE_TRACEME }, EPERM },
	{ "TIOCSTI", SYS_ioctl, { UINT32_MAX, TIOCSTI }, EPERM },
	{ "TIOCLINUX", SYS_ioctl, { UINT32_MAX, TIOCLINUX }, EPERM },
	{ "TIOCSETD", SYS_ioctl, { UINT32_MAX, TIOCSETD }, EPERM },
	{ "TIOCCONS", SYS_ioctl, { UINT32_MAX, TIOCCONS }, EPERM },
	{ "io_setup", SYS_io_setup, { 1 }, ENOSYS },
	{ "a device", SYS_mknod, { 0, S_IFCHR | 0600, 0 }, EPERM },
	{ "a block device", SYS_mknodat, { (uint32_t)AT_FDCWD, 0, S_IFBLK | 0600, 0 }, EPERM },
	{ "a fifo", SYS_mknod, { 0, S_IFIFO | 0600, 0 }, EFAULT },
	{ "a socket", SYS_mknodat, { (uint32_t)AT_FDCWD, 0, S_IFSOCK | 0600, 0 }, EFAULT },
	{ "RENAME_WHITEOUT",
	  SYS_renameat2,
	  { (uint32_t)AT_FDCWD, 0, (uint32_t)AT_FDCWD, 0, RENAME_WHITEOUT },
	  EPERM },
	{ "RENAME_NOREPLACE",
	  SYS_renameat2,
	  { (uint32_t)AT_FDCWD, 0, (uint32_t)AT_FDCWD, 0, RENAME_NOREPLACE },
	  EFAULT },
	{ "FS_IOC_SETFLAGS", SYS_ioctl, { UINT32_MAX, FS_IOC_SETFLAGS }, EPERM },
	{ "BTRFS_IOC_SUBVOL_CREATE", SYS_ioctl, { UINT32_MAX, BTRFS_IOC_SUBVOL_CREATE }, EPERM },
	{ "BTRFS_IOC_SUBVOL_CREATE_V2",
	  SYS_ioctl,
	  { UINT32_MAX, BTRFS_IOC_SUBVOL_CREATE_V2 },
	  EPERM },
	{ "BTRFS_IOC_SNAP_CREATE", SYS_ioctl, { UINT32_MAX, BTRFS_IOC_SNAP_CREATE }, EPERM },
	{ "BTRFS_IOC_SNAP_CREATE_V2", SYS_ioctl, { UINT32_MAX, BTRFS_IOC_SNAP_CREATE_V2 }, EPERM },
	{ "BTRFS_IOC_SUBVOL_SETFLAGS",
	  SYS_ioctl,
	  { UINT32_MAX, BTRFS_IOC_SUBVOL_SETFLAGS },
	  EPERM },
	{ "FS_IOC_ADD_ENCRYPTION_KEY",
	  SYS_ioctl,
	  { UINT32_MAX, FS_IOC_ADD_ENCRYPTION_KEY },
	  EPERM },
	{ "FS_IOC_SET_ENCRYPTION_POLICY",
	  SYS_ioctl,
	  { UINT32_MAX, FS_IOC_SET_ENCRYPTION_POLICY },
	  EPERM },
	{ "FS_IOC_ENABLE_VERITY", SYS_ioctl, { UINT32_MAX, FS_IOC_ENABLE_VERITY }, EPERM },
	{ "FS_IOC_GETFLAGS", SYS_ioctl, { UINT32_MAX, FS_IOC_GETFLAGS }, EBADF },
	{ "PR_SCHED_CORE", SYS_prctl, { PR_SCHED_CORE, 1 }, EPERM },
	{ "FS_IOC_FSSETXATTR", SYS_ioctl, { UINT32_MAX, FS_IOC_FSSETXATTR }, EPERM },
	{ "FS_IOC_FSGETXATTR", SYS_ioctl, { UINT32_MAX, FS_IOC_FSGETXATTR }, EBADF },
	{ "file_setattr", 469, { UINT32_MAX }, EPERM },
	{ "F_SETLEASE", SYS_fcntl, { UINT32_MAX, F_SETLEASE, F_WRLCK }, EPERM },
	{ "F_GETLEASE", SYS_fcntl, { UINT32_MAX, F_GETLEASE }, EBADF },
	{ "TIOCGWINSZ", SYS_ioctl, { UINT32_MAX, TIOCGWINSZ }, EBADF },
	{ "TCP_NODELAY", SYS_setsockopt, { UINT32_MAX, 6, 1 }, EBADF },
	{ "IPV6_V6ONLY", SYS_setsockopt, { UINT32_MAX, 41, 26 }, EBADF },
	{ "IP_DROP_MEMBERSHIP", SYS_setsockopt, { UINT32_MAX, 0, 36 }, EBADF },
	{ "IP_MULTICAST_TTL", SYS_setsockopt, { UINT32_MAX, 0, 33 }, EBADF },
	{ "no join", SYS_setsockopt, { UINT32_MAX, SOL_SOCKET, 35 }, EBADF },
	{ "IP_TOS", SYS_setsockopt, { UINT32_MAX, 0, IP_TOS }, EBADF },
	{ "unshare of little", SYS_unshare, { CLONE_FILES | CLONE_FS }, 0 },
};

/* With @high in the upper half of every argument. */
static int check_call(const struct call *c, uint64_t high, struct error *e)
{
	long r = syscall(c->number, c->args[0] | high, c->args[1] | high, c->args[2] | high,
			 c->args[3] | high, c->args[4] | high, c->args[5] | high);
	int error = r < 0 ? errno : 0;

	if (r == 0 && c->number == SYS_clone)
		_exit(0); /* the process that must not be */
	return error == c->error ? 0
				 : error_set(e, -EINVAL, "%s, %#jx: %s instead of %s", c->name,
					     (uintmax_t)high, strerror(error), strerror(c->error));
}

static int check_filtered_calls(struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(filtered_calls) && r == 0; i++)
		r = check_call(&filtered_calls[i], 0, e);
	for (size_t i = 0; i < ARRAY_SIZE(filtered_calls) && r == 0; i++)
		if (filtered_calls[i].error == EPERM)
			r = check_call(&filtered_calls[i], HIGH, e);
	return r;
}

static void filters_calls(void **state)
{
	(void)state;
	assert_filtered(check_filtered_calls);
}

/* The flags contradict each other, for which what passes the filter fails. */
static const struct call namespace_calls[] = {
	{ "unshare", SYS_unshare, { CLONE_NEWUSER | 1 }, EINVAL },
	{ "clone", SYS_clone, { CLONE_NEWUSER | CLONE_FS | SIGCHLD }, EINVAL },
	{ "clone3", SYS_clone3, { 0 }, ENOSYS },
	{ "openat2", SYS_openat2, { (uint32_t)AT_FDCWD }, ENOSYS },
	{ "keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID }, EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 1 }, EPERM },
	{ "PR_SET_SECCOMP", SYS_prctl, { PR_SET_SECCOMP, SECCOMP_MODE_FILTER }, EPERM },
	{ "PTRACE_SEIZE", SYS_ptrace, { PTRACE_SEIZE, INT32_MAX }, EPERM },
	{ "TIOCSTI", SYS_ioctl, { UINT32_MAX, TIOCSTI }, EPERM },
	{ "chmod", SYS_chmod, { 0, S_ISUID }, EPERM },
};

static int check_namespace_calls(struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(namespace_calls) && r == 0; i++)
		r = check_call(&namespace_calls[i], 0, e);
	return r;
}

static void allows_user_namespaces_where_they_are_due(void **state)
{
	(void)state;
	for (besides = CONFINE_USER_NAMESPACES; besides < CONFINE_PROGRAMS; besides++) {
		assert_filtered(check_all_sockets);
		assert_filtered(check_all_protocols);
		assert_filtered(check_namespace_calls);
	}
	besides = 0;
}

/* ---- set-user-ID and set-group-ID bits ---- */

/* With no or a wrong path or descriptor: what passes the filter fails for that. */
static const struct maker {
	const char *name;
	long number;
	uint64_t args[4];
	int mode, flags; /* which arguments; flags -1: none */
	int passed;	 /* the error */
} makers[] = {
	{ "chmod", SYS_chmod, { 0 }, 1, -1, EFAULT },
	{ "fchmod", SYS_fchmod, { UINT32_MAX }, 1, -1, EBADF },
	{ "fchmodat", SYS_fchmodat, { (uint32_t)AT_FDCWD }, 2, -1, EFAULT },
	{ "fchmodat2", 452, { (uint32_t)AT_FDCWD }, 2, -1, EFAULT },
	{ "mkdir", SYS_mkdir, { 0 }, 1, -1, EFAULT },
	{ "mkdirat", SYS_mkdirat, { (uint32_t)AT_FDCWD }, 2, -1, EFAULT },
	{ "mknod", SYS_mknod, { 0 }, 1, -1, EFAULT },
	{ "mknodat", SYS_mknodat, { (uint32_t)AT_FDCWD }, 2, -1, EFAULT },
	{ "creat", SYS_creat, { 0 }, 1, -1, EFAULT },
	{ "open", SYS_open, { 0 }, 2, 1, EFAULT },
	{ "openat", SYS_openat, { (uint32_t)AT_FDCWD }, 3, 2, EFAULT },
};

static long call_maker(const struct maker *m, uint64_t flags, uint64_t mode, uint64_t high)
{
	uint64_t args[4];

	memcpy(args, m->args, sizeof(args));
	if (m->flags >= 0)
		args[m->flags] = flags;
	args[m->mode] = mode;
	return syscall(m->number, args[0] | high, args[1] | high, args[2] | high, args[3] | high);
}

/* ENOSYS: fchmodat2 of an older kernel; EINVAL: half of O_TMPFILE. */
static int check_maker(const struct maker *m, uint64_t flags, uint64_t mode, uint64_t high,
		       int denied, struct error *e)
{
	long r = call_maker(m, flags, mode, high);
	int error = r < 0 ? errno : 0;

	if (denied ? error == EPERM : error == m->passed || error == ENOSYS || error == EINVAL)
		return 0;
	return error_set(e, -EINVAL, "%s, flags %#jx, mode %#jx, %#jx: %s", m->name,
			 (uintmax_t)flags, (uintmax_t)mode, (uintmax_t)high, strerror(error));
}

/* All modes, with what else may stand beside them. */
static int check_modes(struct error *e)
{
	static const uint64_t beside[] = { 0, 0100000 /* S_IFREG */, 0xffff0000, HIGH,
					   UINT64_C(0xffffffff00000000) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(makers) * ARRAY_SIZE(beside); i++)
		for (uint64_t mode = 0; mode <= 07777 && r == 0; mode++)
			r = check_maker(&makers[i % ARRAY_SIZE(makers)], O_CREAT | O_WRONLY,
					mode | beside[i / ARRAY_SIZE(makers)], 0,
					(mode & 06000) != 0, e);
	return r;
}

static void denies_all_modes_with_id_bits(void **state)
{
	(void)state;
	assert_filtered(check_modes);
}

static int check_garbage(struct error *e)
{
	static const uint64_t bits[] = { 04000, 02000, 06755 };
	static const uint64_t garbage[] = { HIGH, UINT64_C(0xffffffff00000000) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(makers) && r == 0; i++)
		for (size_t j = 0; j < ARRAY_SIZE(bits) * ARRAY_SIZE(garbage) && r == 0; j++)
			r = check_maker(&makers[i], O_CREAT | O_WRONLY, bits[j / 2], garbage[j % 2],
					1, e);
	return r;
}

static void denies_id_bits_beside_garbage(void **state)
{
	(void)state;
	assert_filtered(check_garbage);
}

/* Without a flag that makes a file the mode is not looked at: libraries leave garbage there. */
static int check_flags(struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
		for (int bit = 0; bit < 32 && makers[i].flags >= 0 && r == 0; bit++) {
			uint64_t flag = UINT64_C(1) << bit;
			int makes = flag == O_CREAT || flag == (O_TMPFILE & ~O_DIRECTORY);

			r = check_maker(&makers[i], flag, 06777, 0, makes, e);
			if (r == 0)
				r = check_maker(&makers[i], flag | HIGH, 06777 | HIGH, 0, makes, e);
			if (r == 0)
				r = check_maker(&makers[i], flag, 01777, 0, 0, e);
		}
	return r;
}

static void looks_at_the_mode_of_new_files_only(void **state)
{
	(void)state;
	assert_filtered(check_flags);
}

/* What every program does with files, in a directory of its own. */
static int use_files(struct error *e)
{
	struct stat st;
	int fd;

	umask(0);
	if (mkdir("d", 01777) < 0 || chdir("d") < 0 || mkdirat(AT_FDCWD, "e", 0700) < 0)
		return error_errno(e, -errno, "no directories");
	fd = open("f", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || fchmod(fd, 0755) < 0 || fstat(fd, &st) < 0 || st.st_mode != (S_IFREG | 0755))
		return error_errno(e, -errno, "no file");
	close(fd);
	if (chmod("f", st.st_mode) < 0 || chmod("f", 01644) < 0 ||
	    fchmodat(AT_FDCWD, "f", 0600, 0) < 0 || mkfifo("p", 0600) < 0)
		return error_errno(e, -errno, "no modes");
	fd = openat(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600);
	if (fd < 0)
		return error_errno(e, -errno, "no temporary file");
	close(fd);
	fd = creat("g", 0644);
	if (fd < 0 || rename("g", "h") < 0 || open("h", O_WRONLY | O_TRUNC) < 0)
		return error_errno(e, -errno, "no other file");
	if (chmod("f", 04755) == 0 || errno != EPERM || open("i", O_CREAT | O_RDWR, 02755) >= 0 ||
	    stat("f", &st) < 0 || st.st_mode != (S_IFREG | 0600) || access("i", F_OK) == 0)
		return error_set(e, -EINVAL, "a bit was set");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void allows_usual_files(void **state)
{
	char dir[] = "/tmp/harpe-gov-test-XXXXXX";
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_filtered(use_files);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- resource limits ---- */

static int use_limits(struct error *e)
{
	struct rlimit own, less;

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (getrlimit((__rlimit_resource_t)i, &own) < 0 ||
		    syscall(SYS_prlimit64, 0, i, NULL, &less) < 0)
			return error_errno(e, -errno, "limit %d cannot be read", i);
		if (i == RLIMIT_CORE)
			continue;
		if (setrlimit((__rlimit_resource_t)i, &own) < 0 ||
		    syscall(SYS_setrlimit, i, &own) < 0 ||
		    syscall(SYS_prlimit64, 0, i, &own, NULL) < 0)
			return error_errno(e, -errno, "limit %d cannot be set", i);
	}
	getrlimit(RLIMIT_CORE, &own);
	less = (struct rlimit){ 0, 0 };
	if (setrlimit(RLIMIT_CORE, &less) == 0 || errno != EPERM ||
	    syscall(SYS_setrlimit, RLIMIT_CORE, &less) == 0 || errno != EPERM ||
	    getrlimit(RLIMIT_CORE, &less) < 0 || memcmp(&own, &less, sizeof(own)) != 0)
		return error_set(e, -EINVAL, "the limit of core dumps changed");
	return 0;
}

static void allows_other_limits(void **state)
{
	(void)state;
	assert_filtered(use_limits);
}

/* ---- threads ---- */

static void *do_nothing(void *data)
{
	return data;
}

static int use_threads_and_forks(struct error *e)
{
	pthread_t thread;
	int status, r;
	void *result;
	pid_t pid;

	r = pthread_create(&thread, NULL, do_nothing, e);
	if (r != 0 || pthread_join(thread, &result) != 0 || result != e)
		return error_errno(e, -r, "no thread");
	pid = fork();
	if (pid == 0)
		_exit(42);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 42)
		return error_set(e, -EINVAL, "no fork");
	return 0;
}

static void allows_threads_and_forks(void **state)
{
	(void)state;
	assert_filtered(use_threads_and_forks);
}

/* ---- the 32-bit door ---- */

#ifdef __x86_64__
static long call_i386(uint32_t number, uint32_t first, uint32_t second, uint32_t third)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"(first), "c"(second), "d"(third)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int32_t)r;
}

enum { I386_GETPID = 20, I386_SOCKETCALL = 102, I386_KEYCTL = 288, I386_SOCKET = 359 };

static int i386_works(void)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(call_i386(I386_GETPID, 0, 0, 0) != getpid());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static int use_i386(struct error *e)
{
	uint32_t *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (args == MAP_FAILED)
		return error_set(e, -EINVAL, "not prepared");
	args[0] = AF_NETLINK;
	args[1] = SOCK_RAW;
	if (call_i386(I386_SOCKETCALL, 1, (uint32_t)(uintptr_t)args, 0) != -EPERM ||
	    call_i386(I386_SOCKET, AF_NETLINK, SOCK_RAW, 0) != -EPERM ||
	    call_i386(I386_SOCKET, AF_UNIX, SOCK_STREAM, 0) != -EPERM ||
	    call_i386(I386_KEYCTL, KEYCTL_GET_KEYRING_ID, (uint32_t)KEY_SPEC_SESSION_KEYRING, 0) !=
		    -EPERM ||
	    call_i386(I386_GETPID, 0, 0, 0) != -EPERM)
		return error_set(e, -EINVAL, "a 32-bit call passed");
	return 0;
}

/* A kernel without them has nothing to deny. */
static void denies_i386_calls(void **state)
{
	(void)state;
	if (i386_works())
		assert_filtered(use_i386);
	else
		print_message("# this kernel has no 32-bit calls\n");
}
#endif

static void frees_the_program(void **state)
{
	struct sock_fprog program = {};
	struct error e = ERROR_NULL;
	int before = open_fds();

	(void)state;
	assert_int_equal(confine_compile(0, &program, &e), 0);
	assert_in_range(program.len, 10, 4096);
	confine_free(&program);
	assert_null(program.filter);
	confine_free(&program);
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_a_guest),
		cmocka_unit_test(misses_every_line),
		cmocka_unit_test(sees_every_changed_byte),
		cmocka_unit_test(sees_other_values),
		cmocka_unit_test(denies_sockets_but_unix_tcp_and_udp),
		cmocka_unit_test(denies_other_protocols),
		cmocka_unit_test(allows_icmp_where_it_is_due),
		cmocka_unit_test(allows_usual_sockets),
		cmocka_unit_test(sees_through_flags),
		cmocka_unit_test(filters_calls),
		cmocka_unit_test(allows_user_namespaces_where_they_are_due),
		cmocka_unit_test(denies_all_modes_with_id_bits),
		cmocka_unit_test(denies_id_bits_beside_garbage),
		cmocka_unit_test(looks_at_the_mode_of_new_files_only),
		cmocka_unit_test(allows_usual_files),
		cmocka_unit_test(allows_other_limits),
		cmocka_unit_test(allows_threads_and_forks),
#ifdef __x86_64__
		cmocka_unit_test(denies_i386_calls),
#endif
		cmocka_unit_test(frees_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
