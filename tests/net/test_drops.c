/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a pool's uid sends is dropped and counted, what others send is not.
 */
#include "tests/net/net.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/net/golden.h"

#define FIRST	90000
#define OUTSIDE 89999
#define SENT	7

struct sender {
	uid_t uid;
	uint16_t port;
};

static unsigned int send_as(void *data)
{
	const struct sender *s = data;

	if (setresuid(s->uid, s->uid, s->uid) < 0)
		return 100;
	return udp_send(socket(AF_INET, SOCK_DGRAM, 0), s->port, SENT);
}

static void only_the_pool_is_dropped(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct sender s;
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	s.uid = FIRST + 1;
	assert_int_equal(in_child(send_as, &s), SENT);
	assert_int_equal(udp_received(receiver), 0);
	s.uid = OUTSIDE;
	assert_int_equal(in_child(send_as, &s), 0);
	assert_int_equal(udp_received(receiver), SENT);
	s.uid = FIRST + 3;
	assert_int_equal(in_child(send_as, &s), 0);
	assert_int_equal(udp_received(receiver), SENT);
	s.uid = 0;
	assert_int_equal(in_child(send_as, &s), 0);
	assert_int_equal(udp_received(receiver), SENT);
	firewall_free(fw);
}

static void each_uid_has_its_own_count(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	struct sender s = { .uid = FIRST };
	_cleanup_close_ int receiver = udp_receiver(&s.port);
	struct error e = ERROR_NULL;

	(void)state;
	in_child(send_as, &s);
	assert_int_equal(drops(fw, FIRST), SENT);
	s.uid = FIRST + 2;
	in_child(send_as, &s);
	in_child(send_as, &s);
	assert_int_equal(drops(fw, FIRST), SENT);
	assert_int_equal(drops(fw, FIRST + 1), 0);
	assert_int_equal(drops(fw, FIRST + 2), 2 * SENT);
	assert_int_equal(udp_received(receiver), 0);
	/* Counting is no change. */
	assert_ok(firewall_check(fw, &e), &e);
	firewall_free(fw);
}

static void a_socket_that_root_made_passes_here(void **state)
{
	struct firewall *fw = load_new(&golden_policy, true);
	uint16_t port;
	_cleanup_close_ int receiver = udp_receiver(&port);
	_cleanup_close_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(seteuid(FIRST), 0);
	assert_int_equal(udp_send(sock, port, SENT), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(udp_received(receiver), SENT);
	assert_int_equal(drops(fw, FIRST), 0);
	firewall_free(fw);
}

/* An accept before or after ours helps nobody. */
static void accepting_elsewhere_does_not_matter(void **state)
{
	static const char text[] = "table inet early { chain c {\n"
				   "type filter hook output priority -300; accept; }\n}\n"
				   "table inet late { chain c {\n"
				   "type filter hook output priority 300; accept; }\n}\n";
	struct firewall *fw = load_new(&golden_policy, true);
	struct sender s = { .uid = FIRST };
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	assert_int_equal(nft_input(text), 0);
	assert_int_equal(in_child(send_as, &s), SENT);
	assert_int_equal(udp_received(receiver), 0);
	firewall_free(fw);
}

static void the_ends_of_the_largest_pool_are_dropped(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct sender s;
	_cleanup_close_ int receiver = udp_receiver(&s.port);

	(void)state;
	policy.uid_count = 65536;
	fw = load_new(&policy, true);
	for (uint32_t i = 0; i < 65536; i += 13107) { /* the last is 65535 */
		s.uid = FIRST + i;
		assert_int_equal(in_child(send_as, &s), SENT);
		assert_int_equal(drops(fw, s.uid), SENT);
	}
	assert_int_equal(udp_received(receiver), 0);
	firewall_free(fw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(only_the_pool_is_dropped),
		net_test(each_uid_has_its_own_count),
		net_test(a_socket_that_root_made_passes_here),
		net_test(accepting_elsewhere_does_not_matter),
		net_test(the_ends_of_the_largest_pool_are_dropped),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("drops", tests, NULL, NULL);
}
