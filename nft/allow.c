/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/allow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"

#define PORT_MAX 65535
#define SHOWN	 160 /* of a line, escaped */
#define EXAMPLE	 "tcp 192.0.2.10:443"

/* Where the documentation tells how to allow names. */
#define NAMES_RECIPE "harpe-gov.conf(5), NAMES AND THE PROXY"

static const struct protocol {
	const char *name;
	uint8_t ip4, ip6;
	bool ports;
} protocols[] = {
	{ "tcp", IPPROTO_TCP, IPPROTO_TCP, true },
	{ "udp", IPPROTO_UDP, IPPROTO_UDP, true },
	{ "icmp", IPPROTO_ICMP, IPPROTO_ICMPV6, false },
};

/* A line that is being taken apart. */
struct line {
	char text[ALLOW_TEXT_MAX]; /* its pieces, cut in place */
	const char *whole;	   /* for sentences */
	const struct protocol *protocol;
	char *host, *prefix, *port; /* prefix and port are NULL when they are not there */
	struct allow allow;
	struct error *e;
};

static int refuse(const struct line *l, const char *why, ...) __attribute__((format(printf, 2, 3)));

static int refuse(const struct line *l, const char *why, ...)
{
	char sentence[ERROR_TEXT_MAX], shown[SHOWN];
	va_list args;

	va_start(args, why);
	vsnprintf(sentence, sizeof(sentence), why, args);
	va_end(args);
	return error_set(l->e, -EINVAL, "\"%s\": %s", text_escape(l->whole, shown, sizeof(shown)),
			 sentence);
}

/* @text from its first @stop on: cut off, without @stop. NULL when there is none. */
static char *cut(char *text, char stop)
{
	char *at = strchr(text, stop);

	if (at)
		*at++ = '\0';
	return at;
}

/* Digits without leading zeros, up to @max. */
static int parse_number(const char *text, unsigned int max, unsigned int *ret)
{
	unsigned int n = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		n = n * 10 + (unsigned int)(*text - '0');
		if (n > max)
			return -ERANGE;
	}
	*ret = n;
	return 0;
}

/* Line -> pieces */

static int take_protocol(struct line *l)
{
	size_t len = strcspn(l->text, " ");

	l->host = l->text + len + strspn(l->text + len, " ");
	l->text[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (strcmp(l->text, protocols[i].name) == 0)
			l->protocol = &protocols[i];
	if (!l->protocol)
		return refuse(l,
			      "it has to start with tcp, udp or icmp (for IPv6 as well), as in "
			      "%s",
			      EXAMPLE);
	if (!*l->host)
		return refuse(l, "the address is missing, as in %s", EXAMPLE);
	return 0;
}

static int split_brackets(struct line *l)
{
	char *rest = l->host;
	char *after = cut(rest, ']');

	if (!after)
		return refuse(l, "a ] is missing");
	if (*after == '/')
		return refuse(l, "the prefix goes into the brackets: [%s%s]", rest + 1,
			      strtok(after, ":"));
	if (*after && *after != ':')
		return refuse(l, "behind the ] may only come a : and a port");
	if (!strchr(rest, ':'))
		return refuse(l, "brackets are for IPv6 addresses: write %s without them",
			      rest + 1);
	l->host = rest + 1;
	l->port = *after ? after + 1 : NULL;
	return 0;
}

static int refuse_name(const struct line *l)
{
	return refuse(l, "only addresses can be allowed, for what a name stands for changes: write "
			 "its address, or allow a proxy that knows names (" NAMES_RECIPE ")");
}

/* More than one colon. */
static int split_bare_ip6(struct line *l)
{
	if (strspn(l->host, "0123456789abcdefABCDEF:./%") < strlen(l->host))
		return refuse_name(l);
	if (l->protocol->ports)
		return refuse(l, "an IPv6 address goes into brackets, as in %s [2001:db8::1]:443",
			      l->protocol->name);
	return 0;
}

static int split_port(struct line *l)
{
	const char *colon = strchr(l->host, ':');

	if (strchr(l->host, ' '))
		return refuse(l, "an entry is one protocol, one blank, one destination, as in %s",
			      EXAMPLE);
	if (l->host[0] == '[')
		return split_brackets(l);
	if (colon && strchr(colon + 1, ':'))
		return split_bare_ip6(l);
	l->port = cut(l->host, ':');
	return 0;
}

/* Pieces -> numbers */

static int refuse_host(const struct line *l)
{
	if (!l->host[0])
		return refuse(l, "the address is missing, as in %s", EXAMPLE);
	if (strchr(l->host, ':'))
		return refuse(l, "%s is no IPv6 address", l->host);
	if (strspn(l->host, "0123456789.") == strlen(l->host))
		return refuse(l,
			      "%s is no IPv4 address: that is four numbers from 0 to 255, without "
			      "leading zeros",
			      l->host);
	return refuse_name(l);
}

static int take_address(struct line *l)
{
	struct allow *a = &l->allow;
	char *zone = strchr(l->host, '%');

	if (zone) {
		*zone = '\0';
		return refuse(l,
			      "a zone is no part of what is sent: write %s, which then is allowed "
			      "on every interface",
			      l->host);
	}
	a->family = strchr(l->host, ':') ? AF_INET6 : AF_INET;
	a->protocol = a->family == AF_INET ? l->protocol->ip4 : l->protocol->ip6;
	return inet_pton(a->family, l->host, a->address) == 1 ? 0 : refuse_host(l);
}

static int take_prefix(struct line *l)
{
	unsigned int max = l->allow.family == AF_INET ? 32 : 128, n = max;

	if (l->prefix && parse_number(l->prefix, max, &n) < 0)
		return refuse(l, "the prefix has to be a number from 0 to %u, not \"%s\"", max,
			      l->prefix);
	l->allow.prefix = (uint8_t)n;
	return 0;
}

/* Bits behind the prefix are a mistake in one of both, and who knows which. */
static int check_host_bits(struct line *l)
{
	struct allow network = l->allow;
	char text[ALLOW_FORMAT_MAX];
	bool stray = false;

	for (unsigned int bit = network.prefix; bit < ALLOW_ADDRESS_MAX * 8; bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		stray |= network.address[bit / 8] & mask;
		network.address[bit / 8] &= (uint8_t)~mask;
	}
	if (!stray)
		return 0;
	return refuse(l, "the address has bits behind its prefix: write %s for the network, or %s",
		      allow_format_address(&network, text), l->host);
}

static int check_address(struct line *l)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	static const uint8_t zero[ALLOW_ADDRESS_MAX];
	const struct allow *a = &l->allow;

	if (a->family == AF_INET6 && a->prefix >= 96 &&
	    memcmp(a->address, mapped, sizeof(mapped)) == 0)
		return refuse(l,
			      "what is sent to an IPv4-mapped address is IPv4: write "
			      "%u.%u.%u.%u/%d",
			      a->address[12], a->address[13], a->address[14], a->address[15],
			      a->prefix - 96);
	if (memcmp(a->address, zero, sizeof(zero)) == 0 &&
	    a->prefix == (a->family == AF_INET ? 32 : 128))
		return refuse(l,
			      "%s is no destination: write %s for this host's loopback, or %s/0 "
			      "for every address",
			      l->host, a->family == AF_INET ? "127.0.0.1" : "::1", l->host);
	return 0;
}

static int take_port(struct line *l, const char *text, uint16_t *ret)
{
	unsigned int n;

	if (parse_number(text, PORT_MAX, &n) < 0 || n == 0)
		return refuse(l,
			      "a port is a number from 1 to %d, without leading zeros, not "
			      "\"%s\"",
			      PORT_MAX, text);
	*ret = (uint16_t)n;
	return 0;
}

static int take_ports(struct line *l)
{
	struct allow *a = &l->allow;
	char *last;
	int r;

	a->last_port = PORT_MAX;
	if (!l->protocol->ports)
		return l->port ? refuse(l, "%s has no ports: leave out \":%s\"", l->protocol->name,
					l->port)
			       : 0;
	if (!l->port)
		return refuse(l, "the port is missing: :443, :8000-8100, or :1-65535 for all");
	last = cut(l->port, '-');
	r = take_port(l, l->port, &a->first_port);
	if (r < 0)
		return r;
	r = take_port(l, last ? last : l->port, &a->last_port);
	if (r < 0)
		return r;
	if (a->first_port > a->last_port)
		return refuse(l, "the ports descend: write %u-%u", a->last_port, a->first_port);
	return 0;
}

static int split_prefix(struct line *l)
{
	l->prefix = cut(l->host, '/');
	return 0;
}

static int take_line(struct line *l)
{
	static int (*const steps[])(struct line *) = { take_protocol, split_port,  split_prefix,
						       take_address,  take_prefix, check_host_bits,
						       check_address, take_ports };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](l);
	return r;
}

int allow_parse(const char *text, struct allow *ret, struct error *e)
{
	struct line l = { .whole = text, .e = e };
	int r;

	if (strnlen(text, sizeof(l.text)) == sizeof(l.text))
		return refuse(&l, "no entry is longer than %zu characters", sizeof(l.text) - 1);
	for (size_t i = 0; text[i]; i++)
		l.text[i] = text[i] == '\t' ? ' ' : text[i];
	if (!text_printable(l.text))
		return refuse(&l, "it has bytes that are not printable");
	r = take_line(&l);
	if (r == 0)
		*ret = l.allow;
	return r;
}

const char *allow_protocol_name(uint8_t protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].ip4 == protocol || protocols[i].ip6 == protocol)
			return protocols[i].name;
	return "?";
}

const char *allow_format_address(const struct allow *a, char buf[ALLOW_FORMAT_MAX])
{
	char address[INET6_ADDRSTRLEN];

	inet_ntop(a->family, a->address, address, sizeof(address));
	snprintf(buf, ALLOW_FORMAT_MAX, "%s/%u", address, a->prefix);
	return buf;
}

/* ":443", ":8000-8100" or nothing. */
static void format_ports(const struct allow *a, char *buf, size_t size)
{
	if (a->protocol == IPPROTO_ICMP || a->protocol == IPPROTO_ICMPV6)
		buf[0] = '\0';
	else if (a->first_port == a->last_port)
		snprintf(buf, size, ":%u", a->first_port);
	else
		snprintf(buf, size, ":%u-%u", a->first_port, a->last_port);
}

const char *allow_format(const struct allow *a, char buf[ALLOW_FORMAT_MAX])
{
	const char *brackets = a->family == AF_INET6 ? "[]" : "";
	char address[ALLOW_FORMAT_MAX], ports[16];

	allow_format_address(a, address);
	if (a->prefix == (a->family == AF_INET ? 32 : 128))
		cut(address, '/');
	format_ports(a, ports, sizeof(ports));
	snprintf(buf, ALLOW_FORMAT_MAX, "%s %.1s%.50s%.1s%s", allow_protocol_name(a->protocol),
		 brackets, address, *brackets ? brackets + 1 : "", ports);
	return buf;
}
