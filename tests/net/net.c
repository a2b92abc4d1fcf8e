/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define COMMAND_MAX 1024

int net_skip(const char *why)
{
	bool must = getenv("HARPE_TESTS_MUST_RUN") != NULL;

	fprintf(stderr, "%s: %s\n", must ? "FAILED" : "SKIPPED", why);
	return must ? 1 : NET_SKIPPED;
}

int net_possible(void)
{
	if (geteuid() != 0)
		return net_skip("not root");
	if (unshare(CLONE_NEWNET) < 0)
		return net_skip("no network namespace can be made");
	if (nft(NULL, 0, "list tables >/dev/null") != 0)
		return net_skip("nft does not work here");
	return 0;
}

int net_fresh(void **state)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	_cleanup_close_ int fd = -1;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return ioctl(fd, SIOCSIFFLAGS, &ifr);
}

int nft(char *out, size_t size, const char *args, ...)
{
	char command[COMMAND_MAX], rest[256];
	va_list ap;
	size_t n;
	FILE *f;
	int used = snprintf(command, sizeof(command), "nft "), status;

	va_start(ap, args);
	used += vsnprintf(command + used, sizeof(command) - (size_t)used, args, ap);
	va_end(ap);
	snprintf(command + used, sizeof(command) - (size_t)used, " 2>&1");
	f = popen(command, "re");
	assert_non_null(f);
	if (out) {
		n = fread(out, 1, size - 1, f);
		out[n] = '\0';
	}
	while (fread(rest, 1, sizeof(rest), f) > 0)
		;
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int nft_input(const char *text)
{
	FILE *f = popen("nft -f -", "we");
	int status;

	assert_non_null(f);
	fputs(text, f);
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void assert_ok(int r, const struct error *e)
{
	if (r < 0)
		fail_msg("%s (%d)", e->text, r);
	assert_int_equal(r, 0);
}

struct firewall *load_new(const struct firewall_policy *policy, bool owned)
{
	struct firewall *fw = NULL;
	struct error e = ERROR_NULL;

	assert_ok(firewall_open(&fw, &e), &e);
	assert_ok(firewall_load(fw, policy, owned, &e), &e);
	return fw;
}

int udp_receiver(uint16_t *ret_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*ret_port = ntohs(addr.sin_port);
	return fd;
}

unsigned int udp_send(int sock, uint16_t port, unsigned int n)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	unsigned int refused = 0;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (n-- > 0)
		if (sendto(sock, "x", 1, 0, (struct sockaddr *)&addr, sizeof(addr)) < 0 &&
		    errno == EPERM)
			refused++;
	return refused;
}

unsigned int udp_received(int receiver)
{
	unsigned int n = 0;
	char c;

	while (recv(receiver, &c, 1, MSG_DONTWAIT) == 1)
		n++;
	return n;
}

unsigned int in_child(unsigned int (*f)(void *data), void *data)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit((int)f(data));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (unsigned int)WEXITSTATUS(status);
}

uint64_t drops(struct firewall *fw, uint32_t uid)
{
	struct error e = ERROR_NULL;
	uint64_t n = 12345;

	assert_ok(firewall_uid_drops(fw, uid, &n, &e), &e);
	return n;
}

uint64_t strays(struct firewall *fw, uint64_t id)
{
	struct error e = ERROR_NULL;
	uint64_t n = 12345;

	assert_ok(firewall_stray_drops(fw, id, &n, &e), &e);
	return n;
}
