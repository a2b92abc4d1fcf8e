/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/supervisor/stdio_check.h"

static void assert_allowed(int fd)
{
	struct error e = ERROR_NULL;

	assert_true(fd >= 0);
	if (stdio_check(fd, "standard input", &e) != 0)
		fail_msg("%s", e.text);
	close(fd);
}

/* Refused as @what. */
static void check_refused(int fd, const char *what)
{
	struct error e = ERROR_NULL;
	char sentence[200];

	assert_true(fd >= 0);
	snprintf(sentence, sizeof(sentence),
		 "standard output is %s, which a guest may not have; use a file, a pipe or "
		 "/dev/null",
		 what);
	assert_int_equal(stdio_check(fd, "standard output", &e), -EINVAL);
	assert_string_equal(e.text, sentence);
	assert_int_equal(stdio_check(fd, "standard output", NULL), -EINVAL);
}

static void assert_refused(int fd, const char *what)
{
	check_refused(fd, what);
	close(fd);
}

/* ---- files ---- */

static void allows_regular_files(void **state)
{
	char path[] = "/tmp/harpe-gov-test-XXXXXX";
	int fd = mkstemp(path), before = open_fds();

	(void)state;
	assert_allowed(dup(fd));
	assert_allowed(open(path, O_RDONLY));
	assert_allowed(open(path, O_WRONLY | O_APPEND));
	unlink(path);
	assert_allowed(dup(fd));
	assert_allowed(memfd_create("test", MFD_CLOEXEC));
	assert_int_equal(open_fds(), before);
	close(fd);
}

/* Those that are there and may be opened; /proc and /sys are. */
static void refuses_files_of_the_kernels(void **state)
{
	static const struct {
		const char *path;
		int flags;
	} files[] = {
		{ "/proc/self/status", O_RDONLY },
		{ "/proc/self/comm", O_WRONLY },
		{ "/proc/sys/kernel/hostname", O_WRONLY },
		{ "/proc/self/ns/net", O_RDONLY },
		{ "/sys/kernel/uevent_seqnum", O_RDONLY },
		{ "/sys/kernel/profiling", O_RDONLY },
		{ "/sys/fs/cgroup/cgroup.procs", O_WRONLY },
		{ "/sys/fs/cgroup/unified/cgroup.procs", O_RDONLY },
		{ "/sys/kernel/security/lsm", O_RDONLY },
		{ "/sys/kernel/debug/sleep_time", O_RDONLY },
		{ "/sys/kernel/tracing/trace_marker", O_WRONLY },
		{ "/proc/sys/fs/binfmt_misc/status", O_RDONLY },
	};
	int n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd = open(files[i].path, files[i].flags);

		if (fd < 0)
			continue;
		assert_refused(fd, "a file of the kernel's");
		n++;
	}
	assert_true(n >= 3);
}

static void allows_pipes(void **state)
{
	char dir[] = "/tmp/harpe-gov-test-XXXXXX", path[64];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_allowed(ends[0]);
	assert_allowed(ends[1]); /* although nobody reads any more */
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_allowed(open(path, O_RDWR));
	unlink(path);
	rmdir(dir);
}

static void allows_harmless_devices(void **state)
{
	static const char *const names[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_allowed(open(names[i], O_RDWR));
	assert_allowed(open("/dev/null", O_RDONLY));
}

static void refuses_o_path(void **state)
{
	static const char *const names[] = { "/dev/null", "/dev/tty", "/etc/passwd", "/" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_refused(open(names[i], O_PATH), "an O_PATH descriptor");
	assert_refused(open("/proc/self/exe", O_PATH | O_NOFOLLOW), "an O_PATH descriptor");
}

static void refuses_directories(void **state)
{
	(void)state;
	assert_refused(open("/", O_RDONLY | O_DIRECTORY), "a directory");
	assert_refused(open("/proc/self", O_RDONLY), "a directory");
}

static void refuses_descriptors_without_a_file(void **state)
{
	static const char what[] = "of a kind that is not allowed";
	sigset_t none;

	(void)state;
	sigemptyset(&none);
	assert_refused(epoll_create1(EPOLL_CLOEXEC), what);
	assert_refused(eventfd(0, EFD_CLOEXEC), what);
	assert_refused(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), what);
	assert_refused(signalfd(-1, &none, SFD_CLOEXEC), what);
	assert_refused(inotify_init1(IN_CLOEXEC), what);
	assert_refused((int)syscall(SYS_pidfd_open, getpid(), 0), what);
}

/* ---- terminals and devices ---- */

static const char device[] = "a terminal or device";

static int open_pty(int flags, int *ret_master)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	*ret_master = master;
	return open(ptsname(master), O_RDWR | flags);
}

/* In a session of its own, the terminal becomes the controlling one. */
static int child_is_refused_its_terminal(void)
{
	int master, slave = -1, tty = -1;

	if (setsid() >= 0) {
		slave = open_pty(0, &master);
		tty = open("/dev/tty", O_RDWR);
	}
	return slave >= 0 && tty >= 0 && stdio_check(tty, "x", NULL) == -EINVAL;
}

static void refuses_terminals(void **state)
{
	int master, status;
	pid_t pid;

	(void)state;
	assert_refused(open_pty(O_NOCTTY, &master), device);
	assert_refused(master, device);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child_is_refused_its_terminal() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Those that are there and may be opened. */
static void refuses_other_devices(void **state)
{
	static const char *const names[] = { "/dev/ptmx", "/dev/kmsg", "/dev/fuse",
					     "/dev/net/tun" };
	static const char *const disks[] = { "/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names) + ARRAY_SIZE(disks); i++) {
		const char *name = i < ARRAY_SIZE(names) ? names[i] : disks[i - ARRAY_SIZE(names)];
		int fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0)
			assert_refused(fd, i < ARRAY_SIZE(names) ? device
								 : "of a kind that is not allowed");
	}
}

/* ---- sockets ---- */

static const char network[] = "a network socket";

/* Binds to a free address of @family and listens. */
static int listening(int family, struct sockaddr_storage *address, socklen_t *len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
	if (family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(sa_family_t);
	assert_int_equal(bind(fd, (struct sockaddr *)address, *len), 0);
	assert_int_equal(listen(fd, 1), 0);
	*len = sizeof(*address);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, len), 0);
	return fd;
}

/* A connection in ends[0 .. 1], and in *ret_listener the socket that it was accepted from. */
static void make_connection(int family, int ends[2], int *ret_listener)
{
	struct sockaddr_storage address;
	socklen_t len;

	*ret_listener = listening(family, &address, &len);
	ends[0] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, len), 0);
	ends[1] = accept(*ret_listener, NULL, NULL);
}

static void allows_connected_unix_streams(void **state)
{
	int ends[2], listener;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_allowed(ends[0]);
	assert_allowed(ends[1]); /* although nobody is there any more */
	make_connection(AF_UNIX, ends, &listener);
	assert_allowed(ends[0]);
	assert_allowed(ends[1]);
	close(listener);
}

static void refuses_unconnected_unix_streams(void **state)
{
	struct sockaddr_storage address;
	socklen_t len;

	(void)state;
	assert_refused(socket(AF_UNIX, SOCK_STREAM, 0), "a Unix socket that is not connected");
	assert_refused(listening(AF_UNIX, &address, &len), "a Unix socket that is not connected");
}

/* Datagrams could be sent to any address. */
static void refuses_other_unix_sockets(void **state)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET };
	int ends[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(socketpair(AF_UNIX, types[i], 0, ends), 0);
		assert_refused(ends[0], "a Unix socket that is no stream");
		assert_refused(ends[1], "a Unix socket that is no stream");
		assert_refused(socket(AF_UNIX, types[i], 0), "a Unix socket that is no stream");
	}
}

static void refuses_network_sockets(void **state)
{
	int ends[2], listener, udp = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(9) };

	(void)state;
	make_connection(AF_INET, ends, &listener);
	assert_refused(ends[0], network);
	assert_refused(ends[1], network);
	assert_refused(listener, network);
	assert_refused(socket(AF_INET, SOCK_STREAM, 0), network);
	check_refused(udp, network);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(udp, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_refused(udp, network);
	assert_refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), network);
}

/* What this kernel may lack. */
static void refuses_rare_sockets(void **state)
{
	static const int rare[][3] = {
		{ AF_INET6, SOCK_STREAM, 0 },  { AF_INET6, SOCK_DGRAM, 0 },
		{ AF_INET, SOCK_STREAM, 262 }, /* IPPROTO_MPTCP */
		{ AF_PACKET, SOCK_DGRAM, 0 },  { AF_VSOCK, SOCK_STREAM, 0 },
		{ AF_ALG, SOCK_SEQPACKET, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rare); i++) {
		int fd = socket(rare[i][0], rare[i][1], rare[i][2]);

		if (fd >= 0)
			assert_refused(fd, network);
	}
}

static void refuses_what_is_not_open(void **state)
{
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(stdio_check(-1, "standard error", &e), -EBADF);
	assert_mentions(e.text, "standard error cannot be looked at", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allows_regular_files),
		cmocka_unit_test(refuses_files_of_the_kernels),
		cmocka_unit_test(allows_pipes),
		cmocka_unit_test(allows_harmless_devices),
		cmocka_unit_test(refuses_o_path),
		cmocka_unit_test(refuses_directories),
		cmocka_unit_test(refuses_descriptors_without_a_file),
		cmocka_unit_test(refuses_terminals),
		cmocka_unit_test(refuses_other_devices),
		cmocka_unit_test(allows_connected_unix_streams),
		cmocka_unit_test(refuses_unconnected_unix_streams),
		cmocka_unit_test(refuses_other_unix_sockets),
		cmocka_unit_test(refuses_network_sockets),
		cmocka_unit_test(refuses_rare_sockets),
		cmocka_unit_test(refuses_what_is_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
