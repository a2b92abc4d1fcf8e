/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose drops are whose, with the firewall played by the test. */
#include "tests/unit/test.h"

#include <errno.h>

#include "governor/daemon/drops.h"

enum { UID = 90001, SCOPE = 4711 };

/* What the table has, FIREWALL_UNKNOWN: it cannot be asked. */
static uint64_t of_uid, of_scope;

static int say(uint64_t packets, uint64_t *ret_packets)
{
	if (packets == FIREWALL_UNKNOWN)
		return -ENOENT;
	*ret_packets = packets;
	return 0;
}

int firewall_uid_drops(struct firewall *fw, uint32_t uid, uint64_t *ret_packets, struct error *e)
{
	(void)fw;
	(void)e;
	assert_int_equal(uid, UID);
	return say(of_uid, ret_packets);
}

int firewall_stray_drops(struct firewall *fw, uint64_t scope_id, uint64_t *ret_packets,
			 struct error *e)
{
	(void)fw;
	(void)e;
	assert_int_equal(scope_id, SCOPE);
	return say(of_scope, ret_packets);
}

static struct daemon d;
static struct run run;

static int set_up(void **state)
{
	(void)state;
	run = (struct run){ .d = &d, .has_scope = true, .uid = UID, .scope_id = SCOPE };
	report_clear(&run.report);
	d.runs = &run;
	of_uid = 100;
	of_scope = 10;
	return 0;
}

static void begin(bool served)
{
	run.served = served;
	drops_begin(&run);
	run.started_usec = 1;
}

static void assert_counts(uint64_t uid, uint64_t scope)
{
	drops_count(&run);
	assert_int_equal(run.report.drops_uid, uid);
	assert_int_equal(run.report.drops_slice, scope);
}

static void counts_what_was_added(void **state)
{
	(void)state;
	begin(true);
	of_uid += 3;
	of_scope += 2;
	assert_counts(3, 2);
}

static void a_new_scope_had_none(void **state)
{
	(void)state;
	of_scope = 0;
	begin(false);
	of_scope = 7;
	assert_counts(0, 7);
}

static void counts_nothing_of_who_did_not_run(void **state)
{
	(void)state;
	drops_begin(&run);
	of_uid += 3;
	assert_counts(REPORT_UNKNOWN, REPORT_UNKNOWN);
}

static void does_not_guess(void **state)
{
	(void)state;
	of_uid = FIREWALL_UNKNOWN; /* it has no beginning */
	begin(true);
	of_uid = 100;
	of_scope = FIREWALL_UNKNOWN;
	assert_counts(REPORT_UNKNOWN, REPORT_UNKNOWN);
	drops_look(&d);
	of_scope = 0;
	drops_begin_anew(&d); /* which does not make it known */
	assert_counts(REPORT_UNKNOWN, REPORT_UNKNOWN);
}

static void outlives_the_table(void **state)
{
	(void)state;
	begin(true);
	of_uid += 3;
	of_scope += 2;
	drops_look(&d);
	of_uid = 0;
	of_scope = 0;
	drops_begin_anew(&d);
	of_uid += 4;
	of_scope += 1;
	assert_counts(7, 3);
}

static void is_counted_once_when_the_table_stays(void **state)
{
	(void)state;
	begin(true);
	of_uid += 3;
	drops_look(&d); /* and then it could not be replaced */
	of_uid += 1;
	drops_look(&d);
	assert_counts(4, 0);
}

static void has_nothing_of_before_it_ran(void **state)
{
	(void)state;
	drops_begin(&run);
	drops_look(&d);
	of_uid = 2;
	drops_begin_anew(&d);
	run.started_usec = 1;
	assert_counts(2, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(counts_what_was_added, set_up),
		cmocka_unit_test_setup(a_new_scope_had_none, set_up),
		cmocka_unit_test_setup(counts_nothing_of_who_did_not_run, set_up),
		cmocka_unit_test_setup(does_not_guess, set_up),
		cmocka_unit_test_setup(outlives_the_table, set_up),
		cmocka_unit_test_setup(is_counted_once_when_the_table_stays, set_up),
		cmocka_unit_test_setup(has_nothing_of_before_it_ran, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
