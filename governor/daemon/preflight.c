/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/daemon/preflight_systemd.h"
#include "governor/guest/cgroup.h"
#include "governor/supervisor/means.h"
#include "governor/supervisor/supervisor.h"

#define TEXT_MAX 8192

const char *const preflight_needed[] = { "cpu", "memory", "pids", NULL };

static int read_text(const char *path, char text[TEXT_MAX], struct error *e)
{
	ssize_t n = read_file_at(AT_FDCWD, path, text, TEXT_MAX);

	return n < 0 ? error_errno(e, (int)n, "%s: cannot be read", path) : 0;
}

/* ---- who we are ---- */

static int check_root(struct error *e)
{
	return geteuid() == 0
		       ? 0
		       : error_set(e, -EPERM,
				   "must be started as root: systemctl start harpe-gov.service");
}

int preflight_user_namespace(const char *uid_map, struct error *e)
{
	uint32_t inside, outside, count;

	if (sscanf(uid_map, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) == 3 &&
	    inside == 0 && outside == 0 && count == UINT32_MAX)
		return 0;
	return error_set(
		e, -EPERM,
		"started in a user namespace (/proc/self/uid_map), whose root has no right to "
		"the firewall and the uids of the host: start it on the host itself");
}

static int check_user_namespace(struct error *e)
{
	char text[TEXT_MAX];
	int r = read_text("/proc/self/uid_map", text, e);

	return r < 0 ? r : preflight_user_namespace(text, e);
}

/* Those of CapabilityBoundingSet= in units/harpe-gov.service. */
static const struct {
	unsigned int number;
	const char *name;
} capabilities[] = {
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_CHOWN, "CAP_CHOWN" },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
	{ CAP_FOWNER, "CAP_FOWNER" },
	{ CAP_IPC_LOCK, "CAP_IPC_LOCK" },
	{ CAP_KILL, "CAP_KILL" },
	{ CAP_SETGID, "CAP_SETGID" },
	{ CAP_SETPCAP, "CAP_SETPCAP" },
	{ CAP_SETUID, "CAP_SETUID" },
	{ CAP_SYS_CHROOT, "CAP_SYS_CHROOT" },
	{ CAP_SYS_NICE, "CAP_SYS_NICE" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE" },
};

int preflight_capabilities(const char *status, struct error *e)
{
	const char *line = strstr(status, "\nCapEff:");
	uint64_t have;

	if (!line || sscanf(line, "\nCapEff: %" SCNx64, &have) != 1)
		return error_set(e, -EINVAL,
				 "/proc/self/status does not say which capabilities "
				 "there are: mount the kernel's own /proc");
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		if (!(have & UINT64_C(1) << capabilities[i].number))
			return error_set(e, -EPERM,
					 "%s is missing: give it back in CapabilityBoundingSet= of "
					 "harpe-gov.service, or of the container that it runs in",
					 capabilities[i].name);
	return 0;
}

static int check_capabilities(struct error *e)
{
	char text[TEXT_MAX];
	int r = read_text("/proc/self/status", text, e);

	return r < 0 ? r : preflight_capabilities(text, e);
}

/* ---- the host ---- */

static int check_booted(struct error *e)
{
	return sd_booted() > 0 ? 0
			       : error_set(e, -ENOSYS,
					   "systemd is not running here (no /run/systemd/system): "
					   "a host that "
					   "was booted with systemd as PID 1 is needed");
}

int preflight_hierarchy(long type, long unified_type, struct error *e)
{
	const char *what = "nothing that is known is mounted at " CGROUP_ROOT;

	if (type == CGROUP2_SUPER_MAGIC)
		return 0;
	if (unified_type == CGROUP2_SUPER_MAGIC)
		what = CGROUP_ROOT " is a hybrid of v1 and v2";
	else if (type == TMPFS_MAGIC || type == CGROUP_SUPER_MAGIC)
		what = CGROUP_ROOT " is v1";
	return error_set(
		e, -ENOSYS,
		"cgroup v2 needed, but %s: boot with systemd.unified_cgroup_hierarchy=1 on "
		"the kernel's command line",
		what);
}

static long type_of(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) < 0 ? 0 : (long)fs.f_type;
}

static int check_hierarchy(struct error *e)
{
	return preflight_hierarchy(type_of(CGROUP_ROOT), type_of(CGROUP_ROOT "/unified"), e);
}

int preflight_controllers(const char *available, struct error *e)
{
	for (size_t i = 0; preflight_needed[i]; i++)
		if (!text_has_word(available, preflight_needed[i]))
			return error_set(
				e, -ENOENT,
				"the %s controller is not available in " CGROUP_ROOT
				": boot without cgroup_disable=%s and cgroup_no_v1=, with "
				"cgroup_enable=%s, and mount no v1 hierarchy that takes it",
				preflight_needed[i], preflight_needed[i], preflight_needed[i]);
	return 0;
}

static int check_controllers(struct error *e)
{
	char text[TEXT_MAX];
	int r = read_text(CGROUP_ROOT "/cgroup.controllers", text, e);

	return r < 0 ? r : preflight_controllers(text, e);
}

/* A kernel that knows the attribute misses the user namespace, any other one the attribute. */
int preflight_idmap(int number, struct error *e)
{
	if (number == EBADF)
		return 0;
	if (number == ENOSYS || number == EINVAL)
		return error_set(e, -ENOSYS,
				 "the kernel has no idmapped mounts (mount_setattr(2), "
				 "MOUNT_ATTR_IDMAP): Linux 6.1 or later is needed");
	return error_errno(
		e, -number,
		"idmapped mounts cannot be made (mount_setattr(2)): let whatever filters "
		"system calls here allow it");
}

static int check_idmap(struct error *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = INT_MAX };

	int r = mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr));

	return preflight_idmap(r < 0 ? errno : 0, e);
}

int preflight_user_namespaces(int number, struct error *e)
{
	if (number == 0)
		return 0;
	if (number == ENOSPC)
		return error_set(
			e, -ENOSPC,
			"user namespaces are disabled or used up: sysctl "
			"user.max_user_namespaces must be more than 0, and more than there "
			"are");
	if (number == EINVAL)
		return error_set(e, -EINVAL,
				 "the kernel has no user namespaces: CONFIG_USER_NS is needed");
	return error_errno(e, -number,
			   "user namespaces cannot be made: allow them to root "
			   "(user.max_user_namespaces, the security modules)");
}

static int wait_end(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* In a child: nobody comes back from a user namespace. */
static int try_user_namespace(void)
{
	pid_t pid = fork();
	int status, r;

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? errno : 0);
	r = wait_end(pid, &status);
	if (r < 0)
		return -r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int check_user_namespaces(struct error *e)
{
	return preflight_user_namespaces(try_user_namespace(), e);
}

/* ---- our own ---- */

#define ANEW "install all of harpe-gov anew"

static int try_supervisor(int *ret_status)
{
	char *const argv[] = { (char *)HARPE_GOV_SUPERVISOR, (char *)means_build(), NULL };
	pid_t pid;
	int r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);

	return r != 0 ? -r : wait_end(pid, ret_status);
}

static int check_supervisor(struct error *e)
{
	int status, r = try_supervisor(&status);

	if (r < 0)
		return error_errno(e, r, HARPE_GOV_SUPERVISOR " cannot be run: " ANEW);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SUPERVISOR_MISFIT)
		return error_set(e, -ESTALE,
				 HARPE_GOV_SUPERVISOR
				 " is of another version than harpe-govd: " ANEW);
	return status == 0 ? 0
			   : error_set(e, -EIO,
				       HARPE_GOV_SUPERVISOR
				       " cannot be run (it ends with wait status %#x): " ANEW,
				       (unsigned int)status);
}

/* ---- all of them ---- */

static const struct probe {
	bool firewall; /* the table of the early boot needs it as well */
	int (*check)(struct error *e);
} probes[] = {
	{ true, check_root },	       { true, check_user_namespace },
	{ false, check_booted },       { true, check_hierarchy },
	{ false, check_capabilities }, { false, check_controllers },
	{ false, check_idmap },	       { false, check_user_namespaces },
	{ false, check_supervisor },   { false, preflight_systemd },
};

int preflight_check(bool firewall_only, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		int r = probes[i].firewall || !firewall_only ? probes[i].check(e) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}
