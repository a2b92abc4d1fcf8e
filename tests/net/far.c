/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/net/far.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 50

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static int this_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void enter(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

static void connect_ends(const struct far *f)
{
	run("ip link add near type veth peer name far netns /proc/%d/fd/%d", getpid(), f->ns);
	run("echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range");
	run("ip link set near up && ip addr add 203.0.113.2/24 dev near && "
	    "ip addr add 2001:db8:ffff::2/64 dev near nodad");
	enter(f->ns);
	run("ip link set lo up && ip link set far up && ip addr add 203.0.113.1/24 dev far && "
	    "ip addr add 2001:db8:ffff::1/64 dev far nodad && "
	    "ip route add local 192.0.2.0/24 dev lo && "
	    "ip route add local 198.51.100.0/24 dev lo && "
	    "ip -6 route add local 2001:db8::/48 dev lo");
	enter(f->near_ns);
	run("ip route add 192.0.2.0/24 via 203.0.113.1 && "
	    "ip route add 198.51.100.0/24 via 203.0.113.1 && "
	    "ip -6 route add 2001:db8::/48 via 2001:db8:ffff::1");
}

/* Neighbours get to know each other before anything is dropped. */
static void greet(const struct far *f)
{
	static const struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_port = 0x0900,
		.sin6_addr = { { { 0x20, 1, 0xd, 0xb8, [15] = 1 } } },
	};
	_cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct seen seen;

	for (int i = 0; i < 100; i++) {
		sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
		if (far_seen(f, &seen))
			break;
	}
	far_forget(f);
}

int far_setup(void **state)
{
	struct far *f = malloc(sizeof(*f));

	assert_non_null(f);
	net_fresh(state);
	f->near_ns = this_namespace();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	f->ns = this_namespace();
	f->sniffer = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	assert_true(f->sniffer >= 0);
	enter(f->near_ns);
	connect_ends(f);
	greet(f);
	*state = f;
	return 0;
}

int far_teardown(void **state)
{
	struct far *f = *state;

	close(f->near_ns);
	close(f->ns);
	close(f->sniffer);
	free(f);
	return 0;
}

int far_socket(const struct far *f, int domain, int type)
{
	int fd;

	enter(f->ns);
	fd = socket(domain, type | SOCK_CLOEXEC, 0);
	enter(f->near_ns);
	assert_true(fd >= 0);
	return fd;
}

static bool read_ip4(const uint8_t *packet, size_t len, struct seen *ret)
{
	const struct iphdr *ip = (const void *)packet;
	size_t header = len >= sizeof(*ip) ? ip->ihl * 4u : len;

	if (len < header + 4)
		return false;
	ret->protocol = ip->protocol;
	ret->port = (uint16_t)(packet[header + 2] << 8 | packet[header + 3]);
	inet_ntop(AF_INET, &ip->daddr, ret->to, sizeof(ret->to));
	return ip->protocol != IPPROTO_IGMP;
}

static bool read_ip6(const uint8_t *packet, size_t len, struct seen *ret)
{
	const struct ip6_hdr *ip = (const void *)packet;
	const struct icmp6_hdr *icmp = (const void *)(packet + sizeof(*ip));

	if (len < sizeof(*ip) + 4)
		return false;
	ret->protocol = ip->ip6_nxt;
	ret->port = (uint16_t)(packet[sizeof(*ip) + 2] << 8 | packet[sizeof(*ip) + 3]);
	inet_ntop(AF_INET6, &ip->ip6_dst, ret->to, sizeof(ret->to));
	if (ip->ip6_nxt == IPPROTO_HOPOPTS && ip->ip6_dst.s6_addr[0] == 0xff) /* MLD */
		return false;
	return ip->ip6_nxt != IPPROTO_ICMPV6 || icmp->icmp6_type < ND_ROUTER_SOLICIT;
}

/* 1: a packet of others, or none of ours; -1: nothing there. */
static int receive(const struct far *f, struct seen *ret)
{
	_Alignas(8) uint8_t packet[2048];
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(f->sniffer, packet, sizeof(packet), 0, (struct sockaddr *)&from, &len);
	bool ours = false;

	if (n < 0)
		return -1;
	if (from.sll_pkttype != PACKET_OUTGOING && from.sll_hatype == ARPHRD_ETHER)
		ours = from.sll_protocol == htons(ETH_P_IP)	? read_ip4(packet, (size_t)n, ret)
		       : from.sll_protocol == htons(ETH_P_IPV6) ? read_ip6(packet, (size_t)n, ret)
								: false;
	return ours ? 0 : 1;
}

bool far_seen(const struct far *f, struct seen *ret)
{
	struct pollfd p = { .fd = f->sniffer, .events = POLLIN };

	for (int r = 1; r != 0;) {
		r = receive(f, ret);
		if (r < 0 && poll(&p, 1, WAIT_MS) <= 0)
			return false;
	}
	return true;
}

void far_forget(const struct far *f)
{
	struct seen seen;

	while (far_seen(f, &seen))
		;
}
