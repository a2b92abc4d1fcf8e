/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov ps` and `harpe-gov kill`, without a daemon.
 */
#include "tests/unit/test.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

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
		.memory_max = 64 << 20,
	},
	{
		.id = "fedcba9876543210",
		.command = "x\x1b[2J",
		.state = GUEST_STARTING,
		.uid = 90001,
		.caller_uid = 4000000000,
		.memory_bytes = UINT64_MAX,
		.memory_max = LIMIT_INFINITY,
	},
};

static void send_rows(struct call *call, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		WIRE_BUFFER(buf);
		struct guest_row row = rows[i];
		ssize_t len;

		if (row.main_pid)
			row.started_usec = ((uint64_t)time(NULL) - 90) * USEC_PER_SEC;
		len = wire_encode(WIRE_GUEST, guest_row_fields, guest_row_n_fields, &row, buf,
				  sizeof(buf));
		assert_int_equal(wire_send(call->sock, buf, (size_t)len, NULL, 0), 0);
	}
	fake_answer(call->sock, WIRE_DONE, n, "");
}

/* Runs ps against @n rows. */
static void play_ps(const struct fake *f, struct client *c, const char *const args[], size_t n)
{
	struct call call;

	client_start(c, f, &verb_ps, args, NULL);
	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_PS);
	send_rows(&call, n);
	client_expect(c, 0);
	fake_drop(&call);
	assert_string_equal(c->err_text, "");
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
	char *age;

	play_ps(*state, &c, ARGS(NULL), 2);
	age = strstr(c.out_text, "91s"); /* a second may have passed */
	if (age)
		memcpy(age, "90s", 3);
	assert_string_equal(
		c.out_text,
		"ID                NAME  CALLER      UID    STATE     AGE  MEMORY      COMMAND\n"
		"0123456789abcdef  job   root        90000  running   90s  12M/64M     python3 "
		"out.py\n"
		"fedcba9876543210  -     4000000000  90001  starting  -    ?/infinity  "
		"x\\x1b[2J\n");
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
	assert_true(json_is_null(json_object_get(guest, "main_pid")));
	assert_true(json_is_null(json_object_get(guest, "started_usec")));
	assert_true(json_is_null(json_object_get(guest, "memory_bytes")));
	assert_string_equal(json_string_value(json_object_get(guest, "memory_max_bytes")), "max");
	json_decref(json);
	play_ps(*state, &c, ARGS("--json"), 0);
	assert_string_equal(c.out_text, "{\"schema\":1,\"guests\":[]}\n");
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

/* Answers one kill with @count. */
static void play_kill(const struct fake *f, const char *target, uint64_t count)
{
	struct call call;

	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_KILL);
	assert_int_equal(call.n_fds, 0);
	assert_string_equal(call.request.target, target);
	fake_answer(call.sock, WIRE_DONE, count, "");
	fake_drop(&call);
}

static void kills(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("a", "b"), NULL);
	play_kill(*state, "a", 1);
	play_kill(*state, "b", 2);
	client_expect(&c, 0);
	assert_string_equal(c.err_text, "");
	client_start(&c, *state, &verb_kill, ARGS("--all"), NULL);
	play_kill(*state, "", 0);
	client_expect(&c, 0);
	assert_string_equal(c.err_text, "");
}

static void says_what_it_did_not_find(void **state)
{
	struct client c;

	client_start(&c, *state, &verb_kill, ARGS("a", "../b", "c"), NULL);
	play_kill(*state, "a", 0);
	play_kill(*state, "c", 1);
	client_expect(&c, 1);
	assert_string_equal(c.err_text, "harpe-gov: there is no guest \"a\"\n"
					"harpe-gov: there is no guest \"../b\"\n");
}

static void says_why_it_may_not(void **state)
{
	struct client c;
	struct call call;

	client_start(&c, *state, &verb_kill, ARGS("a"), NULL);
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
		FAKE_TEST(lists_json),
		FAKE_TEST(documents_its_json),
		FAKE_TEST(never_takes_half_a_list_for_a_list),
		FAKE_TEST(kills),
		FAKE_TEST(says_what_it_did_not_find),
		FAKE_TEST(says_why_it_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
