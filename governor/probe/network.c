/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may leave a guest through sockets that it may make. An aim is ADDRESS/PORT,... */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define ADDRESSES_MAX 64
#define LARGE	      5000 /* bytes: more than one packet */

/* ---- addresses ---- */

struct address {
	struct sockaddr_storage sa;
	socklen_t len;
	const char *text;
};

static bool parse_address(char *word, struct address *ret)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_DGRAM },
			*found;
	char *port = strrchr(word, '/');

	if (!port)
		return false;
	*port++ = '\0';
	if (getaddrinfo(word, port, &hints, &found) != 0)
		return false;
	memcpy(&ret->sa, found->ai_addr, found->ai_addrlen);
	ret->len = found->ai_addrlen;
	ret->text = word;
	freeaddrinfo(found);
	return true;
}

/* Those of @aim that make sense here: an interface may be missing in a guest's network. */
static size_t parse_addresses(char *aim, struct address ret[ADDRESSES_MAX], struct seen *s)
{
	size_t n = 0;

	for (char *word; n < ADDRESSES_MAX && (word = next_word(&aim));) {
		errno = EADDRNOTAVAIL;
		if (parse_address(word, &ret[n]))
			n++;
		else
			seen_attempt(s, word, -1);
	}
	return n;
}

/* ---- TCP ---- */

enum way { WAY_CONNECT, WAY_FASTOPEN, WAY_CLOSE };

/* -1 with errno when it failed at once. */
static int begin(const struct address *a, enum way way)
{
	const struct sockaddr *sa = (const struct sockaddr *)&a->sa;
	int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	long r;

	if (fd < 0)
		return -1;
	if (way == WAY_CONNECT)
		r = connect(fd, sa, a->len);
	else
		r = sendto(fd, PROBE_TOKEN, strlen(PROBE_TOKEN), MSG_FASTOPEN, sa, a->len);
	if (r >= 0 || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

static void finish(const struct pollfd *p, const char *text, struct seen *s)
{
	socklen_t size = sizeof(errno);

	if (!p->revents) {
		seen_nothing(s, text);
		return;
	}
	errno = 0;
	getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &errno, &size);
	if (seen_attempt(s, text, errno ? -1 : 0))
		send(p->fd, PROBE_TOKEN, strlen(PROBE_TOKEN), MSG_NOSIGNAL);
}

/* Until all are ready, or the time is up. */
static void wait_for_all(struct pollfd *p, size_t n)
{
	for (int left = PROBE_WAIT_MS; left > 0; left -= 50) {
		size_t ready = 0;

		poll(p, n, 50);
		for (size_t i = 0; i < n; i++)
			ready += p[i].fd < 0 || p[i].revents;
		if (ready == n)
			return;
	}
}

static void try_tcp(const struct probe *p, char *aim, struct seen *s)
{
	struct address addresses[ADDRESSES_MAX];
	struct pollfd polled[ADDRESSES_MAX];
	size_t n = parse_addresses(aim, addresses, s);
	enum way way = (enum way)p->arg[0];

	for (size_t i = 0; i < n; i++) {
		polled[i] = (struct pollfd){ .fd = begin(&addresses[i], way), .events = POLLOUT };
		if (polled[i].fd < 0)
			seen_attempt(s, addresses[i].text, -1);
	}
	if (way == WAY_CLOSE) {
		for (size_t i = 0; i < n; i++)
			if (polled[i].fd >= 0 && close(polled[i].fd) == 0)
				seen_nothing(s, addresses[i].text);
		return;
	}
	wait_for_all(polled, n);
	for (size_t i = 0; i < n; i++)
		if (polled[i].fd >= 0)
			finish(&polled[i], addresses[i].text, s);
}

/* Listens at port @aim as long as the program lives. */
static void try_listen(const struct probe *p, char *aim, struct seen *s)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(aim)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	(void)p;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!seen_attempt(s, aim, bind(fd, (struct sockaddr *)&sin, sizeof(sin))))
		return;
	if (listen(fd, 8) < 0)
		seen_set(s, strerrorname_np(errno), "listen");
	else
		seen_hold(s);
}

static void try_ulp(const struct probe *p, char *aim, struct seen *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)p;
	for (char *word; (word = next_word(&aim));)
		seen_attempt(s, word,
			     setsockopt(fd, IPPROTO_TCP, TCP_ULP, word, (socklen_t)strlen(word)));
}

/* ---- UDP ---- */

static long send_datagram(const struct address *a, const void *data, size_t size)
{
	int fd = socket(a->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	int saved;
	long r;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	r = sendto(fd, data, size, 0, (const struct sockaddr *)&a->sa, a->len);
	saved = errno;
	close(fd);
	errno = saved;
	return r;
}

static void try_udp(const struct probe *p, char *aim, struct seen *s)
{
	struct address addresses[ADDRESSES_MAX];
	char data[LARGE] = PROBE_TOKEN;
	size_t n = parse_addresses(aim, addresses, s);

	for (size_t i = 0; i < n; i++)
		seen_attempt(s, addresses[i].text,
			     send_datagram(&addresses[i], data, (size_t)p->arg[0]));
}

/* ---- groups: joining one makes the kernel itself tell the network ---- */

static void try_join4(const struct probe *p, char *aim, struct seen *s)
{
	struct in_addr group = { htonl(0xef4d0101) }; /* 239.77.1.1 */
	struct ip_mreqn plain = { .imr_multiaddr = group };
	struct ip_mreq_source source = { .imr_multiaddr = group,
					 .imr_sourceaddr.s_addr = htonl(1) };
	struct group_req any = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)p;
	(void)aim;
	*(struct sockaddr_in *)&any.gr_group =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = group };
	seen_attempt(s, "IP_ADD_MEMBERSHIP",
		     setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &plain, sizeof(plain)));
	seen_attempt(s, "IP_ADD_SOURCE_MEMBERSHIP",
		     setsockopt(fd, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &source, sizeof(source)));
	seen_attempt(s, "MCAST_JOIN_GROUP",
		     setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &any, sizeof(any)));
}

static void try_join6(const struct probe *p, char *aim, struct seen *s)
{
	struct in6_addr group = { .s6_addr = { 0xff, 0x05, [14] = 0x4c, 0x45 } };
	struct ipv6_mreq plain = { .ipv6mr_multiaddr = group };
	struct group_req any = { 0 };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)p;
	(void)aim;
	if (fd < 0) { /* a kernel without IPv6 */
		seen_attempt(s, "socket", -1);
		return;
	}
	*(struct sockaddr_in6 *)&any.gr_group =
		(struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = group };
	seen_attempt(s, "IPV6_JOIN_GROUP",
		     setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &plain, sizeof(plain)));
	seen_attempt(s, "MCAST_JOIN_GROUP",
		     setsockopt(fd, IPPROTO_IPV6, MCAST_JOIN_GROUP, &any, sizeof(any)));
	seen_attempt(s, "IPV6_JOIN_ANYCAST",
		     setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_ANYCAST, &plain, sizeof(plain)));
}

/* ---- names ---- */

/* A question for the address of verify.invalid, which nobody may know (RFC 6761). */
static const unsigned char question[] = { 0x68, 0x67, 1,   0,	0,   1,	  0,   0,   0, 0,   0,
					  0,	6,    'v', 'e', 'r', 'i', 'f', 'y', 7, 'i', 'n',
					  'v',	'a',  'l', 'i', 'd', 0,	  0,   1,   0, 1 };

static void ask(const struct address *a, struct seen *s)
{
	struct pollfd p = { .fd = socket(a->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0),
			    .events = POLLIN };
	char answer[512];

	if (p.fd < 0 || connect(p.fd, (const struct sockaddr *)&a->sa, a->len) < 0 ||
	    send(p.fd, question, sizeof(question), 0) < 0)
		seen_attempt(s, a->text, -1);
	else if (poll(&p, 1, PROBE_WAIT_MS) <= 0)
		seen_nothing(s, a->text);
	else
		seen_attempt(s, a->text, recv(p.fd, answer, sizeof(answer), 0));
	if (p.fd >= 0)
		close(p.fd);
}

static void try_dns(const struct probe *p, char *aim, struct seen *s)
{
	struct address addresses[ADDRESSES_MAX];
	size_t n = parse_addresses(aim, addresses, s);

	(void)p;
	for (size_t i = 0; i < n; i++)
		ask(&addresses[i], s);
}

/* By all that nsswitch.conf(5) names. */
static void try_resolver(const struct probe *p, char *aim, struct seen *s)
{
	struct addrinfo *found;
	int r = getaddrinfo(aim, NULL, NULL, &found);

	(void)p;
	if (r == 0)
		seen_set(s, "done", "an address");
	else if (r == EAI_SYSTEM)
		seen_attempt(s, "getaddrinfo", -1);
	else
		seen_set(s, r == EAI_AGAIN || r == EAI_FAIL ? "nothing" : "answer", "%s",
			 gai_strerror(r));
}

const struct probe network_probes[] = {
	{ "network.tcp", try_tcp, { WAY_CONNECT }, NULL, false },
	{ "network.tcp-mapped", try_tcp, { WAY_CONNECT }, NULL, false },
	{ "network.tcp-fastopen", try_tcp, { WAY_FASTOPEN }, NULL, false },
	{ "network.tcp-close", try_tcp, { WAY_CLOSE }, NULL, false },
	{ "network.tcp-link-local", try_tcp, { WAY_CONNECT }, NULL, false },
	{ "network.tcp-listen", try_listen, { 0 }, "0", false },
	{ "network.tcp-ulp", try_ulp, { 0 }, "tls,smc,espintcp,mptcp", false },
	{ "network.udp", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.udp-mapped", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.udp-fragments", try_udp, { LARGE }, NULL, false },
	{ "network.udp-link-local", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.udp-multicast", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.udp-broadcast", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.target-tcp", try_tcp, { WAY_CONNECT }, NULL, false },
	{ "network.target-udp", try_udp, { sizeof(PROBE_TOKEN) - 1 }, NULL, false },
	{ "network.join4", try_join4, { 0 }, NULL, false },
	{ "network.join6", try_join6, { 0 }, NULL, false },
	{ "names.dns", try_dns, { 0 }, "127.0.0.53/53", false },
	{ "names.resolver", try_resolver, { 0 }, "verify.invalid", false },
	{ 0 },
};
