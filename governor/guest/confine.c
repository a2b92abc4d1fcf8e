/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"

int confine_bound(struct error *e)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap) < 0)
			return error_errno(e, -errno, "capability %d cannot be dropped", cap);
	return 0;
}

int confine_prepare(struct error *e)
{
	static const unsigned long by_default[8]; /* SIG_DFL, no flags, an empty mask */

	if (prctl(PR_SET_SECUREBITS, 0) < 0)
		return error_errno(e, -errno,
				   "securebits cannot be cleared; take SecureBits= away from "
				   "harpe-gov.service");
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP) /* the C library keeps two for itself */
			syscall(SYS_rt_sigaction, sig, by_default, NULL, sizeof(uint64_t));
	return 0;
}

/* struct sched_attr of <linux/sched/types.h>, which this C library's <sched.h> excludes. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* The class of ordinary programs, which has nice values as well. */
static int reset_scheduling(void)
{
	const struct scheduling normal = { .size = sizeof(normal), .policy = SCHED_OTHER };

	return (int)syscall(SYS_sched_setattr, 0, &normal, 0);
}

static int reset_io_priority(void)
{
	return (int)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0));
}

int confine_reset_process(struct error *e)
{
	sigset_t none;
	int r = write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "0");

	if (r < 0)
		return error_errno(e, r, "/proc/self/oom_score_adj: cannot be reset");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0)
		return error_errno(e, -errno, "no session of its own");
	if (reset_scheduling() < 0)
		return error_errno(e, -errno, "the scheduling class cannot be reset");
	if (reset_io_priority() < 0 && errno != ENOSYS)
		return error_errno(e, -errno, "the priority of input and output cannot be reset");
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return error_errno(e, -errno, "no session keyring of its own");
	return 0;
}

/* struct landlock_ruleset_attr as of Landlock's ABI 6, newer than Debian 12's headers. */
struct scopes {
	uint64_t file_system, network, scoped;
};

#define SCOPE_ABSTRACT_UNIX_SOCKET 1
#define SCOPE_SIGNAL		   2

/* -1 when the kernel has none: no Landlock, switched off, or older than that. */
static int make_scopes(int *ret, struct error *e)
{
	const struct scopes scopes = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL };

	*ret = (int)syscall(SYS_landlock_create_ruleset, &scopes, sizeof(scopes), 0);
	if (*ret >= 0 || errno == ENOSYS || errno == EOPNOTSUPP || errno == E2BIG)
		return 0;
	return error_errno(e, -errno, "Landlock's scopes cannot be made");
}

bool confine_has_scopes(void)
{
	_cleanup_close_ int fd = -1;

	return make_scopes(&fd, NULL) == 0 && fd >= 0;
}

/* The descriptor goes at exec. */
int confine_scopes(struct error *e)
{
	int fd, r = make_scopes(&fd, e);

	if (r < 0 || fd < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return error_errno(e, -errno, "Landlock's scopes cannot be entered");
	return 0;
}

/* Of a uid's queued signals and POSIX timers. A timer whose signal is ignored goes off at each tick
 * of the kernel's (250 a second), in interrupts that cpu.max does not count (before Linux 6.13). */
#define SIGNALS_MAX 256

static rlim_t smaller(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

int confine_rlimits(const struct rlimit limits[GUEST_RLIMITS], uint64_t file_bytes, struct error *e)
{
	for (int i = 0; i < GUEST_RLIMITS; i++) {
		struct rlimit own, set;

		if (getrlimit((__rlimit_resource_t)i, &own) < 0)
			return error_errno(e, -errno, "resource limit %d cannot be read", i);
		set.rlim_max = smaller(limits[i].rlim_max, own.rlim_max);
		set.rlim_cur = smaller(limits[i].rlim_cur, set.rlim_max);
		if (i == RLIMIT_FSIZE && set.rlim_max == RLIM_INFINITY)
			set = (struct rlimit){ .rlim_cur = smaller(set.rlim_cur, file_bytes),
					       .rlim_max = file_bytes };
		if (i == RLIMIT_SIGPENDING)
			set = (struct rlimit){ .rlim_cur = smaller(set.rlim_cur, SIGNALS_MAX),
					       .rlim_max = smaller(set.rlim_max, SIGNALS_MAX) };
		if (i == RLIMIT_CORE)
			set = (struct rlimit){ .rlim_cur = 1, .rlim_max = 1 };
		if ((set.rlim_cur != own.rlim_cur || set.rlim_max != own.rlim_max) &&
		    setrlimit((__rlimit_resource_t)i, &set) < 0)
			return error_errno(e, -errno, "resource limit %d cannot be set", i);
	}
	return 0;
}

/* Leaving uid 0 empties the permitted, effective and ambient sets (capabilities(7), "Effect of user
 * ID changes on capabilities"); the inheritable set must be emptied by hand. */
static int drop_inheritable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return (int)syscall(SYS_capset, &header, none);
}

/* Who has none yet may take anybody's (audit_set_loginuid_perm() of the kernel's kernel/audit*.c),
 * whom the audit's records then name. */
static int set_login_uid(uint32_t uid)
{
	char text[16];
	int r;

	snprintf(text, sizeof(text), "%" PRIu32, uid);
	r = write_file_at(AT_FDCWD, "/proc/self/loginuid", text);
	return r == -ENOENT || r == -EPERM ? 0 : r; /* no audit; the daemon has one */
}

int confine_identity(uint32_t uid, struct error *e)
{
	int r = set_login_uid(uid);

	if (r < 0)
		return error_errno(e, r, "/proc/self/loginuid: cannot be set");
	if (setgroups(0, NULL) < 0)
		return error_errno(e, -errno, "groups cannot be dropped");
	if (setresgid(uid, uid, uid) < 0)
		return error_errno(e, -errno, "gid %u cannot be taken", uid);
	if (setresuid(uid, uid, uid) < 0)
		return error_errno(e, -errno, "uid %u cannot be taken", uid);
	if (drop_inheritable() < 0)
		return error_errno(e, -errno, "capabilities cannot be dropped");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(e, -errno, "no_new_privs cannot be set");
	return 0;
}

int confine_syscalls(const struct sock_fprog *program, struct error *e)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0)
		return error_errno(e, -errno, "the system call filter cannot be set");
	return 0;
}

/* ---- reading back ---- */

static int line_is(const char *status, const char *key, const char *want, struct error *e)
{
	size_t len = strlen(key), want_len = strlen(want);
	const char *line = status;

	while (line && strncmp(line, key, len) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return error_set(e, -ESTALE, "/proc: there is no line \"%s\" about the guest", key);
	line += len;
	if (strncmp(line, want, want_len) != 0 ||
	    strspn(line + want_len, " ") != strcspn(line + want_len, "\n"))
		return error_set(e, -ESTALE, "the guest has \"%s%.*s\" where \"%s\" was set", key,
				 (int)strcspn(line, "\n"), line, want);
	return 0;
}

int confine_verify_status(const char *status, uint32_t uid, struct error *e)
{
	static const char none[] = "\t0000000000000000";
	char ids[64];
	const char *const want[][2] = {
		{ "Uid:", ids },       { "Gid:", ids },	    { "Groups:", "\t" },
		{ "CapInh:", none },   { "CapPrm:", none }, { "CapEff:", none },
		{ "CapBnd:", none },   { "CapAmb:", none }, { "NoNewPrivs:", "\t1" },
		{ "Seccomp:", "\t2" }, { "SigBlk:", none }, { "SigIgn:", none },
	};

	snprintf(ids, sizeof(ids), "\t%u\t%u\t%u\t%u", uid, uid, uid, uid);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		int r = line_is(status, want[i][0], want[i][1], e);

		if (r < 0)
			return r;
	}
	return 0;
}

int confine_verify(pid_t pid, uint32_t uid, struct error *e)
{
	char path[64], status[8192];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	n = read_file_at(AT_FDCWD, path, status, sizeof(status));
	if (n < 0)
		return error_errno(e, (int)n, "%s: cannot be read", path);
	return confine_verify_status(status, uid, e);
}
