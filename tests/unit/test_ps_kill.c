/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov ps`, `show` and `kill`, without a daemon.
 */
#include "tests/unit/test.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "governor/client/rows.h"
#include "tests/unit/fake.h"

static const struct guest_row rows[] = {
	{
		.id = "0123456789abcdef",
		.name = "job",
		.command = "python3 out.py",
		.state = GUEST_RUNNING,
		.uid = 90000,
		.caller_uid = 0,
		.main_pid = 77,
		.memory_bytes = 12 << 20,
		.memory_peak = 20 << 20,
		.pids = 3,
		.cpu_usec = 12500000,
		.limits = { .value = { 64 << 20, 0, USEC_PER_SEC / 2, 128, 600 * USEC_PER_SEC,
				       LIMIT_INFINITY, LIMIT_UNSET, 1 << 20, LIMIT_INFINITY } },
		.profile = "drop",
		.cgroup = "/sys/fs/cgroup/x/harpe-0123456789abcdef.scope",
	},
	{
		.id = "fedcba9876543210",
		.command = "x\x1b[2J",
		.state = GUEST_WAITING,
		.caller_uid = 4000000000,
		.memory_bytes = UINT64_MAX,
		.memory_peak = UINT64_MAX,
		.pids = UINT64_MAX,
		.cpu_usec = UINT64_MAX,
		.limits = { .value = { [0 ... LIMIT_COUNT - 1] = LIMIT_INFINITY } },
	},
	{
		.id = "00000000000000aa",
		.state = GUEST_WARM,
		.uid = 90001,
		.caller_uid = ROW_NO_CALLER,
		.limits = { .value = { 64 << 20 } },
		.profile = "drop",
		.cgroup = "/sys/fs/cgroup/x/harpe-00000000000000aa.scope",
	},
};

static void send_rows(struct call *call, const struct guest_row *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		WIRE_BUFFER(buf);
		struct guest_row row = list[i];
		ssize_t len;

		if (row.main_pid)
			row.started_usec = ((uint64_t)time(NULL) - 90) * USEC_PER_SEC;
		len = wire_encode(WIRE_GUEST, guest_row_fields, guest_row_n_fields, &row, buf,
				  sizeof(buf));
		assert_int_equal(wire_send(call->sock, buf, (size_t)len, NULL, 0), 0);
	}
	fake_answer(call->sock, WIRE_DONE, n, "");
}

/* @target NULL: whichever. */
static void play_rows_of(const struct fake *f, const char *target, const struct guest_row *list,
			 size_t n)
{
	struct call call;

	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_PS);
	if (target)
		assert_string_equal(call.request.target, target);
	send_rows(&call, list, n);
	fake_drop(&call);
}

/* Runs a verb that shows, against the first @n rows. */
static void play(const struct fake *f, struct client *c, const struct verb *verb,
		 const char *const args[], size_t n, int status)
{
	struct call call;

	client_start(c, f, verb, args, NULL);
	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_PS);
	assert_int_equal(call.request.brief, verb == &verb_ps && !args[0]); /* the table */
	send_rows(&call, rows, n);
	client_expect(c, status);
	fake_drop(&call);
}

static void play_ps(const struct fake *f, struct client *c, const char *const args[], size_t n)
{
	play(f, c, &verb_ps, args, n, 0);
	assert_string_equal(c->err_text, "");
}

/* The start, and the age: a second may have passed. */
static void hide_times(char *text)
{
	char *age = strstr(text, "91s"), *started = strstr(text, "started    ");

	if (age)
		memcpy(age, "90s", 3);
	if (!started)
		return;
	started += strlen("started    ");
	memmove(started + 4, strchr(started, '\n'), strlen(strchr(started, '\n')) + 1);
	memcpy(started, "----", 4);
}

static void lists_nothing(void **state)
{
	struct client c;

	play_ps(*state, &c, ARGS(NULL), 0);
	assert_string_equal(c.out_text, "ID  NAME  CALLER  UID  STATE  AGE  MEMORY  COMMAND\n");
}

static void lists_guests(void **state)
{
	struct client c;

	play_ps(*state, &c, ARGS(NULL), 2);
	hide_times(c.out_text);
	assert_string_equal(
		c.out_text,
		"ID                NAME  CALLER      UID    STATE    AGE  MEMORY      COMMAND\n"
		"0123456789abcdef  job   root        90000  running  90s  12M/64M     python3 "
		"out.py\n"
		"fedcba9876543210  -     4000000000  -      waiting  -    ?/infinity  "
		"x\\x1b[2J\n");
}

/* It is nobody's yet. */
static void lists_warm_slots(void **state)
{
	struct client c;
	json_t *json, *slot;

	play_ps(*state, &c, ARGS(NULL), 3);
	assert_mentions(c.out_text,
			"00000000000000aa  -     -           90001  warm     -    0/64M       -\n",
			"", "");
	play_ps(*state, &c, ARGS("--json"), 3);
	json = json_loads(c.out_text, JSON_REJECT_DUPLICATES, NULL);
	slot = json_array_get(json_object_get(json, "guests"), 2);
	assert_string_equal(json_string_value(json_object_get(slot, "state")), "warm");
	assert_true(json_is_null(json_object_get(slot, "caller_uid")));
	assert_int_equal(json_integer_value(json_object_get(slot, "uid")), 90001);
	json_decref(json);
	play(*state, &c, &verb_show, ARGS("00000000000000aa"), 3, 0);
	assert_mentions(c.out_text, "state      warm\ncaller     -\nuid        90001\n", "", "");
}

static void lists_json(void **state)
{
	struct client c;
	json_t *json, *guests, *guest;

	play_ps(*state, &c, ARGS("--json"), 2);
	json = json_loads(c.out_text, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_integer_value(json_object_get(json, "schema")), 1);
	guests = json_object_get(json, "guests");
	assert_int_equal(json_array_size(guests), 2);
	guest = json_array_get(guests, 0);
	assert_string_equal(json_string_value(json_object_get(guest, "name")), "job");
	assert_string_equal(json_string_value(json_object_get(guest, "state")), "running");
	assert_int_equal(json_integer_value(json_object_get(guest, "memory_bytes")), 12 << 20);
	guest = json_array_get(guests, 1);
	assert_true(json_is_null(json_object_get(guest, "name")));
	assert_true(json_is_null(json_object_get(guest, "uid")));
	assert_true(json_is_null(json_object_get(guest, "main_pid")));
	assert_true(json_is_null(json_object_get(guest, "cgroup")));
	assert_true(json_is_null(json_object_get(guest, "cpu_usec")));
	assert_true(json_is_null(json_object_get(guest, "started_usec")));
	assert_true(json_is_null(json_object_get(guest, "memory_bytes")));
	assert_string_equal(json_string_value(json_object_get(guest, "memory_max_bytes")), "max");
	json_decref(json);
	play_ps(*state, &c, ARGS("--json"), 0);
	assert_string_equal(c.out_text, "{\"schema\":1,\"guests\":[]}\n");
}

/* A scope that waits for a guest is nobody's yet. */
static void lists_what_has_no_caller(void **state)
{
	const struct guest_row warm = { .id = "0123456789abcdef",
					.state = GUEST_WARM,
					.uid = 90001,
					.caller_uid = (uint32_t)-1 };
	struct client c;

	client_start(&c, *state, &verb_ps, ARGS(NULL), NULL);
	play_rows_of(*state, "", &warm, 1);
	client_expect(&c, 0);
	assert_string_equal(c.out_text,
			    "ID                NAME  CALLER  UID    STATE  AGE  MEMORY  COMMAND\n"
			    "0123456789abcdef  -     -       90001  warm   -    0/0     -\n");
	client_start(&c, *state, &verb_ps, ARGS("--json"), NULL);
	play_rows_of(*state, "", &warm, 1);
	client_expect(&c, 0);
	assert_non_null(strstr(c.out_text, "\"caller_uid\":null,"));
	client_start(&c, *state, &verb_show, ARGS(warm.id), NULL);
	play_rows_of(*state, warm.id, &warm, 1);
	client_expect(&c, 0);
	assert_non_null(strstr(c.out_text, "\ncaller     -\n"));
}

static void documents_its_json(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.1.scd");
	struct client c;
	const char *key;
	json_t *json, *value;

	play_ps(*state, &c, ARGS("--json"), 1);
	json = json_loads(c.out_text, 0, NULL);
	json_object_foreach(json_array_get(json_object_get(json, "guests"), 0), key, value)
		assert_mentions(page, "_", key, "_");
	json_decref(json);
}

static void never_takes_half_a_list_for_a_list(void **state)
{
	struct client c;
	struct call call;

	client_start(&c, *state, &verb_ps, ARGS(NULL), NULL);
	fake_take(*state, &call);
	fake_drop(&call);
	client_expect(&c, 1);
	assert_string_equal(c.out_text, "");
	assert_string_equal(c.err_text, "harpe-gov: the daemon closed the connection\n");
	client_start(&c, *state, &verb_ps, ARGS(NULL), NULL);
	fake_take(*state, &call);
	fake_answer(call.sock, WIRE_REFUSED, 0, "no");
	client_expect(&c, 1);
	fake_drop(&call);
	assert_string_equal(c.err_text, "harpe-gov: no\n");
}

/* ---- show ---- */

static void shows_what_is_known(void **state)
{
	struct client c;

	play(*state, &c, &verb_show, ARGS("job"), 2, 0);
	hide_times(c.out_text);
	assert_string_equal(c.out_text, "id         0123456789abcdef\n"
					"name       job\n"
					"command    python3 out.py\n"
					"state      running\n"
					"caller     root (0)\n"
					"uid        90000\n"
					"main pid   77\n"
					"started    ----\n"
					"profile    drop\n"
					"scope      harpe-0123456789abcdef.scope\n"
					"cgroup     /sys/fs/cgroup/x/harpe-0123456789abcdef.scope\n"
					"\n"
					"LIMIT      IN FORCE   USED\n"
					"memory     64M        12M (peak 20M)\n"
					"swap       0          -\n"
					"cpu        50%        -\n"
					"pids       128        3\n"
					"time       10min      90s\n"
					"cpu-time   infinity   12.5s\n"
					"io-weight  -          -\n"
					"io-read    1M         -\n"
					"io-write   infinity   -\n");
	assert_string_equal(c.err_text, "");
}

static void shows_what_is_not_known_yet(void **state)
{
	struct client c;

	play(*state, &c, &verb_show, ARGS("fedcba9876543210"), 2, 0);
	assert_string_equal(c.out_text, "id         fedcba9876543210\n"
					"name       -\n"
					"command    x\\x1b[2J\n"
					"state      waiting\n"
					"caller     4000000000\n"
					"uid        -\n"
					"main pid   -\n"
					"started    -\n"
					"profile    -\n"
					"scope      -\n"
					"cgroup     -\n"
					"\n"
					"LIMIT      IN FORCE   USED\n"
					"memory     infinity   -\n"
					"swap       infinity   -\n"
					"cpu        infinity   -\n"
					"pids       infinity   -\n"
					"time       infinity   -\n"
					"cpu-time   infinity   -\n"
					"io-weight  infinity   -\n"
					"io-read    infinity   -\n"
					"io-write   infinity   -\n");
}

/* A guest of somebody else's is in no list. */
static void shows_nothing_else(void **state)
{
	struct client c;

	play(*state, &c, &verb_show, ARGS("job", "other", "../x\x1b"), 1, 1);
	assert_int_equal(strncmp(c.out_text, "id         0123456789abcdef\n", 28), 0);
	assert_string_equal(c.err_text, "harpe-gov: there is no guest \"other\"\n"
					"harpe-gov: there is no guest \"../x\\x1b\"\n");
	play(*state, &c, &verb_show, ARGS("other"), 2, 1);
	assert_string_equal(c.out_text, "");
}

static void shows_json(void **state)
{
	json_t *json, *guests, *guest;
	struct client c;

	play(*state, &c, &verb_show, ARGS("--json", "job"), 2, 0);
	json = json_loads(c.out_text, JSON_REJECT_DUPLICATES, NULL);
	guests = json_object_get(json, "guests");
	assert_int_equal(json_array_size(guests), 1);
	guest = json_array_get(guests, 0);
	assert_string_equal(json_string_value(json_object_get(guest, "id")), "0123456789abcdef");
	assert_string_equal(json_string_value(json_object_get(guest, "scope")),
			    "harpe-0123456789abcdef.scope");
	assert_int_equal(json_integer_value(json_object_get(guest, "cpu_usec")), 12500000);
	guest = json_object_get(guest, "limits");
	assert_int_equal(json_integer_value(json_object_get(guest, "pids")), 128);
	assert_string_equal(json_string_value(json_object_get(guest, "cpu_time_usec")), "max");
	assert_true(json_is_null(json_object_get(guest, "io_weight")));
	json_decref(json);
}

/* ---- kill ---- */

static void play_rows(const struct fake *f, const struct guest_row *list, size_t n)
{
	play_rows_of(f, NULL, list, n);
}

static void play_kill(const struct fake *f, const char *target)
{
	struct call call;

	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_KILL);
	assert_int_equal(call.n_fds, 0);
	assert_string_equal(call.request.target, target);
	fake_answer(call.sock, WIRE_DONE, 1, "");
	fake_drop(&call);
}

static void kills(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("fedcba9876543210", "job"), NULL);
	play_rows(*state, rows, 2);
	play_kill(*state, "fedcba9876543210");
	play_kill(*state, "job");
	play_rows(*state, NULL, 0);
	play_rows(*state, NULL, 0);
	client_expect(&c, 0);
	assert_string_equal(c.err_text, "");
	client_start(&c, *state, &verb_kill, ARGS("--all"), NULL);
	play_rows(*state, NULL, 0);
	play_kill(*state, "");
	client_expect(&c, 0);
	assert_string_equal(c.err_text, "");
}

/* For those that were meant, however long: others do not matter, even of the same name. */
static void waits_until_they_are_gone(void **state)
{
	struct guest_row newer = rows[0];
	struct client c;

	strcpy(newer.id, "1111111111111111");
	client_start(&c, *state, &verb_kill, ARGS("job"), NULL);
	play_rows(*state, rows, 2);
	play_kill(*state, "job");
	for (int i = 0; i < 3; i++) {
		play_rows(*state, rows, 2);
		assert_int_equal(waitpid(c.pid, NULL, WNOHANG), 0);
	}
	play_rows(*state, (struct guest_row[]){ newer, rows[1] }, 2);
	client_expect(&c, 0);
	client_start(&c, *state, &verb_kill, ARGS("--all"), NULL);
	play_rows_of(*state, "", rows, 2);
	play_kill(*state, "");
	play_rows_of(*state, rows[1].id, rows + 1, 1);
	play_rows_of(*state, rows[1].id, NULL, 0);
	play_rows_of(*state, "", (struct guest_row[]){ rows[0], newer }, 2);
	strcpy(newer.name, rows[0].id);
	play_rows_of(*state, rows[0].id, &newer, 1);
	client_expect(&c, 0);
}

/* In place of libc's: the client's only clock. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	return 0;
}

/* Only @row is there, whatever is looked for: it alone, and in the end all. */
static void play_until_all(const struct fake *f, const struct guest_row *row)
{
	struct call call;
	int n = 0;

	do {
		fake_take(f, &call);
		assert_int_equal(call.type, WIRE_PS);
		send_rows(&call, row, 1);
		fake_drop(&call);
		n++;
	} while (strcmp(call.request.target, row->id) == 0);
	assert_string_equal(call.request.target, "");
	assert_in_range(n, 50, 500);
}

static void waits_as_long_as_some_go(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("--all"), NULL);
	play_rows(*state, rows, 2);
	play_kill(*state, "");
	play_until_all(*state, &rows[1]); /* the other is gone */
	play_until_all(*state, &rows[1]);
	client_expect(&c, 1);
	assert_string_equal(c.err_text,
			    "harpe-gov: guest fedcba9876543210 has not gone within 15 s, it is "
			    "waiting: see \"harpe-gov ps\"\n");
}

static void waits_for_nobody_when_told_so(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("--no-wait", "job"), NULL);
	play_rows(*state, rows, 2);
	play_kill(*state, "job");
	client_expect(&c, 0);
}

/* They are not waited for, nor killed by name. */
static void leaves_warm_slots_alone(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("--all"), NULL);
	play_rows(*state, rows, 3);
	play_kill(*state, "");
	play_rows(*state, NULL, 0);
	play_rows(*state, rows + 2, 1);
	client_expect(&c, 0);
	client_start(&c, *state, &verb_kill, ARGS("00000000000000aa"), NULL);
	play_rows(*state, rows + 2, 1);
	client_expect(&c, 1);
	assert_string_equal(c.err_text, "harpe-gov: there is no guest \"00000000000000aa\"\n");
}

static void says_what_it_did_not_find(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("a", "../b", "job"), NULL);
	play_rows(*state, rows, 1);
	play_kill(*state, "job");
	play_rows(*state, NULL, 0);
	client_expect(&c, 1);
	assert_string_equal(c.err_text, "harpe-gov: there is no guest \"a\"\n"
					"harpe-gov: there is no guest \"../b\"\n");
}

static void says_why_it_may_not(void **state)
{
	struct client c;
	struct call call;

	client_start(&c, *state, &verb_kill, ARGS("job"), NULL);
	play_rows(*state, rows, 1);
	fake_take(*state, &call);
	fake_answer(call.sock, WIRE_REFUSED, 0, "not yours");
	client_expect(&c, 1);
	fake_drop(&call);
	assert_string_equal(c.err_text, "harpe-gov: not yours\n");
}

#define FAKE_TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(lists_nothing),
		FAKE_TEST(lists_guests),
		FAKE_TEST(lists_warm_slots),
		FAKE_TEST(lists_json),
		FAKE_TEST(lists_what_has_no_caller),
		FAKE_TEST(documents_its_json),
		FAKE_TEST(never_takes_half_a_list_for_a_list),
		FAKE_TEST(shows_what_is_known),
		FAKE_TEST(shows_what_is_not_known_yet),
		FAKE_TEST(shows_nothing_else),
		FAKE_TEST(shows_json),
		FAKE_TEST(kills),
		FAKE_TEST(waits_until_they_are_gone),
		FAKE_TEST(waits_as_long_as_some_go),
		FAKE_TEST(waits_for_nobody_when_told_so),
		FAKE_TEST(leaves_warm_slots_alone),
		FAKE_TEST(says_what_it_did_not_find),
		FAKE_TEST(says_why_it_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
