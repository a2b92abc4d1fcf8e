/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets that a guest must not get at all: what they send is not all seen by a packet filter. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "governor/probe/probe.h"

#define AF_RXRPC_NUMBER 33
#define AF_SMC_NUMBER	43
#define IPPROTO_L2TP_	115
#define IPPROTO_SMC_	256
#define IPPROTO_MPTCP_	262
#define FAMILIES	64
#define TYPES		11
#define GARBAGE		(7L << 32) /* in the half of a register that the kernel ignores */

static bool keep(struct seen *s, const char *what, long fd)
{
	bool made = seen_attempt(s, what, fd);

	if (made)
		close((int)fd);
	return made;
}

static void try_socket(const struct probe *p, char *aim, struct seen *s)
{
	(void)aim;
	keep(s, "socket(2)", socket((int)p->arg[0], (int)p->arg[1], (int)p->arg[2]));
}

/* Over IPv4 and IPv6. */
static void try_ip_socket(const struct probe *p, char *aim, struct seen *s)
{
	(void)aim;
	keep(s, "IPv4", socket(AF_INET, (int)p->arg[0], (int)p->arg[1]));
	keep(s, "IPv6", socket(AF_INET6, (int)p->arg[0], (int)p->arg[2]));
}

static void try_garbage(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	keep(s, "family", syscall(SYS_socket, AF_SMC_NUMBER | GARBAGE, (long)SOCK_STREAM, 0L));
	keep(s, "type", syscall(SYS_socket, (long)AF_INET, SOCK_SEQPACKET | GARBAGE, 0L));
	keep(s, "protocol",
	     syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, IPPROTO_MPTCP_ | GARBAGE));
	keep(s, "flags", socket(AF_SMC_NUMBER, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* Every family and type; the detail lists what was made of those that nobody needs. */
static void try_families(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	(void)aim;
	seen_set(s, "EPERM", "%s", "");
	for (int family = 0; family < FAMILIES; family++) {
		bool ordinary = family == AF_UNIX || family == AF_INET || family == AF_INET6;

		for (int type = 1; type < TYPES && !ordinary; type++) {
			char word[16];
			int fd = socket(family, type, 0);

			if (fd < 0)
				continue;
			close(fd);
			snprintf(word, sizeof(word), "%d/%d", family, type);
			strcpy(s->outcome, "done");
			seen_word(s, word);
		}
	}
}

const struct probe socket_probes[] = {
	{ "sockets.udplite",
	  try_ip_socket,
	  { SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE },
	  NULL,
	  false },
	{ "sockets.sctp", try_ip_socket, { SOCK_STREAM, IPPROTO_SCTP, IPPROTO_SCTP }, NULL, false },
	{ "sockets.sctp-packets",
	  try_ip_socket,
	  { SOCK_SEQPACKET, IPPROTO_SCTP, IPPROTO_SCTP },
	  NULL,
	  false },
	{ "sockets.dccp", try_ip_socket, { SOCK_DCCP, IPPROTO_DCCP, IPPROTO_DCCP }, NULL, false },
	{ "sockets.mptcp",
	  try_ip_socket,
	  { SOCK_STREAM, IPPROTO_MPTCP_, IPPROTO_MPTCP_ },
	  NULL,
	  false },
	{ "sockets.l2tp",
	  try_ip_socket,
	  { SOCK_DGRAM, IPPROTO_L2TP_, IPPROTO_L2TP_ },
	  NULL,
	  false },
	{ "sockets.icmp",
	  try_ip_socket,
	  { SOCK_DGRAM, IPPROTO_ICMP, IPPROTO_ICMPV6 },
	  NULL,
	  false },
	{ "sockets.raw", try_ip_socket, { SOCK_RAW, IPPROTO_TCP, IPPROTO_TCP }, NULL, false },
	{ "sockets.smc", try_socket, { AF_SMC_NUMBER, SOCK_STREAM, 0 }, NULL, false },
	{ "sockets.smc-inet",
	  try_ip_socket,
	  { SOCK_STREAM, IPPROTO_SMC_, IPPROTO_SMC_ },
	  NULL,
	  false },
	{ "sockets.rxrpc", try_socket, { AF_RXRPC_NUMBER, SOCK_DGRAM, AF_INET }, NULL, false },
	{ "sockets.packet", try_socket, { AF_PACKET, SOCK_RAW, 0x300 }, NULL, false },
	{ "sockets.vsock", try_socket, { AF_VSOCK, SOCK_STREAM, 0 }, NULL, false },
	{ "sockets.netlink", try_socket, { AF_NETLINK, SOCK_RAW, 0 }, NULL, false },
	{ "sockets.alg", try_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, NULL, false },
	{ "sockets.families", try_families, { 0 }, NULL, false },
	{ "sockets.garbage", try_garbage, { 0 }, NULL, false },
	{ 0 },
};
