/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/text_value.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/netfilter.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/text.h"
#include "nft/build.h"

#define QUOTED_MAX 512

/* ---- names ---- */

static const struct name {
	uint32_t number;
	const char *name;
} type_names[] = {
	{ VALUE_NFPROTO, "nf_proto" },	{ NFT_TYPE_IP4, "ipv4_addr" },
	{ NFT_TYPE_IP6, "ipv6_addr" },	{ 9, "ether_addr" },
	{ 10, "ether_type" },		{ NFT_TYPE_PROTOCOL, "inet_proto" },
	{ NFT_TYPE_PORT, "inet_service" }, { 14, "icmp_type" },
	{ VALUE_MARK, "mark" },		{ VALUE_IFINDEX, "iface_index" },
	{ NFT_TYPE_UID, "uid" },	{ 25, "gid" },
	{ VALUE_CT_STATE, "ct_state" }, { 29, "icmpv6_type" },
	{ VALUE_IFNAME, "ifname" },	{ NFT_TYPE_CGROUPSV2, "cgroupsv2" },
}, protocol_names[] = {
	{ IPPROTO_ICMP, "icmp" },   { IPPROTO_TCP, "tcp" },	  { IPPROTO_UDP, "udp" },
	{ IPPROTO_DCCP, "dccp" },   { IPPROTO_ESP, "esp" },	  { IPPROTO_AH, "ah" },
	{ IPPROTO_ICMPV6, "icmpv6" }, { IPPROTO_SCTP, "sctp" }, { IPPROTO_UDPLITE, "udplite" },
}, nfproto_names[] = {
	{ NFPROTO_IPV4, "ipv4" },
	{ NFPROTO_IPV6, "ipv6" },
};

static const char *find_name(const struct name *names, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

#define FIND_NAME(names, number) find_name((names), ARRAY_SIZE(names), (number))

const char *value_type_name(uint32_t type)
{
	return FIND_NAME(type_names, type);
}

const char *value_protocol(uint8_t protocol)
{
	return FIND_NAME(protocol_names, protocol);
}

void print_type(FILE *f, uint32_t type)
{
	unsigned int shift = 0;

	while (type >> shift >> VALUE_TYPE_BITS && shift < 32 - VALUE_TYPE_BITS)
		shift += VALUE_TYPE_BITS;
	for (;; shift -= VALUE_TYPE_BITS) {
		uint32_t part = type >> shift & VALUE_TYPE_MASK;
		const char *name = value_type_name(part);

		if (name)
			fputs(name, f);
		else
			fprintf(f, "type_%" PRIu32, part);
		if (shift == 0)
			return;
		fputs(" . ", f);
	}
}

void print_quoted(FILE *f, const char *text)
{
	char shown[QUOTED_MAX];

	text_escape_ascii(text, shown, sizeof(shown));
	fputc('"', f);
	for (const char *p = shown; *p; p++)
		fputc(*p == '"' ? '\'' : *p, f);
	fputc('"', f);
}

void print_name(FILE *f, const char *name)
{
	size_t len = strlen(name);

	if (len > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./\\") == len)
		fputs(name, f);
	else
		print_quoted(f, name);
}

/* ---- values ---- */

static void print_bytes(FILE *f, struct nest value)
{
	fputs("0x", f);
	for (size_t i = 0; i < value.len; i++)
		fprintf(f, "%02x", ((const uint8_t *)value.data)[i]);
}

static uint64_t number(struct nest value, bool host)
{
	const uint8_t *bytes = value.data;
	bool little = host && htons(1) != 1;
	uint64_t n = 0;

	for (size_t i = 0; i < value.len; i++)
		n = n << 8 | bytes[little ? value.len - 1 - i : i];
	return n;
}

static void print_cgroup(FILE *f, const struct text_names *names, uint64_t id)
{
	for (size_t i = 0; i < names->n_cgroups; i++)
		if (names->cgroups[i].id == id) {
			print_quoted(f, names->cgroups[i].path);
			return;
		}
	fprintf(f, "%" PRIu64, id);
}

static void print_ifindex(FILE *f, uint32_t index)
{
	char name[IFNAMSIZ];

	if (if_indextoname(index, name))
		print_quoted(f, name);
	else
		fprintf(f, "%" PRIu32, index);
}

static void print_ifname(FILE *f, struct nest value)
{
	char name[IFNAMSIZ + 1] = "";
	size_t len = value.len < IFNAMSIZ ? value.len : IFNAMSIZ;

	memcpy(name, value.data, len);
	if (len < IFNAMSIZ && len > 0 && name[len - 1] != '\0')
		name[len] = '*'; /* compared so far only */
	print_quoted(f, name);
}

static void print_ct_state(FILE *f, uint64_t bits)
{
	static const struct name states[] = {
		{ 1, "invalid" }, { 2, "established" }, { 4, "related" },
		{ 8, "new" },	  { 64, "untracked" },
	};
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (bits & states[i].number) {
			fprintf(f, "%s%s", separator, states[i].name);
			bits &= ~(uint64_t)states[i].number;
			separator = ",";
		}
	if (bits || !*separator)
		fprintf(f, "%s%#" PRIx64, separator, bits);
}

static void print_address(FILE *f, int family, struct nest value)
{
	char text[INET6_ADDRSTRLEN];

	fputs(inet_ntop(family, value.data, text, sizeof(text)) ?: "?", f);
}

static void print_named(FILE *f, const char *name, uint64_t n)
{
	if (name)
		fputs(name, f);
	else
		fprintf(f, "%" PRIu64, n);
}

void print_value(FILE *f, const struct text_names *names, uint32_t type, struct nest v)
{
	static const struct {
		uint32_t type;
		size_t len;
	} lengths[] = {
		{ VALUE_NFPROTO, 1 },	  { NFT_TYPE_IP4, 4 },	{ NFT_TYPE_IP6, 16 },
		{ NFT_TYPE_PROTOCOL, 1 }, { NFT_TYPE_PORT, 2 }, { NFT_TYPE_CGROUPSV2, 8 },
	};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		if (lengths[i].type == type)
			len = lengths[i].len;
	if (v.len == 0 || (len && v.len != len) || (v.len > 8 && !len && type != VALUE_IFNAME))
		type = VALUE_BYTES;
	switch (type) {
	case NFT_TYPE_IP4:
		print_address(f, AF_INET, v);
		break;
	case NFT_TYPE_IP6:
		print_address(f, AF_INET6, v);
		break;
	case VALUE_NFPROTO:
		print_named(f, FIND_NAME(nfproto_names, (uint32_t)number(v, false)),
			    number(v, false));
		break;
	case NFT_TYPE_PROTOCOL:
		print_named(f, value_protocol((uint8_t)number(v, false)), number(v, false));
		break;
	case NFT_TYPE_PORT:
	case VALUE_INTEGER:
		fprintf(f, "%" PRIu64, number(v, false));
		break;
	case NFT_TYPE_UID:
	case NFT_TYPE_UID + 1: /* gid */
		fprintf(f, "%" PRIu64, number(v, true));
		break;
	case VALUE_MARK:
		fprintf(f, "0x%08" PRIx64, number(v, true));
		break;
	case VALUE_CT_STATE:
		print_ct_state(f, number(v, true));
		break;
	case VALUE_IFINDEX:
		print_ifindex(f, (uint32_t)number(v, true));
		break;
	case VALUE_IFNAME:
		print_ifname(f, v);
		break;
	case NFT_TYPE_CGROUPSV2:
		print_cgroup(f, names, number(v, true));
		break;
	default:
		print_bytes(f, v);
		break;
	}
}

/* ---- ranges ---- */

int value_prefix(struct nest mask)
{
	const uint8_t *bytes = mask.data;
	size_t n = 0;

	while (n < 8 * mask.len && bytes[n / 8] & 0x80 >> n % 8)
		n++;
	for (size_t i = n; i < 8 * mask.len; i++)
		if (bytes[i / 8] & 0x80 >> i % 8)
			return -1;
	return (int)n;
}

/* Bits that first and last have in common, if they are all zeros and all ones behind them. */
static int common_prefix(struct nest first, struct nest last)
{
	uint8_t mask[16];

	if (first.len > sizeof(mask))
		return -1;
	for (size_t i = 0; i < first.len; i++) {
		uint8_t a = ((const uint8_t *)first.data)[i], b = ((const uint8_t *)last.data)[i];

		if (a & (a ^ b))
			return -1;
		mask[i] = (uint8_t) ~(a ^ b);
	}
	return value_prefix((struct nest){ mask, first.len });
}

void print_range(FILE *f, const struct text_names *names, uint32_t type, struct nest first,
		 struct nest last)
{
	bool address = type == NFT_TYPE_IP4 || type == NFT_TYPE_IP6;
	int prefix;

	print_value(f, names, type, first);
	if (last.len != first.len || first.len == 0 ||
	    memcmp(first.data, last.data, first.len) == 0)
		return;
	prefix = address ? common_prefix(first, last) : -1;
	if (prefix >= 0) {
		fprintf(f, "/%d", prefix);
		return;
	}
	fputc('-', f);
	print_value(f, names, type, last);
}
