/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the whole ruleset of a host, whoever made it.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>

#include "nft/foreign.h"
#include "tests/net/golden.h"

static void read_it(struct foreign *ret)
{
	struct error e = ERROR_NULL;

	assert_ok(foreign_read(ret, &e), &e);
}

static void nothing_is_nothing(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;

	(void)state;
	read_it(&f);
	assert_int_equal(f.n_tables + f.n_chains + f.n_sets, 0);
}

static void all_families_are_read(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	struct firewall *fw = load_new(&golden_policy, true);
	const struct foreign_table *t;
	struct foreign_chain *c;
	struct foreign_set *s;

	(void)state;
	assert_int_equal(
		nft_input("table ip nat {\n"
			  "chain out { type nat hook output priority -100; policy accept;\n"
			  "tcp dport 80 counter redirect to :3128\n}\n}\n"
			  "table ip6 filter { flags dormant; \n"
			  "set s { type inet_service; flags interval; elements = { 1-9, 22 } }\n"
			  "chain out { type filter hook output priority 5; policy drop; \n"
			  "tcp dport { 1, 2 } accept\n}\n}\n"
			  "table netdev n {\nchain e { type filter hook egress device lo priority "
			  "0; }\n}\n"
			  "table arp a {\nchain c {\n}\n}\n"),
		0);
	read_it(&f);
	assert_int_equal(f.n_tables, 5);
	t = foreign_find_table(&f, NFPROTO_INET, FIREWALL_TABLE);
	assert_non_null(t);
	assert_int_not_equal(t->owner, 0);
	t = foreign_find_table(&f, NFPROTO_IPV6, "filter");
	assert_non_null(t);
	assert_true(t->flags & NFT_TABLE_F_DORMANT);
	c = foreign_find_chain(&f, (size_t)(t - f.tables), "out");
	assert_non_null(c);
	assert_int_equal(c->policy, NF_DROP);
	assert_int_equal(c->priority, 5);
	assert_int_equal(c->n_rules, 1);
	s = foreign_find_set(&f, (size_t)(t - f.tables), "s");
	assert_non_null(s);
	assert_true(s->n_elements >= 4);
	t = foreign_find_table(&f, NFPROTO_IPV4, "nat");
	c = foreign_find_chain(&f, (size_t)(t - f.tables), "out");
	assert_non_null(c);
	assert_string_equal(c->type, "nat");
	assert_int_equal(foreign_packets(c->rules[0].exprs), 0);
	firewall_free(fw);
}

#define MANY 100000

static void large_sets_are_whole(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_free_ char *text = malloc(MANY * 16 + 256);
	size_t used;

	(void)state;
	assert_non_null(text);
	used = (size_t)sprintf(text, "table inet large {\nset s { type ipv4_addr; elements = { ");
	for (unsigned int i = 0; i < MANY; i++)
		used += (size_t)sprintf(text + used, "10.%u.%u.%u, ", i >> 16, i >> 8 & 255,
					i & 255);
	strcpy(text + used, "} }\n}\n");
	assert_int_equal(nft_input(text), 0);
	read_it(&f);
	assert_int_equal(f.n_elements, MANY);
	assert_int_equal(f.sets[0].n_elements, MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(nothing_is_nothing),
		net_test(all_families_are_read),
		net_test(large_sets_are_whole),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("foreign", tests, NULL, NULL);
}
