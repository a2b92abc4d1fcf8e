/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests against the real nf_tables, each in a network namespace of its own: nothing of the host is
 * touched. Needs root.
 */
#pragma once

#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nft/firewall.h"

#define NET_SKIPPED 77

/* Can this be tested here? 0, or the exit status for main() after it has said why not: 77, or 1
 * when HARPE_TESTS_MUST_RUN is set. */
int net_possible(void);

/* The same for a condition that the test found itself. */
int net_skip(const char *why);

/* cmocka set-up: a fresh network namespace with lo up. */
int net_fresh(void **state);

#define net_test(f) cmocka_unit_test_setup(f, net_fresh)

/* Runs nft(8) with @args through the shell. Its exit status; what it printed, both streams, goes to
 * @out unless that is NULL. */
int nft(char *out, size_t size, const char *args, ...) __attribute__((format(printf, 3, 4)));

/* Feeds nft(8) with @text. Its exit status. */
int nft_input(const char *text);

/* Fails the test, with the sentence, unless @r is 0. */
void assert_ok(int r, const struct error *e);

/* A loaded firewall. */
struct firewall *load_new(const struct firewall_policy *policy, bool owned);

/* A UDP receiver on lo, its port in *ret_port. */
int udp_receiver(uint16_t *ret_port);

/* Sends @n datagrams from @sock to @port; how many of them the kernel refused with EPERM (that is
 * how a dropped one shows). */
unsigned int udp_send(int sock, uint16_t port, unsigned int n);

/* How many datagrams are waiting. */
unsigned int udp_received(int receiver);

/* firewall_uid_drops() and firewall_stray_drops(), which must know. */
uint64_t drops(struct firewall *fw, uint32_t uid);
uint64_t strays(struct firewall *fw, uint64_t id);

/* Runs @f in a child. Its result, 0 to 100. */
unsigned int in_child(unsigned int (*f)(void *data), void *data);
