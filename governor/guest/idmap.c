/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

/* A process in a user namespace of its own, which it keeps until it is killed. */
static pid_t fork_keeper(void)
{
	pid_t parent = getpid();
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (;;)
		pause();
}

static void end_keeper(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int write_map(pid_t pid, const char *name, uint32_t inside, uint32_t outside)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	snprintf(line, sizeof(line), "%" PRIu32 " %" PRIu32 " 1", inside, outside);
	return write_file_at(AT_FDCWD, path, line);
}

/* A descriptor of a user namespace that has this mapping and no process. */
static int make_namespace(const struct id_pair *disk, const struct id_pair *guest)
{
	_cleanup_(end_keeper) pid_t pid = fork_keeper();
	char path[64];
	int r, fd;

	if (pid < 0)
		return -errno;
	r = write_map(pid, "uid_map", disk->uid, guest->uid);
	if (r == 0)
		r = write_map(pid, "gid_map", disk->gid, guest->gid);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int idmap_mount(int tree, const struct id_pair *disk, const struct id_pair *guest, struct error *e)
{
	_cleanup_close_ int namespace = make_namespace(disk, guest);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };

	if (namespace == -ENOSPC || namespace == -EUSERS)
		return error_set(e, namespace,
				 "no user namespace can be made: raise user.max_user_namespaces");
	if (namespace < 0)
		return error_errno(e, namespace, "no user namespace can be made");
	attr.userns_fd = (uint64_t) namespace;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	if (errno == EINVAL || errno == EOPNOTSUPP)
		return error_set(e, -EOPNOTSUPP,
				 "its file system cannot show files as another user's (idmapped "
				 "mounts); ext4, xfs and btrfs can");
	return error_errno(e, -errno, "its mount cannot be idmapped");
}
