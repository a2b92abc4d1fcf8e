/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of an allow-list, and the boxes that they are in the kernel.
 */
#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/text.h"
#include "nft/cover.h"

static struct allow parsed(const char *text)
{
	struct error e = ERROR_NULL;
	struct allow a;

	if (allow_parse(text, &a, &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

static void lines_are_read_and_written(void **state)
{
	static const struct {
		const char *text, *canonical; /* NULL: the same */
	} lines[] = {
		{ "tcp 192.0.2.10:443", NULL },
		{ "udp 198.51.100.0/24:53", NULL },
		{ "tcp [2001:db8::/32]:8000-8100", NULL },
		{ "icmp 192.0.2.1", NULL },
		{ "icmp 192.0.2.0/25", NULL },
		{ "icmp [2001:db8::1]", NULL },
		{ "icmp 2001:db8::1", "icmp [2001:db8::1]" },
		{ "icmp 2001:db8::/32", "icmp [2001:db8::/32]" },
		{ "tcp 0.0.0.0/0:1-65535", NULL },
		{ "tcp [::/0]:443", NULL },
		{ "tcp 127.0.0.1:3128", NULL },
		{ "tcp [::1]:3128", NULL },
		{ "udp \t 192.0.2.1/32:65535", "udp 192.0.2.1:65535" },
		{ "tcp [2001:0DB8:0:0::0001/128]:1", "tcp [2001:db8::1]:1" },
		{ "tcp 192.0.2.1:80-80", "tcp 192.0.2.1:80" },
		{ "tcp 128.0.0.0/1:80", NULL },
		{ "tcp [8000::/1]:80", NULL },
		{ "udp [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65534-65535", NULL },
	};
	char text[ALLOW_FORMAT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct allow a = parsed(lines[i].text), b;

		assert_string_equal(allow_format(&a, text),
				    lines[i].canonical ? lines[i].canonical : lines[i].text);
		b = parsed(text);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void numbers_are_as_documented(void **state)
{
	struct allow a = parsed("tcp [2001:db8::/32]:8000-8100");
	char text[ALLOW_FORMAT_MAX];

	(void)state;
	assert_int_equal(a.family, AF_INET6);
	assert_int_equal(a.protocol, IPPROTO_TCP);
	assert_int_equal(a.prefix, 32);
	assert_int_equal(a.address[0], 0x20);
	assert_int_equal(a.address[3], 0xb8);
	assert_int_equal(a.first_port, 8000);
	assert_int_equal(a.last_port, 8100);
	a = parsed("icmp 192.0.2.1");
	assert_int_equal(a.family, AF_INET);
	assert_int_equal(a.protocol, IPPROTO_ICMP);
	assert_int_equal(a.prefix, 32);
	assert_int_equal(a.address[0], 192);
	assert_int_equal(a.address[4], 0);
	assert_int_equal(a.first_port, 0);
	assert_int_equal(a.last_port, 65535);
	assert_string_equal(allow_format_address(&a, text), "192.0.2.1/32");
	a = parsed("icmp 2001:db8::1");
	assert_int_equal(a.protocol, IPPROTO_ICMPV6);
	assert_string_equal(allow_format_address(&a, text), "2001:db8::1/128");
}

static void other_lines_are_refused(void **state)
{
	static const struct {
		const char *text, *names;
	} lines[] = {
		{ "", "has to start with tcp, udp or icmp" },
		{ "192.0.2.1:80", "has to start with tcp, udp or icmp" },
		{ "TCP 192.0.2.1:80", "has to start with" },
		{ "sctp 192.0.2.1:80", "has to start with" },
		{ "icmpv6 2001:db8::1", "icmp (for IPv6 as well)" },
		{ "tcp", "the address is missing" },
		{ "tcp ", "the address is missing" },
		{ "tcp :80", "the address is missing" },
		{ "tcp /24:80", "the address is missing" },
		{ " tcp 192.0.2.1:80", "has to start with" },
		{ "tcp\n192.0.2.1:80", "not printable" },
		{ "tcp 192.0.2.1:80\r", "not printable" },
		{ "tcp 192.0.2.1:80\xff", "not printable" },
		{ "tcp \xc3\xbc.example:80", "only addresses" },
		{ "tcp 192.0.2.1:80 ", "one protocol, one blank, one destination" },
		{ "tcp 192.0.2.1 :80", "one protocol, one blank" },
		{ "tcp 192.0.2.1", "the port is missing" },
		{ "tcp 192.0.2.1:", "not \"\"" },
		{ "tcp 192.0.2.1:0", "from 1 to 65535, without leading zeros, not \"0\"" },
		{ "tcp 192.0.2.1:0-80", "not \"0\"" },
		{ "tcp 192.0.2.1:080", "not \"080\"" },
		{ "tcp 192.0.2.1:65536", "not \"65536\"" },
		{ "tcp 192.0.2.1:4294967376", "not \"4294967376\"" },
		{ "tcp 192.0.2.1:18446744073709551696", "not \"18446744073709551696\"" },
		{ "tcp 192.0.2.1:-80", "not \"\"" },
		{ "tcp 192.0.2.1:80-", "not \"\"" },
		{ "tcp 192.0.2.1:+80", "not \"+80\"" },
		{ "tcp 192.0.2.1:0x50", "not \"0x50\"" },
		{ "tcp 192.0.2.1:http", "not \"http\"" },
		{ "tcp 192.0.2.1:80,443", "not \"80,443\"" },
		{ "tcp 192.0.2.1:80-90-100", "not \"90-100\"" },
		{ "tcp 192.0.2.1:*", "not \"*\"" },
		{ "tcp 192.0.2.1:8100-8000", "the ports descend: write 8000-8100" },
		{ "icmp 192.0.2.1:8", "icmp has no ports: leave out \":8\"" },
		{ "icmp [2001:db8::1]:8", "icmp has no ports" },
		{ "tcp 192.0.2.010:80", "192.0.2.010 is no IPv4 address" },
		{ "tcp 192.0.2:80", "192.0.2 is no IPv4 address" },
		{ "tcp 192.0.2.256:80", "192.0.2.256 is no IPv4 address" },
		{ "tcp 3221225994:80", "3221225994 is no IPv4 address" },
		{ "tcp 192.0.2.1.:80", "192.0.2.1. is no IPv4 address" },
		{ "tcp 192.0.2.1/33:80", "a number from 0 to 32, not \"33\"" },
		{ "tcp 192.0.2.0/024:80", "not \"024\"" },
		{ "tcp 192.0.2.0/:80", "not \"\"" },
		{ "tcp 192.0.2.0/255.255.255.0:80", "not \"255.255.255.0\"" },
		{ "tcp 192.0.2.0/24/24:80", "not \"24/24\"" },
		{ "tcp [2001:db8::/129]:80", "a number from 0 to 128, not \"129\"" },
		{ "tcp 198.51.100.7/24:80", "bits behind its prefix: write 198.51.100.0/24 for the "
					    "network, or 198.51.100.7" },
		{ "tcp 192.0.2.1/0:80", "write 0.0.0.0/0 for the network" },
		{ "tcp [2001:db8::1/32]:80", "write 2001:db8::/32 for the network" },
		{ "tcp 2001:db8::1:443", "goes into brackets, as in tcp [2001:db8::1]:443" },
		{ "tcp ::1", "goes into brackets" },
		{ "tcp [192.0.2.1]:80", "brackets are for IPv6 addresses: write 192.0.2.1" },
		{ "tcp [2001:db8::1:80", "a ] is missing" },
		{ "tcp [2001:db8::]/32:80", "the prefix goes into the brackets: [2001:db8::/32]" },
		{ "tcp [2001:db8::1]80", "behind the ]" },
		{ "tcp [2001:db8::1]", "the port is missing" },
		{ "tcp [2001:db8:::1]:80", "2001:db8:::1 is no IPv6 address" },
		{ "tcp [2001:db8::1]]:80", "behind the ]" },
		{ "tcp [[::1]]:80", "behind the ]" },
		{ "tcp []:80", "brackets are for IPv6" },
		{ "tcp [fe80::1%eth0]:80", "a zone is no part of what is sent: write fe80::1," },
		{ "tcp [fe80::1%2]:80", "a zone" },
		{ "tcp [::ffff:192.0.2.1]:80", "is IPv4: write 192.0.2.1/32" },
		{ "tcp [::ffff:192.0.2.0/120]:80", "is IPv4: write 192.0.2.0/24" },
		{ "tcp [::ffff:0:0/96]:80", "is IPv4: write 0.0.0.0/0" },
		{ "tcp 0.0.0.0:80", "write 127.0.0.1 for this host's loopback, or 0.0.0.0/0" },
		{ "tcp [::]:80", "write ::1 for this host's loopback, or ::/0" },
		{ "tcp example.org:443", "(harpe-gov.conf(5), NAMES AND THE PROXY)" },
		{ "tcp localhost:443", "what a name stands for changes" },
		{ "tcp *:443", "only addresses" },
		{ "tcp any:443", "only addresses" },
		{ "tcp https://192.0.2.1/:443", "only addresses" },
		{ "tcp 192.0.2.1-192.0.2.9:80", "only addresses" },
		{ "tcp 192.0.2.1:80 192.0.2.2:80", "one protocol, one blank" },
		{ "tcp 192.0.2.1:80 # web", "one protocol, one blank" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct allow a = { .prefix = 77 };
		struct error e = ERROR_NULL;

		assert_int_equal(allow_parse(lines[i].text, &a, &e), -EINVAL);
		if (!strstr(e.text, lines[i].names) || e.text[0] != '"')
			fail_msg("<%s>: \"%s\" does not say \"%s\"", lines[i].text, e.text,
				 lines[i].names);
		assert_true(text_printable(e.text));
		assert_int_equal(a.prefix, 77);
		assert_int_equal(allow_parse(lines[i].text, &a, NULL), -EINVAL);
	}
}

static void long_lines_are_refused(void **state)
{
	char text[4096];
	struct allow a;
	struct error e = ERROR_NULL;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "tcp \033", 5);
	assert_int_equal(allow_parse(text, &a, &e), -EINVAL);
	assert_non_null(strstr(e.text, "no entry is longer than 127 characters"));
	assert_true(text_printable(e.text));
	text[127] = '\0';
	text[4] = 'x';
	assert_int_equal(allow_parse(text, &a, &e), -EINVAL);
	assert_non_null(strstr(e.text, "only addresses"));
}

/* Boxes */

struct boxes {
	struct box *box;
	size_t n;
};

static struct boxes boxes_of(const char *const *lines, size_t n)
{
	struct allow a[64];
	struct boxes b = { .box = NULL };

	for (size_t i = 0; i < n; i++)
		a[i] = parsed(lines[i]);
	assert_int_equal(cover(a, n, 1000, &b.box, &b.n), 0);
	return b;
}

static void box_text(const struct box *b, char *buf, size_t size)
{
	char from[64], to[64];

	inet_ntop(b->family, b->first, from, sizeof(from));
	inet_ntop(b->family, b->last, to, sizeof(to));
	snprintf(buf, size, "%s %s-%s %u-%u", allow_protocol_name(b->protocol), from, to,
		 b->first_port, b->last_port);
}

static void assert_boxes(const char *const *lines, size_t n, const char *const *wanted, size_t m)
{
	struct boxes b = boxes_of(lines, n);
	char text[160];

	for (size_t i = 0; i < b.n && i < m; i++) {
		box_text(&b.box[i], text, sizeof(text));
		assert_string_equal(text, wanted[i]);
	}
	assert_int_equal(b.n, m);
	free(b.box);
}

#define LIST(...)                                                                                  \
	(const char *const[]){ __VA_ARGS__ },                                                      \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)

static void what_others_contain_is_left_out(void **state)
{
	(void)state;
	assert_boxes(LIST("tcp 10.1.2.3:443", "tcp 10.0.0.0/8:443", "tcp 10.1.2.3:443",
			  "tcp 10.0.0.0/8:440-450", "udp 10.1.2.3:443"),
		     LIST("tcp 10.0.0.0-10.255.255.255 440-450", "udp 10.1.2.3-10.1.2.3 443-443"));
	assert_boxes(LIST("tcp [2001:db8::1]:1-2", "tcp [2001:db8::1]:2-3", "tcp [2001:db8::1]:4"),
		     LIST("tcp 2001:db8::1-2001:db8::1 1-4"));
}

static void what_overlaps_in_part_is_split(void **state)
{
	(void)state;
	assert_boxes(LIST("tcp 10.0.0.0/8:443", "tcp 10.1.2.3:1-65535"),
		     LIST("tcp 10.0.0.0-10.255.255.255 443-443", "tcp 10.1.2.3-10.1.2.3 1-442",
			  "tcp 10.1.2.3-10.1.2.3 444-65535"));
	assert_boxes(LIST("tcp 10.0.0.0/8:80", "tcp 10.1.0.0/16:443", "tcp 10.1.1.0/24:80-443",
			  "tcp 10.2.0.0/16:80-81"),
		     LIST("tcp 10.0.0.0-10.255.255.255 80-80", "tcp 10.1.0.0-10.1.255.255 443-443",
			  "tcp 10.1.1.0-10.1.1.255 81-442", "tcp 10.2.0.0-10.2.255.255 81-81"));
	assert_boxes(LIST("icmp 10.0.0.0/8", "icmp 10.0.0.1"),
		     LIST("icmp 10.0.0.0-10.255.255.255 0-65535"));
}

static void loopback_has_to_be_listed(void **state)
{
	(void)state;
	assert_boxes(LIST("tcp 0.0.0.0/0:443"), LIST("tcp 0.0.0.0-126.255.255.255 443-443",
						     "tcp 128.0.0.0-255.255.255.255 443-443"));
	assert_boxes(LIST("tcp 126.0.0.0/7:443"), LIST("tcp 126.0.0.0-126.255.255.255 443-443"));
	assert_boxes(LIST("tcp 127.0.0.0/8:443"), LIST("tcp 127.0.0.0-127.255.255.255 443-443"));
	assert_boxes(LIST("tcp 0.0.0.0/0:443", "tcp 127.0.0.1:443", "tcp 127.0.0.1:80"),
		     LIST("tcp 0.0.0.0-126.255.255.255 443-443",
			  "tcp 128.0.0.0-255.255.255.255 443-443", "tcp 127.0.0.1-127.0.0.1 80-80",
			  "tcp 127.0.0.1-127.0.0.1 443-443"));
	assert_boxes(
		LIST("udp [::/0]:53"),
		LIST("udp ::-:: 53-53", "udp ::2-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 53-53"));
	assert_boxes(LIST("udp [::/127]:53", "udp [::1]:53"),
		     LIST("udp ::-:: 53-53", "udp ::1-::1 53-53"));
}

static void nothing_is_nothing(void **state)
{
	struct box *box = NULL;
	size_t n = 1;

	(void)state;
	assert_int_equal(cover(NULL, 0, 0, &box, &n), 0);
	assert_int_equal(n, 0);
	free(box);
}

static void too_much_is_refused(void **state)
{
	const struct allow a[] = { parsed("tcp 10.0.0.0/8:443"), parsed("tcp 10.1.2.3:1-65535") };
	struct box *box = NULL;
	size_t n = 7;

	(void)state;
	assert_int_equal(cover(a, 2, 2, &box, &n), -E2BIG);
	assert_int_equal(n, 7);
	assert_int_equal(cover(a, 2, 3, &box, &n), 0);
	free(box);
}

/* Random entries in a small world, tried point by point. */

static uint32_t lcg = 1;

static unsigned int dice(unsigned int n)
{
	lcg = lcg * 1664525 + 1013904223;
	return (lcg >> 16) % n;
}

static struct allow random_entry(void)
{
	struct allow a = { .family = AF_INET, .protocol = dice(2) ? IPPROTO_TCP : IPPROTO_UDP };
	unsigned int bits = dice(6);

	a.address[0] = dice(4) ? 10 : 127;
	a.address[3] = (uint8_t)(dice(32) & (0xffu << bits));
	a.prefix = (uint8_t)(32 - bits);
	a.first_port = (uint16_t)(1 + dice(140));
	a.last_port = (uint16_t)(a.first_port + dice(1 + dice(100)));
	return a;
}

static unsigned int allowed_by(const struct allow *a, size_t n, const struct box *point)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].protocol == point->protocol && a[i].address[0] == point->first[0] &&
		    (point->first[3] ^ a[i].address[3]) >> (32 - a[i].prefix) == 0 &&
		    point->first_port >= a[i].first_port && point->first_port <= a[i].last_port)
			return 1;
	return 0;
}

static unsigned int boxes_with(const struct boxes *b, const struct box *point)
{
	unsigned int hits = 0;

	for (size_t i = 0; i < b->n; i++)
		hits += b->box[i].protocol == point->protocol &&
			memcmp(b->box[i].first, point->first, 4) <= 0 &&
			memcmp(b->box[i].last, point->first, 4) >= 0 &&
			point->first_port >= b->box[i].first_port &&
			point->first_port <= b->box[i].last_port;
	return hits;
}

static void every_point_is_in_as_many_boxes_as_it_should(void **state)
{
	struct allow a[24];
	struct boxes b;

	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(a); i++)
			a[i] = random_entry();
		assert_int_equal(cover(a, ARRAY_SIZE(a), 10000, &b.box, &b.n), 0);
		for (unsigned int i = 0; i < 4000; i++) {
			struct box point = { .protocol = dice(2) ? IPPROTO_TCP : IPPROTO_UDP };

			point.first[0] = dice(4) ? 10 : 127;
			point.first[3] = (uint8_t)dice(34);
			point.first_port = (uint16_t)dice(250);
			assert_int_equal(boxes_with(&b, &point),
					 allowed_by(a, ARRAY_SIZE(a), &point));
		}
		free(b.box);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_and_written),
		cmocka_unit_test(numbers_are_as_documented),
		cmocka_unit_test(other_lines_are_refused),
		cmocka_unit_test(long_lines_are_refused),
		cmocka_unit_test(what_others_contain_is_left_out),
		cmocka_unit_test(what_overlaps_in_part_is_split),
		cmocka_unit_test(loopback_has_to_be_listed),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(every_point_is_in_as_many_boxes_as_it_should),
	};

	return cmocka_run_group_tests_name("nft/allow", tests, NULL, NULL);
}
