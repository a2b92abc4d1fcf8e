/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that no guest has a use for. Where one would have an effect, its arguments have
 * none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define GARBAGE	    (1UL << 32) /* in the half of a register that the kernel ignores */
#define X32_BIT	    0x40000000
#define I386_GETPID 20

static void try_user_namespace(const struct probe *p, char *aim, struct seen *s)
{
	long pid;

	(void)p;
	(void)aim;
	pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	seen_attempt(s, "clone", pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	seen_attempt(s, "unshare", unshare(CLONE_NEWUSER));
}

static void try_other_namespaces(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_attempt(s, "network", unshare(CLONE_NEWNET));
	seen_attempt(s, "mounts", unshare(CLONE_NEWNS));
	seen_attempt(s, "pids", unshare(CLONE_NEWPID));
	seen_attempt(s, "control groups", unshare(CLONE_NEWCGROUP));
}

/* Their flags lie behind a pointer, where no filter sees them. */
static void try_pointer_flags(const struct probe *p, char *aim, struct seen *s)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	uint64_t how[3] = { O_RDONLY };
	long pid;

	(void)p;
	(void)aim;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	if (pid >= 0 || errno != ENOSYS)
		seen_attempt(s, "clone3", pid);
	if (syscall(SYS_openat2, AT_FDCWD, "/", how, sizeof(how)) >= 0)
		seen_attempt(s, "openat2", 0);
	errno = ENOSYS;
	seen_attempt(s, "clone3", -1);
}

static void try_io_uring(const struct probe *p, char *aim, struct seen *s)
{
	char params[256] = "";

	(void)p;
	(void)aim;
	seen_attempt(s, "io_uring_setup", syscall(SYS_io_uring_setup, 1, params));
	seen_attempt(s, "io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
	seen_attempt(s, "io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0));
}

static void try_terminal(const struct probe *p, char *aim, struct seen *s)
{
	int lines = N_SLIP;
	char byte = ' ';

	(void)p;
	(void)aim;
	seen_attempt(s, "TIOCSTI", ioctl(0, TIOCSTI, &byte));
	seen_attempt(s, "TIOCSTI, upper half", syscall(SYS_ioctl, 0, TIOCSTI | GARBAGE, &byte));
	seen_attempt(s, "TIOCLINUX", ioctl(0, TIOCLINUX, &byte));
	seen_attempt(s, "TIOCSETD", ioctl(0, TIOCSETD, &lines));
	seen_attempt(s, "TIOCCONS", ioctl(0, TIOCCONS, NULL));
}

static void try_filter(const struct probe *p, char *aim, struct seen *s)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	(void)p;
	(void)aim;
	seen_attempt(s, "seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	seen_attempt(s, "prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- calls by other numbers ---- */

#ifdef __x86_64__
/* getpid(2), which needs no argument. */
static void try_i386(const struct probe *p, char *aim, struct seen *s)
{
	long r;

	(void)p;
	(void)aim;
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(I386_GETPID)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-r;
	seen_attempt(s, "int $0x80", r < 0 ? -1 : 0);
}

static void try_x32(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_attempt(s, "getpid", syscall(X32_BIT | SYS_getpid));
}
#else
static void try_i386(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_set(s, "ENOSYS", "this architecture has none");
}
#define try_x32 try_i386
#endif

/* ---- what needs capabilities ---- */

static void try_administration(const struct probe *p, char *aim, struct seen *s)
{
	char name[65] = "";

	(void)p;
	(void)aim;
	gethostname(name, sizeof(name) - 1);
	seen_attempt(s, "sethostname", sethostname(name, strlen(name)));
	seen_attempt(s, "chroot", chroot("/"));
	seen_attempt(s, "pivot_root", syscall(SYS_pivot_root, ".", "."));
	seen_attempt(s, "swapoff", swapoff("/harpe-gov-probe"));
	seen_attempt(s, "init_module", syscall(SYS_init_module, "", 0, ""));
	seen_attempt(s, "delete_module", syscall(SYS_delete_module, "harpe-gov-probe", 0));
	seen_attempt(s, "kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	seen_attempt(s, "acct", acct("/harpe-gov-probe"));
	seen_attempt(s, "vhangup", vhangup());
}

const struct probe syscall_probes[] = {
	{ "syscalls.user-namespace", try_user_namespace, { 0 }, NULL, false },
	{ "syscalls.other-namespaces", try_other_namespaces, { 0 }, NULL, false },
	{ "syscalls.pointer-flags", try_pointer_flags, { 0 }, NULL, false },
	{ "syscalls.io-uring", try_io_uring, { 0 }, NULL, false },
	{ "syscalls.terminal", try_terminal, { 0 }, NULL, false },
	{ "syscalls.filter", try_filter, { 0 }, NULL, false },
	{ "syscalls.i386", try_i386, { 0 }, NULL, false },
	{ "syscalls.x32", try_x32, { 0 }, NULL, false },
	{ "syscalls.administration", try_administration, { 0 }, NULL, false },
	{ 0 },
};
