/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is said of a packet's way through rules of any kind, and what really happens to it: every
 * ruleset is loaded, walked, and tried with a datagram over loopback.
 */
#include "tests/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "nft/text.h"
#include "nft/walk.h"

#define PORT	 4242
#define OTHER	 4243 /* where translation leads to */
#define UID	 12345
#define TEXT_MAX 1024

enum expected { PASSES, DROPPED, MAY_PASS, MAY_BE_DROPPED };

/* MAY_...: UNKNOWN is right, and what happens is this. What starts with "IPv6" is tried with that.
 */
static const struct {
	const char *name, *ruleset;
	enum expected expected;
	const char *rule; /* what decides, or leaves it open */
} cases[] = {
#define OUT(priority, policy)                                                                      \
	"chain o { type filter hook output priority " priority "; policy " policy ";"
#define TABLE(family, text) "table " family " t {\n" text "\n}\n"
	{ "nothing", "", PASSES, NULL },
	{ "accept", TABLE("inet", OUT("0", "accept") " udp dport 4242 accept; }"), PASSES, NULL },
	{ "drop by port", TABLE("inet", OUT("0", "accept") " udp dport 4242 drop; }"), DROPPED,
	  "udp dport 4242 drop" },
	{ "another port", TABLE("inet", OUT("0", "accept") " udp dport 4241 drop; }"), PASSES,
	  NULL },
	{ "another protocol", TABLE("inet", OUT("0", "accept") " tcp dport 4242 drop; }"), PASSES,
	  NULL },
	{ "policy drop", TABLE("inet", OUT("0", "drop") " }"), DROPPED, NULL },
	{ "accept before policy drop",
	  TABLE("ip", OUT("0", "drop") " ip daddr 127.0.0.0/8 accept; }"), PASSES, NULL },
	{ "an accept elsewhere is none here",
	  TABLE("ip", OUT("-20", "accept") " accept; }") "table inet u { " OUT(
		  "5", "accept") " meta skuid 12345 drop; }\n}\n",
	  DROPPED, "meta skuid 12345 drop" },
	{ "a drop first is a drop",
	  TABLE("ip", OUT("-20", "accept") " drop; }") "table inet u { " OUT(
		  "5", "accept") " accept; }\n}\n",
	  DROPPED, "drop" },
	{ "the other family", TABLE("ip6", OUT("0", "drop") " }"), PASSES, NULL },
	{ "dormant", TABLE("inet", "flags dormant; " OUT("0", "drop") " }"), PASSES, NULL },
	{ "uid range", TABLE("inet", OUT("0", "accept") " meta skuid 12000-13000 drop; }"), DROPPED,
	  NULL },
	{ "outside a uid range",
	  TABLE("inet", OUT("0", "accept") " meta skuid 12346-13000 drop; }"), PASSES, NULL },
	{ "greater", TABLE("inet", OUT("0", "accept") " meta skuid > 12344 drop; }"), DROPPED,
	  "meta skuid > 12344 drop" },
	{ "not greater", TABLE("inet", OUT("0", "accept") " meta skuid > 12345 drop; }"), PASSES,
	  NULL },
	{ "uid set",
	  TABLE("inet", "set s { type uid; elements = { 1, 12345 }; }\n" OUT(
				"0", "accept") " meta skuid @s drop; }"),
	  DROPPED, "meta skuid @s drop" },
	{ "not in uid set",
	  TABLE("inet", "set s { type uid; elements = { 1, 12345 }; }\n" OUT(
				"0", "accept") " meta skuid != @s drop; }"),
	  PASSES, NULL },
	{ "uid interval set",
	  TABLE("inet",
		"set s { type uid; flags interval; elements = { 1-5, 12340-12345 }; }\n" OUT(
			"0", "accept") " meta skuid @s drop; }"),
	  DROPPED, "meta skuid @s drop" },
	{ "between intervals",
	  TABLE("inet", "set s { type inet_service; flags interval; elements = { 1-4241, "
			"4243-5000 }; }\n" OUT("0", "accept") " udp dport @s drop; }"),
	  PASSES, NULL },
	{ "adjacent intervals",
	  TABLE("inet", "set s { type inet_service; flags interval; elements = { 1-4241, 4242, "
			"4243-5000 }; }\n" OUT("0", "accept") " udp dport @s drop; }"),
	  DROPPED, "udp dport @s drop" },
	{ "prefix set",
	  TABLE("ip", "set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, "
		      "127.0.0.0/16 }; }\n" OUT("0", "accept") " ip daddr @s drop; }"),
	  DROPPED, "ip daddr @s drop" },
	{ "concatenation",
	  TABLE("ip", "set s { type ipv4_addr . inet_service; elements = { 127.0.0.1 . 4242 }; "
		      "}\n" OUT("0", "accept") " ip daddr . udp dport @s drop; }"),
	  DROPPED, "ip daddr . udp dport @s drop" },
	{ "concatenated intervals",
	  TABLE("inet",
		"set s { type inet_proto . ipv4_addr . inet_service; flags interval; elements = { "
		"udp . 127.0.0.0/24 . 4000-5000, tcp . 1.2.3.4 . 1 }; }\n" OUT(
			"0", "accept") " ip protocol . ip daddr . th dport @s drop; }"),
	  DROPPED, "ip protocol . ip daddr . th dport @s drop" },
	{ "outside of concatenated intervals",
	  TABLE("inet",
		"set s { type inet_proto . ipv4_addr . inet_service; flags interval; elements = { "
		"udp . 127.0.0.0/24 . 4000-4241, tcp . 127.0.0.1 . 4242 }; }\n" OUT(
			"0", "accept") " ip protocol . ip daddr . th dport @s drop; }"),
	  PASSES, NULL },
	{ "verdict map",
	  TABLE("inet", "chain a { return; }\nchain b { drop; }\n" OUT(
				"0", "accept") " udp dport vmap { 1 : jump a, 4242 : jump b }; }"),
	  DROPPED, "drop" },
	{ "verdict map to nothing",
	  TABLE("inet", "chain b { drop; }\n" OUT(
				"0", "accept") " udp dport vmap { 1 : jump b, 2 : drop }; }"),
	  PASSES, NULL },
	{ "catch-all",
	  TABLE("inet", "map m { type inet_service : verdict; elements = { 1 : accept, "
			"* : drop }; }\n" OUT("0", "accept") " udp dport vmap @m; }"),
	  DROPPED, "udp dport vmap @m" },
	{ "jump and return",
	  TABLE("inet", "chain a { udp dport 4242 return; drop; }\n" OUT(
				"0", "accept") " jump a; udp dport 4242 reject; }"),
	  DROPPED, "udp dport 4242 reject with icmpx port-unreachable" },
	{ "goto does not come back",
	  TABLE("inet", "chain a { udp dport 1 drop; }\n" OUT("0", "accept") " goto a; drop; }"),
	  PASSES, NULL },
	{ "goto to the policy",
	  TABLE("inet", "chain a { udp dport 1 drop; }\n" OUT("0", "drop") " goto a; accept; }"),
	  DROPPED, NULL },
	{ "return to the policy", TABLE("inet", OUT("0", "drop") " return; accept; }"), DROPPED,
	  NULL },
	{ "device", TABLE("inet", OUT("0", "drop") " oifname \"lo\" accept; }"), PASSES, NULL },
	{ "device by number", TABLE("inet", OUT("0", "accept") " oif lo drop; }"), DROPPED,
	  "meta oif \"lo\" drop" },
	{ "another device", TABLE("inet", OUT("0", "drop") " oifname \"eth0\" accept; }"), DROPPED,
	  NULL },
	{ "device by its beginning", TABLE("inet", OUT("0", "accept") " oifname \"l*\" drop; }"),
	  DROPPED, "meta oifname \"l*\" drop" },
	{ "not this device", TABLE("inet", OUT("0", "accept") " oifname != \"lo\" drop; }"), PASSES,
	  NULL },
	{ "no mark", TABLE("inet", OUT("0", "accept") " meta mark 0 drop; }"), DROPPED,
	  "meta mark 0x00000000 drop" },
	{ "a mark set before",
	  TABLE("inet", "chain m { type filter hook output priority -200; meta mark set 7; }\n" OUT(
				"0", "accept") " meta mark 7 drop; }"),
	  DROPPED, "meta mark 0x00000007 drop" },
	{ "a mark's bits", TABLE("inet", OUT("0", "accept") " meta mark & 0xff == 1 drop; }"),
	  PASSES, NULL },
	{ "a new connection",
	  TABLE("inet", OUT("0", "drop") " ct state established,related accept; }"), MAY_BE_DROPPED,
	  "ct state established,related accept" },
	{ "either way",
	  TABLE("inet", OUT("0", "accept") " ct state established accept; udp dport "
					   "4242 accept; drop; }"),
	  PASSES, NULL },
	{ "either way a drop",
	  TABLE("inet", OUT("0", "drop") " ct state invalid drop; udp dport 1 accept; }"), DROPPED,
	  NULL },
	{ "a limit", TABLE("inet", OUT("0", "accept") " limit rate over 1000/second drop; }"),
	  MAY_PASS, "limit rate over 1000/second burst 5 packets drop" },
	{ "source port", TABLE("inet", OUT("0", "accept") " udp sport 1 drop; }"), MAY_PASS,
	  "udp sport 1 drop" },
	{ "route",
	  TABLE("inet", "chain r { type route hook output priority -150; udp dport 4242 "
			"drop; }"),
	  DROPPED, "udp dport 4242 drop" },
	{ "postrouting",
	  TABLE("inet", "chain p { type filter hook postrouting priority 0; udp dport "
			"4242 drop; }"),
	  DROPPED, "udp dport 4242 drop" },
	{ "redirected, then another port",
	  TABLE("ip", "chain n { type nat hook output priority 50; udp dport 4242 redirect to "
		      ":4243; }\n" OUT("0", "accept") " udp dport 4242 drop; }"),
	  PASSES, NULL },
	{ "redirected to a port that is dropped",
	  TABLE("ip", "chain n { type nat hook output priority 50; udp dport 4242 redirect to "
		      ":4243; }\n" OUT("0", "accept") " udp dport 4243 drop; }"),
	  DROPPED, "udp dport 4243 drop" },
	{ "before it is redirected",
	  TABLE("ip", "chain n { type nat hook output priority -100; udp dport 4242 redirect to "
		      ":4243; }\n" OUT("-150", "accept") " udp dport 4242 drop; }"),
	  DROPPED, "udp dport 4242 drop" },
	{ "translated, address and port",
	  TABLE("ip", "chain n { type nat hook output priority -100; udp dport 4242 dnat to "
		      "127.0.0.2:4243; }\n" OUT("0", "accept") " ip daddr 127.0.0.2 udp dport 4243 "
							       "drop; }"),
	  DROPPED, "ip daddr 127.0.0.2 udp dport 4243 drop" },
	{ "perhaps translated",
	  TABLE("ip", "chain n { type nat hook output priority -100; udp sport 1 dnat to "
		      "127.0.0.2:4243; }\n" OUT("0", "accept") " udp dport 4243 drop; }"),
	  MAY_PASS, "udp dport 4243 drop" },
	{ "the first translation counts",
	  "table ip a { chain n { type nat hook output priority -90; udp dport 4242 redirect to "
	  ":4243; }\n}\ntable ip b { chain n { type nat hook output priority -80; udp dport 4242 "
	  "redirect to :4244; }\n" OUT("0", "accept") " udp dport 4244 drop; }\n}\n",
	  PASSES, NULL },
	{ "perhaps translated before",
	  "table ip a { chain n { type nat hook output priority -90; udp sport 1 redirect to "
	  ":4244; }\n}\ntable ip b { chain n { type nat hook output priority -80; udp dport 4242 "
	  "redirect to :4243; }\n" OUT("0", "accept") " udp dport 4244 drop; }\n}\n",
	  MAY_PASS, "udp dport 4244 drop" },
	{ "a counter with a name",
	  TABLE("inet", "counter c { }\n" OUT("0", "accept") " counter name c drop; }"), DROPPED,
	  "counter name \"c\" drop" },
	{ "a quota with a name",
	  TABLE("inet", "quota q { over 1 mbytes; }\n" OUT("0", "accept") " quota name q drop; }"),
	  MAY_PASS, "quota name \"q\" drop" },
	{ "a set that may be full",
	  TABLE("inet", "set s { type uid; size 4; flags dynamic; }\n" OUT(
				"0", "accept") " add @s { meta skuid } drop; }"),
	  MAY_BE_DROPPED, "add @s { meta skuid } drop" },
	{ "address bits",
	  TABLE("ip", OUT("0", "accept") " ip daddr & 255.0.0.255 == 127.0.0.1 drop; }"), DROPPED,
	  NULL },
	{ "header length", TABLE("inet", OUT("0", "accept") " ip hdrlength 5 drop; }"), DROPPED,
	  "ip hdrlength 5 drop" },
	{ "a protocol of layer 4",
	  TABLE("inet", OUT("0", "accept") " meta l4proto { tcp, udp } "
					   "drop; }"),
	  DROPPED, "meta l4proto { tcp, udp } drop" },
	{ "raw bytes", TABLE("inet", OUT("0", "accept") " @th,16,16 4242 drop; }"), DROPPED, NULL },
	{ "IPv6, by port", TABLE("inet", OUT("0", "accept") " udp dport 4242 drop; }"), DROPPED,
	  "udp dport 4242 drop" },
	{ "IPv6, a rule for IPv4", TABLE("inet", OUT("0", "accept") " ip protocol udp drop; }"),
	  PASSES, NULL },
	{ "IPv6, address", TABLE("ip6", OUT("0", "drop") " ip6 daddr ::/64 accept; }"), PASSES,
	  NULL },
	{ "IPv6, set",
	  TABLE("ip6", "set s { type ipv6_addr . inet_service; flags interval; elements = { ::1 . "
		       "4000-5000 }; }\n" OUT("0", "accept") " ip6 daddr . udp dport @s drop; }"),
	  DROPPED, "ip6 daddr . udp dport @s drop" },
	{ "IPv6, redirected",
	  TABLE("ip6", "chain n { type nat hook output priority -100; udp dport 4242 redirect to "
		       ":4243; }\n" OUT("0", "accept") " ip6 daddr ::1 udp dport 4243 drop; }"),
	  DROPPED, "ip6 daddr ::1 udp dport 4243 drop" },
	{ "egress of loopback",
	  "table netdev t { chain e { type filter hook egress device \"lo\" priority 0; udp dport "
	  "4242 drop; }\n}\n",
	  MAY_BE_DROPPED, "udp dport 4242 drop" },
};

static const struct packet to_loopback[] = {
	{
		.family = AF_INET,
		.protocol = IPPROTO_UDP,
		.address = { 127, 0, 0, 1 },
		.port = PORT,
		.uid = UID,
	},
	{
		.family = AF_INET6,
		.protocol = IPPROTO_UDP,
		.address = { [15] = 1 },
		.port = PORT,
		.uid = UID,
	},
};

/* ---- what happens ---- */

/* Hears both families. */
static int receiver(uint16_t port)
{
	const struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static unsigned int send_as_uid(void *six)
{
	const struct sockaddr_in to4 = { .sin_family = AF_INET,
					 .sin_port = htons(PORT),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
					  .sin6_port = htons(PORT),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd;

	if (setresuid(UID, UID, UID) < 0)
		return 1;
	fd = socket(*(bool *)six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (*(bool *)six)
		sendto(fd, "x", 1, 0, (const struct sockaddr *)&to6, sizeof(to6));
	else
		sendto(fd, "x", 1, 0, (const struct sockaddr *)&to4, sizeof(to4));
	return 0;
}

static bool really_passes(bool six)
{
	_cleanup_close_ int there = receiver(PORT), elsewhere = receiver(OTHER);

	assert_int_equal(in_child(send_as_uid, &six), 0);
	return udp_received(there) + udp_received(elsewhere) > 0;
}

/* ---- what is said ---- */

static void rule_text(struct foreign *f, const struct walk_place *place, char buf[TEXT_MAX])
{
	const struct text_names names = { NULL, 0 };
	FILE *out = fmemopen(buf, TEXT_MAX, "w");

	assert_non_null(out);
	if (place->rule)
		text_rule(out, f, place->chain, place->rule, &names, false);
	fclose(out);
}

/* 1 when it is as expected. */
static int try_case(size_t i)
{
	static const enum walk_outcome outcomes[] = { WALK_ACCEPT, WALK_DROP, WALK_UNKNOWN,
						      WALK_UNKNOWN };
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_(walk_free) struct walk w = WALK_NULL;
	enum expected expected = cases[i].expected;
	char text[TEXT_MAX] = "";
	struct error e = ERROR_NULL;
	bool six = strncmp(cases[i].name, "IPv6", 4) == 0, passes;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(net_fresh(NULL), 0);
	if (nft_input(cases[i].ruleset) != 0) {
		print_error("%s: nft does not take it\n", cases[i].name);
		return 0;
	}
	assert_ok(foreign_read(&f, &e), &e);
	assert_int_equal(walk(&f, &to_loopback[six], &w), 0);
	passes = really_passes(six);
	if (w.decisive < w.n_steps) {
		const struct walk_step *step = &w.steps[w.decisive];

		rule_text(&f, step->outcome == WALK_UNKNOWN ? &step->doubt : &step->decided, text);
	}
	if (w.outcome == outcomes[expected] &&
	    passes == (expected == PASSES || expected == MAY_PASS) &&
	    (!cases[i].rule || strcmp(text, cases[i].rule) == 0))
		return 1;
	print_error("%s: outcome %d, really %s, rule \"%s\"\n", cases[i].name, w.outcome,
		    passes ? "passes" : "is dropped", text);
	return 0;
}

static void what_is_said_is_what_happens(void **state)
{
	size_t good = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		good += (size_t)try_case(i);
	assert_int_equal(good, ARRAY_SIZE(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(what_is_said_is_what_happens),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
