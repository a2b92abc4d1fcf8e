/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are not the guest's. An aim is a list of paths. What must not be there is opened,
 * never changed; what was made is removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define PATH_MAX_BYTES 512
#define OWN_FILE       "/tmp/harpe-gov-probe"
#define TO_MAKE	       "harpe-gov-probe-made"

static long read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), saved;
	char byte;
	long n;

	if (fd < 0)
		return -1;
	n = read(fd, &byte, 1);
	saved = errno;
	close(fd);
	errno = saved;
	return n;
}

static long open_to_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -1 : close(fd);
}

static long open_device(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -1 : close(fd);
}

/* -1 with ENOENT when there is nothing in it. */
static long list_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	if (!directory)
		return -1;
	while ((entry = readdir(directory)) && entry->d_name[0] == '.')
		;
	closedir(directory);
	errno = ENOENT;
	return entry ? 0 : -1;
}

static long make_in(const char *directory)
{
	char path[PATH_MAX_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/" TO_MAKE, directory);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	close(fd);
	return unlink(path);
}

static void for_each(char *aim, struct seen *s, long (*f)(const char *path))
{
	for (char *path; (path = next_word(&aim));)
		seen_attempt(s, path, f(path));
}

static void try_read(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for_each(aim, s, read_file);
}

static void try_open_to_write(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for_each(aim, s, open_to_write);
}

static void try_open(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for_each(aim, s, open_device);
}

static void try_list(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for_each(aim, s, list_directory);
}

static void try_make(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for_each(aim, s, make_in);
}

/* Those that /dev has. */
static void try_block_devices(const struct probe *p, char *aim, struct seen *s)
{
	DIR *directory = opendir(aim);
	struct dirent *entry;

	(void)p;
	errno = ENOENT;
	seen_attempt(s, aim, -1);
	while (directory && (entry = readdir(directory))) {
		char path[PATH_MAX_BYTES];

		snprintf(path, sizeof(path), "%s/%s", aim, entry->d_name);
		if (entry->d_type == DT_BLK)
			seen_attempt(s, path, open_device(path));
	}
	if (directory)
		closedir(directory);
}

static void try_mknod(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	if (seen_attempt(s, "character device", mknod(aim, S_IFCHR | 0666, makedev(1, 1))))
		unlink(aim);
	if (seen_attempt(s, "block device", mknod(aim, S_IFBLK | 0666, makedev(8, 0))))
		unlink(aim);
}

static void try_mount(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	if (seen_attempt(s, "tmpfs", mount("tmpfs", aim, "tmpfs", 0, NULL)))
		umount2(aim, MNT_DETACH);
	if (seen_attempt(s, "bind", mount("/proc", aim, NULL, MS_BIND, NULL)))
		umount2(aim, MNT_DETACH);
	seen_attempt(s, "remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

/* Regular files in @aim that stay. */
static void try_leave(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	for (char *path; (path = next_word(&aim));) {
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

		if (seen_attempt(s, path, fd))
			close(fd);
	}
}

/* Each call that can set the bits. */
static void try_id_bits(const struct probe *p, char *aim, struct seen *s)
{
	int fd = open(aim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)p;
	if (fd < 0) {
		seen_set(s, "unable", "%s: %s", aim, strerror(errno));
		return;
	}
	seen_attempt(s, "chmod", chmod(aim, 04755));
	seen_attempt(s, "chmod, group", chmod(aim, 02755));
	seen_attempt(s, "fchmod", fchmod(fd, 06755));
	seen_attempt(s, "fchmodat", fchmodat(AT_FDCWD, aim, 04755, 0));
	unlink(aim);
	seen_attempt(s, "open", open(aim, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 04755));
	unlink(aim);
	seen_attempt(s, "mkdir", mkdir(aim, 02755));
	rmdir(aim);
	seen_attempt(s, "mknod", mknod(aim, S_IFREG | 04755, 0));
	unlink(aim);
	close(fd);
}

/* Are set-user-ID bits without effect there? */
static void try_nosuid(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	strcpy(s->outcome, "nosuid");
	for (char *path; (path = next_word(&aim));) {
		struct statvfs st;

		if (statvfs(path, &st) < 0 || st.f_flag & ST_NOSUID)
			continue;
		strcpy(s->outcome, "suid");
		seen_word(s, path);
	}
}

const struct probe file_probes[] = {
	{ "files.own", try_read, { 0 }, NULL, false },
	{ "files.home", try_read, { 0 }, NULL, false },
	{ "files.env", try_read, { 0 }, NULL, false },
	{ "files.ssh", try_read, { 0 }, NULL, false },
	{ "files.other-run", try_read, { 0 }, NULL, false },
	{ "files.shared-places", try_read, { 0 }, NULL, false },
	{ "files.shadow",
	  try_read,
	  { 0 },
	  "/etc/shadow,/etc/gshadow,/etc/security/opasswd",
	  false },
	{ "files.homes", try_list, { 0 }, "/root,/home,/srv,/opt,/media,/mnt", false },
	{ "files.block", try_block_devices, { 0 }, "/dev", false },
	{ "files.memory",
	  try_open,
	  { 0 },
	  "/dev/mem,/dev/kmem,/dev/port,/dev/kmsg,/proc/kcore",
	  false },
	{ "files.devices",
	  try_open,
	  { 0 },
	  "/dev/kvm,/dev/fuse,/dev/net/tun,/dev/vhost-net,/dev/vhost-vsock,/dev/loop-control,"
	  "/dev/mapper/control,/dev/uinput,/dev/rfkill,/dev/hpet,/dev/tty0,/dev/console",
	  false },
	{ "files.mknod", try_mknod, { 0 }, OWN_FILE "-node", false },
	{ "files.mount", try_mount, { 0 }, "/tmp", false },
	{ "files.sysfs",
	  try_open_to_write,
	  { 0 },
	  "/sys/power/state,/sys/kernel/uevent_helper,/sys/kernel/mm/ksm/run,"
	  "/sys/fs/cgroup/cgroup.procs,/sys/module/kernel/parameters/panic,"
	  "/sys/kernel/debug/sched/features,/sys/kernel/security/apparmor/.load",
	  false },
	{ "files.proc-sys",
	  try_open_to_write,
	  { 0 },
	  "/proc/sys/kernel/core_pattern,/proc/sys/kernel/modprobe,/proc/sys/kernel/hostname,"
	  "/proc/sys/vm/drop_caches,/proc/sys/net/ipv4/ip_forward,/proc/sysrq-trigger",
	  false },
	{ "files.system",
	  try_make,
	  { 0 },
	  "/,/etc,/usr,/usr/bin,/bin,/sbin,/lib,/usr/local,/usr/local/bin,/var,/var/lib,"
	  "/var/crash,/var/lock,/var/spool/cron,/home,/srv,/opt,/boot,/mnt,/media,/run,/dev,/sys",
	  false },
	{ "files.left", try_leave, { 0 }, NULL, false },
	{ "files.id-bits", try_id_bits, { 0 }, OWN_FILE "-bits", false },
	{ "files.nosuid", try_nosuid, { 0 }, "/,/usr,/etc,/tmp,/var/tmp,/dev/shm,/run,.", false },
	{ 0 },
};
