/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/units.h"

#define COUNTERS_SIZE 8192 /* of /proc/net/snmp6: about 90 lines of at most 50 bytes */

int network_loopback_up(struct error *e)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return error_errno(e, -errno, "loopback cannot be switched on");
	return 0;
}

int network_make(struct error *e)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		return error_errno(e, -errno, "no network namespace");
	if (network_loopback_up(e) < 0)
		return -EIO;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? error_errno(e, -errno, "/proc/self/ns/net") : fd;
}

int network_enter(int netns, struct error *e)
{
	if (netns >= 0 && setns(netns, CLONE_NEWNET) < 0)
		return error_errno(e, -errno, "the network namespace cannot be entered");
	return 0;
}

static int open_counters(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void network_open(pid_t pid, struct network *ret)
{
	ret->snmp = open_counters(pid, "snmp");
	ret->snmp6 = open_counters(pid, "snmp6");
}

/* "Ip: Forwarding DefaultTTL ..." on one line, "Ip: 1 64 ..." on the next. */
int network_parse_snmp(const char *text, const char *protocol, const char *field, uint64_t *ret)
{
	size_t len = strlen(protocol), field_len = strlen(field);
	const char *name = text, *value, *end;

	while (name && strncmp(name, protocol, len) != 0) {
		name = strchr(name, '\n');
		name = name ? name + 1 : NULL;
	}
	end = name ? strchr(name, '\n') : NULL;
	if (!end || strncmp(end + 1, protocol, len) != 0)
		return -ENOENT;
	for (value = end + 1; name && name < end; name++, value++) {
		if (strncmp(name, field, field_len) == 0 &&
		    (name[field_len] == ' ' || name[field_len] == '\n'))
			return parse_u64_prefix(value, ret);
		name = strpbrk(name, " \n");
		value = strpbrk(value, " \n");
		if (!name || !value || *value == '\n')
			break;
	}
	return -ENOENT;
}

/* "Ip6OutNoRoutes                  \t3" */
static uint64_t parse_snmp6(const char *text)
{
	static const char key[] = "\nIp6OutNoRoutes";
	const char *line = strstr(text, key);
	uint64_t n = 0;

	if (line)
		parse_u64_prefix(line + strlen(key) + strspn(line + strlen(key), " \t"), &n);
	return n;
}

static int read_counters(int fd, char *buf)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, COUNTERS_SIZE - 1, 0);

	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	return 0;
}

int network_unroutable(const struct network *n, uint64_t *ret)
{
	char text[COUNTERS_SIZE];
	uint64_t sum = 0;
	int r = read_counters(n->snmp, text);

	if (r == 0)
		r = network_parse_snmp(text, "Ip:", "OutNoRoutes", &sum);
	if (r < 0)
		return r;
	if (read_counters(n->snmp6, text) == 0)
		sum += parse_snmp6(text);
	*ret = sum;
	return 0;
}

void network_close(struct network *n)
{
	close_fd(&n->snmp);
	close_fd(&n->snmp6);
	*n = NETWORK_NULL;
}
