/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Another program commits all the time.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <libmnl/libmnl.h>

#include "nft/transaction.h"
#include "tests/net/golden.h"

#define LOADS 200 /* HARPE_WRITERS_LOADS says another number */

#define LARGE 20000 /* uids: some 30 ms to read */
#define HOLED 5000

/* Another program: nft, as anybody would use it. */
static void run_nft(void)
{
	static const char loop[] =
		"while :; do printf 'table inet other { set s { type uid; elements = { 1, 2 } }\\n"
		"chain c { type filter hook output priority 0; meta skuid @s accept; }\\n}\\n"
		"delete table inet other\\n' | nft -f - || exit 1; done";

	execl("/bin/sh", "sh", "-c", loop, (char *)NULL);
}

/* One that commits as fast as it can. */
static void add_name(struct transaction *t, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = transaction_add(t, type, flags, OBJECT_TABLE, "other");

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, "other");
}

static void commit_other_table(struct transaction *t, unsigned int round)
{
	(void)round;
	add_name(t, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	add_name(t, NFT_MSG_DELTABLE, 0);
}

static void add_uid(struct transaction *t, uint16_t type, uint32_t uid)
{
	struct nlmsghdr *nlh = transaction_add(t, type, NLM_F_CREATE, OBJECT_ELEMENTS, "uid");
	struct nlattr *list, *element, *key;

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, FIREWALL_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, "pool");
	list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
	key = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_KEY);
	mnl_attr_put_u32(nlh, NFTA_DATA_VALUE, uid);
	mnl_attr_nest_end(nlh, key);
	mnl_attr_nest_end(nlh, element);
	mnl_attr_nest_end(nlh, list);
}

/* And one that takes another uid out of our unowned pool every time: at no moment is it whole. */
static void commit_other_hole(struct transaction *t, unsigned int round)
{
	uint32_t uid = golden_policy.first_uid + round % HOLED;

	add_uid(t, NFT_MSG_DELSETELEM, uid);
	if (round > 0)
		add_uid(t, NFT_MSG_NEWSETELEM, golden_policy.first_uid + (round - 1) % HOLED);
}

static void commit_forever(void (*build)(struct transaction *, unsigned int), int started)
{
	struct channel ch = CHANNEL_NULL;
	enum object_kind kind;
	struct error e = ERROR_NULL;

	if (channel_open(&ch, &e) < 0)
		return;
	for (unsigned int round = 0;; round++) {
		_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;

		if (transaction_begin(&t, &ch, "other") < 0)
			return;
		build(&t, round);
		if (transaction_commit(&t, &kind, &e) < 0) {
			fprintf(stderr, "other program: %s\n", e.text);
			return;
		}
		if (round == 0 && write(started, "", 1) != 1)
			return;
	}
}

/* Starts another program, nft for NULL, and waits for its first commit. */
static pid_t start(void (*build)(struct transaction *, unsigned int))
{
	int started[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(started), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (build)
			commit_forever(build, started[1]);
		else
			run_nft();
		_exit(127);
	}
	close(started[1]);
	if (build)
		assert_int_equal(read(started[0], &c, 1), 1);
	close(started[0]);
	return pid;
}

/* Still running, that is: it never failed either. */
static void stop(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static unsigned long n_loads(void)
{
	const char *asked = getenv("HARPE_WRITERS_LOADS");

	return asked ? strtoul(asked, NULL, 10) : LOADS;
}

static void loading_never_fails(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	uint32_t owner;
	pid_t other;

	(void)state;
	policy.uid_count = 256;
	fw = load_new(&policy, true);
	other = start(NULL);
	for (unsigned long i = 0; i < n_loads(); i++) {
		assert_ok(firewall_load(fw, &policy, i % 4 != 0, &e), &e);
		assert_ok(firewall_check(fw, &e), &e);
		assert_ok(firewall_inspect(fw, &policy, &owner, &e), &e);
	}
	stop(other);
	firewall_free(fw);
}

/* Nobody can commit to an owned table, so a long reading is as good as a short one. */
static void an_owned_table_can_always_be_read(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	pid_t other;

	(void)state;
	policy.uid_count = LARGE;
	fw = load_new(&policy, true);
	other = start(commit_other_table);
	for (unsigned int i = 0; i < 5; i++) {
		assert_ok(firewall_load(fw, &policy, true, &e), &e);
		assert_ok(firewall_check(fw, &e), &e);
	}
	stop(other);
	firewall_free(fw);
}

/* Without an owner it is read as of one moment or not at all. */
static void an_unowned_table_is_never_misread(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	pid_t other;
	int r;

	(void)state;
	policy.uid_count = HOLED;
	fw = load_new(&policy, false);
	other = start(commit_other_hole);
	for (unsigned int i = 0; i < 3; i++) {
		r = firewall_check(fw, &e);
		if (r != -EAGAIN && r != -ESTALE)
			fail_msg("%d: %s", r, e.text);
	}
	stop(other);
	firewall_free(fw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(loading_never_fails),
		net_test(an_owned_table_can_always_be_read),
		net_test(an_unowned_table_is_never_misread),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("concurrent", tests, NULL, NULL);
}
