/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listeners on every address of the host, one for each probe of the network, and the addresses that
 * those are aimed at. A listener counts only when it has heard this program itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "governor/verify/verify.h"

#define ADDRESSES_MAX 12 /* of the host's own */
#define HEAR_MS	      300
#define GROUP4	      "239.77.1.2"
#define GROUP6	      "ff02::4c45"

enum kind { KIND_ALL, KIND_MAPPED, KIND_LINK_LOCAL, KIND_MULTICAST, KIND_BROADCAST };

/* In the order of the rows of the network: AIM_NET + i. */
static const struct {
	int type;
	enum kind kind;
} wanted[] = {
	{ SOCK_STREAM, KIND_ALL },	  { SOCK_STREAM, KIND_MAPPED },
	{ SOCK_STREAM, KIND_ALL },	  { SOCK_STREAM, KIND_ALL },
	{ SOCK_STREAM, KIND_LINK_LOCAL }, { SOCK_DGRAM, KIND_ALL },
	{ SOCK_DGRAM, KIND_MAPPED },	  { SOCK_DGRAM, KIND_ALL },
	{ SOCK_DGRAM, KIND_LINK_LOCAL },  { SOCK_DGRAM, KIND_MULTICAST },
	{ SOCK_DGRAM, KIND_BROADCAST },
};

/* ---- addresses ---- */

struct addresses {
	char text[ADDRESSES_MAX][VERIFY_ADDRESS_MAX];
	enum kind kind[ADDRESSES_MAX];
	bool v6[ADDRESSES_MAX];
	size_t n;
};

static void add(struct addresses *a, bool v6, enum kind kind, const char *text)
{
	if (a->n == ADDRESSES_MAX)
		return;
	a->v6[a->n] = v6;
	a->kind[a->n] = kind;
	snprintf(a->text[a->n++], VERIFY_ADDRESS_MAX, "%s", text);
}

static void add_v4(struct addresses *a, const struct ifaddrs *i)
{
	struct sockaddr_in own, all = { 0 };
	char text[INET_ADDRSTRLEN];

	memcpy(&own, i->ifa_addr, sizeof(own));
	add(a, false, KIND_ALL, inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text)));
	if (i->ifa_flags & IFF_BROADCAST && i->ifa_broadaddr)
		memcpy(&all, i->ifa_broadaddr, sizeof(all));
	if (all.sin_addr.s_addr && all.sin_addr.s_addr != own.sin_addr.s_addr)
		add(a, false, KIND_BROADCAST,
		    inet_ntop(AF_INET, &all.sin_addr, text, sizeof(text)));
}

/* The interface by its number, which needs no look-up in another network. */
static void add_v6(struct addresses *a, const struct ifaddrs *i)
{
	char text[INET6_ADDRSTRLEN], full[VERIFY_ADDRESS_MAX];
	struct sockaddr_in6 own;

	memcpy(&own, i->ifa_addr, sizeof(own));
	inet_ntop(AF_INET6, &own.sin6_addr, text, sizeof(text));
	if (!IN6_IS_ADDR_LINKLOCAL(&own.sin6_addr)) {
		add(a, true, KIND_ALL, text);
		return;
	}
	snprintf(full, sizeof(full), "%s%%%u", text, own.sin6_scope_id);
	add(a, true, KIND_LINK_LOCAL, full);
	snprintf(full, sizeof(full), GROUP6 "%%%u", own.sin6_scope_id);
	add(a, true, KIND_MULTICAST, full);
}

static void find_addresses(struct addresses *a)
{
	struct ifaddrs *all = NULL;

	add(a, false, KIND_MULTICAST, GROUP4);
	add(a, false, KIND_BROADCAST, "255.255.255.255");
	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			add_v4(a, i);
		else if (i->ifa_addr->sa_family == AF_INET6)
			add_v6(a, i);
	}
	freeifaddrs(all);
}

/* ---- listeners ---- */

static int bind_to_all(int type, uint16_t port)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

	if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
	    bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)) == 0)
		return fd;
	close_fd(&fd);
	fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* no IPv6 here */
	if (fd >= 0 && bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0)
		return fd;
	close_fd(&fd);
	return -1;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 any = { 0 }; /* the port lies where that of IPv4 does */
	socklen_t size = sizeof(any);

	return getsockname(fd, (struct sockaddr *)&any, &size) < 0 ? 0 : ntohs(any.sin6_port);
}

static void listen_to(struct listener *l, int type)
{
	l->type = type;
	l->fd = bind_to_all(type, 0);
	if (l->fd >= 0 && type == SOCK_STREAM && listen(l->fd, 32) < 0) {
		close_fd(&l->fd);
		l->fd = -1;
	}
	if (l->fd >= 0)
		l->port = port_of(l->fd);
}

/* Where a group's packets arrive that are for nobody else. */
static void join_groups(const struct listener *l, const struct addresses *a)
{
	struct ip_mreqn group = { 0 };

	inet_pton(AF_INET, GROUP4, &group.imr_multiaddr);
	setsockopt(l->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group));
	for (size_t i = 0; i < a->n; i++) {
		struct ipv6_mreq group6 = { 0 };
		const char *scope = strchr(a->text[i], '%');

		if (a->kind[i] != KIND_MULTICAST || !scope)
			continue;
		inet_pton(AF_INET6, GROUP6, &group6.ipv6mr_multiaddr);
		group6.ipv6mr_interface = (unsigned int)strtoul(scope + 1, NULL, 10);
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group6, sizeof(group6));
	}
}

/* Is it an address of this host? Nobody may take another. Strangers who knock at a port are none of
 * the guest's. */
static bool is_ours(struct sockaddr_storage *from, socklen_t size)
{
	_cleanup_close_ int fd = socket(from->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	((struct sockaddr_in6 *)from)->sin6_port = 0; /* it lies where that of IPv4 does */
	return fd < 0 || bind(fd, (struct sockaddr *)from, size) == 0;
}

/* How many came from here; all are taken. */
static unsigned int take(const struct listener *l)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	unsigned int n = 0;
	char data[64];
	int fd;

	if (l->type == SOCK_DGRAM) {
		while (recvfrom(l->fd, data, sizeof(data), 0, (struct sockaddr *)&from, &size) >=
		       0) {
			n += is_ours(&from, size);
			size = sizeof(from);
		}
		return n;
	}
	while ((fd = accept4(l->fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC)) >= 0) {
		n += is_ours(&from, size);
		close(fd);
		size = sizeof(from);
	}
	return n;
}

/* By loopback, which is there on every host. */
static void prove(struct listener *l)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(l->port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_close_ int fd = socket(AF_INET, l->type | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	if (l->fd < 0 || fd < 0 || connect(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    send(fd, "c", 1, MSG_NOSIGNAL) < 0)
		return;
	poll(&p, 1, HEAR_MS);
	l->able = take(l) > 0;
}

/* ---- all ---- */

static bool suits(const struct addresses *a, size_t i, enum kind kind)
{
	return kind == KIND_MAPPED ? a->kind[i] == KIND_ALL && !a->v6[i] : a->kind[i] == kind;
}

static void append(char *aim, const char *before, const char *address, uint16_t port)
{
	size_t used = strlen(aim);

	snprintf(aim + used, VERIFY_AIM_MAX - used, "%s%s%s/%u", used ? "," : "", before, address,
		 port);
}

static void aim_at(struct prepared *p, size_t number, const struct addresses *a)
{
	const struct listener *l = &p->listener[number];
	enum kind kind = wanted[number].kind;
	char *aim = p->aim[AIM_NET + number];
	bool v6 = strchr(p->target, ':') != NULL;

	for (size_t i = 0; i < a->n; i++)
		if (suits(a, i, kind))
			append(aim, kind == KIND_MAPPED ? "::ffff:" : "", a->text[i], l->port);
	if (p->target[0] && (kind == KIND_ALL || (kind == KIND_MAPPED && !v6)))
		append(aim, kind == KIND_MAPPED ? "::ffff:" : "", p->target, l->port);
}

/* A port at which nobody listens now. */
static void find_port(struct prepared *p)
{
	_cleanup_close_ int fd = bind_to_all(SOCK_STREAM, 0);

	if (fd < 0)
		snprintf(p->why_not[AIM_LISTEN], VERIFY_REASON_MAX, "no free port");
	else
		snprintf(p->aim[AIM_LISTEN], VERIFY_AIM_MAX, "%u", port_of(fd));
}

void prepare_network(struct prepared *p)
{
	struct addresses a = { .n = 0 };

	find_addresses(&a);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		listen_to(&p->listener[i], wanted[i].type);
		if (wanted[i].kind == KIND_MULTICAST)
			join_groups(&p->listener[i], &a);
		prove(&p->listener[i]);
		aim_at(p, i, &a);
	}
	find_port(p);
	if (p->target[0])
		append(p->aim[AIM_TARGET], "", p->target, p->listener[0].port);
}

static unsigned int take_unix(int listener)
{
	unsigned int n = 0;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		n++;
	}
	return n;
}

void prepared_hear(struct prepared *p)
{
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		p->listener[i].heard += take(&p->listener[i]);
	for (size_t i = 0; i < ARRAY_SIZE(p->unix_fd); i++)
		p->unix_heard[i] += take_unix(p->unix_fd[i]);
}
