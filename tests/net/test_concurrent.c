/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Another program commits all the time.
 */
#include "tests/net/net.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/net/golden.h"

#define LOADS 200

static pid_t start_committing(void)
{
	static const char loop[] =
		"while :; do printf 'table inet other { set s { type uid; elements = { 1, 2 } }\\n"
		"chain c { type filter hook output priority 0; meta skuid @s accept; }\\n}\\n"
		"delete table inet other\\n' | nft -f - || exit 1; done";
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", loop, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Still running, that is: its nft never failed either. */
static void stop_committing(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void load_many(const struct firewall_policy *policy, unsigned int loads)
{
	struct firewall *fw = load_new(policy, true);
	pid_t others[2] = { start_committing(), start_committing() };
	struct error e = ERROR_NULL;
	uint32_t owner;

	for (unsigned int i = 0; i < loads; i++) {
		assert_ok(firewall_load(fw, policy, i % 4 != 0, &e), &e);
		assert_ok(firewall_check(fw, &e), &e);
		assert_ok(firewall_inspect(fw, policy, &owner, &e), &e);
	}
	stop_committing(others[0]);
	stop_committing(others[1]);
	firewall_free(fw);
}

static void loading_never_fails(void **state)
{
	struct firewall_policy policy = golden_policy;

	(void)state;
	policy.uid_count = 256;
	load_many(&policy, LOADS);
}

/* Nobody can commit to an owned table, so a long reading is as good as a short one. */
static void a_large_owned_table_can_be_read(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	pid_t other;

	(void)state;
	policy.uid_count = 20000;
	fw = load_new(&policy, true);
	other = start_committing();
	for (unsigned int i = 0; i < 20; i++)
		assert_ok(firewall_check(fw, &e), &e);
	stop_committing(other);
	firewall_free(fw);
}

/* And without an owner it is either read as of one moment or not at all. */
static void a_large_unowned_table_is_never_misread(void **state)
{
	struct firewall_policy policy = golden_policy;
	struct firewall *fw;
	struct error e = ERROR_NULL;
	pid_t other;
	int r;

	(void)state;
	policy.uid_count = 20000;
	fw = load_new(&policy, false);
	other = start_committing();
	for (unsigned int i = 0; i < 3; i++) {
		r = firewall_check(fw, &e);
		if (r != -EAGAIN)
			assert_ok(r, &e);
	}
	stop_committing(other);
	firewall_free(fw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		net_test(loading_never_fails),
		net_test(a_large_owned_table_can_be_read),
		net_test(a_large_unowned_table_is_never_misread),
	};
	int r = net_possible();

	return r ? r : cmocka_run_group_tests_name("concurrent", tests, NULL, NULL);
}
