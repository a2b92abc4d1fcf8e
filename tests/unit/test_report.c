/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "common/report.h"
#include "common/text.h"

static void fill(struct report *r)
{
	report_clear(r);
	strcpy(r->id, "0123456789abcdef");
	strcpy(r->name, "job");
	strcpy(r->command, "python3 out.py");
	strcpy(r->profile, "drop");
	r->ended = ENDED_EXITED;
	r->guest_ran = 1;
	strcpy(r->scope, "harpe-fedcba9876543210.scope"); /* of an earlier guest */
	r->exit_code = 3;
	r->uid = 90001;
	r->caller_uid = 1000;
	r->started_usec = UINT64_C(1700000000000000);
	r->wall_usec = 2000000;
	r->cpu_usec = 300;
	r->cpu_user_usec = 200;
	r->cpu_system_usec = 100;
	r->throttled_usec = 0;
	r->memory_peak = 1 << 20;
	r->memory_oom_kills = 0;
	r->memory_limit_hits = 0;
	r->pids_peak = 2;
	r->pids_refused = 0;
	r->left_processes = 1;
	r->drops_uid = 4;
	r->drops_slice = 5;
	r->swap_peak = 0;
	r->memory_anon = 40 << 20;
	r->memory_shmem = 0;
	r->memory_cache = 4096;
	r->io_read = 8192;
	r->io_written = 4096;
	r->limits = (struct limits){ { 64 << 20, 0, 500000, 128, 2000000, LIMIT_INFINITY, 50,
				       1 << 20, LIMIT_INFINITY } };
	r->asked = r->limits;
	r->asked.value[LIMIT_PIDS] = 256;
	for (int i = 0; i < LIMIT_COUNT; i++)
		strcpy(r->origins.text[i], LIMIT_BUILT_IN);
	strcpy(r->origins.text[LIMIT_PIDS], "/sys/fs/cgroup/a.slice");
}

#define DETAILS(name, asked, effective, origin)                                                    \
	"\"" name "\":{\"asked\":" asked ",\"effective\":" effective ",\"origin\":\"" origin "\"}"
#define SAME(name, value) DETAILS(name, value, value, "built in")

static void prints_json(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct report r;

	(void)state;
	fill(&r);
	text = report_json(&r);
	assert_string_equal(
		text,
		"{\"schema\":1,\"id\":\"0123456789abcdef\",\"name\":\"job\","
		"\"command\":\"python3 out.py\",\"ended\":\"exited\",\"exit_code\":3,"
		"\"signal\":null,\"guest_ran\":true,\"uid\":90001,\"caller_uid\":1000,"
		"\"profile\":\"drop\",\"scope\":\"harpe-fedcba9876543210.scope\","
		"\"started_usec\":1700000000000000,\"wall_usec\":2000000,"
		"\"cpu\":{\"usage_usec\":300,\"user_usec\":200,\"system_usec\":100,"
		"\"throttled_usec\":0},"
		"\"memory\":{\"peak_bytes\":1048576,\"oom_kills\":0,\"limit_hits\":0,"
		"\"swap_peak_bytes\":0,\"anon_bytes\":41943040,"
		"\"shmem_bytes\":0,\"cache_bytes\":4096},"
		"\"io\":{\"read_bytes\":8192,\"written_bytes\":4096},"
		"\"pids\":{\"peak\":2,\"refused_forks\":0,\"left_at_end\":1},"
		"\"drops\":{\"uid\":4,\"slice\":5,\"unroutable\":null},"
		"\"limits\":{\"memory_bytes\":67108864,\"swap_bytes\":0,"
		"\"cpu_usec_per_sec\":500000,\"pids\":128,\"time_usec\":2000000,"
		"\"cpu_time_usec\":\"max\",\"io_weight\":50,"
		"\"io_read_bytes_per_sec\":1048576,"
		"\"io_write_bytes_per_sec\":\"max\"},"
		"\"limit_details\":{" SAME("memory_bytes", "67108864") "," SAME("swap_bytes", "0") "," SAME("cpu_usec_per_sec", "500000") "," DETAILS(
			"pids", "256", "128",
			"/sys/fs/cgroup/a.slice") "," SAME("time_usec",
							   "2000000") "," SAME("cpu_time_usec",
									       "\"max\"") "," SAME("io_weight",
												   "50") "," SAME("io_read_bytes_per_sec",
														  "1048576") "," SAME("io_write_bytes_per_sec",
																      "\"max\"") "},"
																		 "\"error\":null}\n");
}

static void assert_all_null(json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		if (json_is_object(value))
			assert_all_null(value);
		else
			assert_true(json_is_null(value));
	}
}

static void prints_unknown_as_null(void **state)
{
	static const char *const known[] = { "schema", "ended", "guest_ran" };
	static const char *const groups[] = { "cpu",   "memory", "io",		 "pids",
					      "drops", "limits", "limit_details" };
	_cleanup_free_ char *text = NULL;
	struct report r;
	json_t *json;

	(void)state;
	report_clear(&r);
	text = report_json(&r);
	json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_string_equal(json_string_value(json_object_get(json, "ended")), "governor-lost");
	assert_true(json_is_false(json_object_get(json, "guest_ran")));
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		assert_true(json_object_size(json_object_get(json, groups[i])) > 0);
		assert_all_null(json_object_get(json, groups[i]));
		json_object_del(json, groups[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		json_object_del(json, known[i]);
	assert_all_null(json);
	json_decref(json);
}

static void prints_ran_unknown_as_null(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct report r;

	(void)state;
	report_clear(&r);
	r.guest_ran = REPORT_RAN_UNKNOWN;
	r.ended = ENDED_COUNT; /* from a peer of another version */
	text = report_json(&r);
	assert_non_null(strstr(text, "\"guest_ran\":null"));
	assert_non_null(strstr(text, "\"ended\":null"));
}

/* An error may hold a path, cut in the middle of a character. */
static void survives_any_text(void **state)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "caf\xc3", "caf\\xc3" },
		{ "\xff\"\n", "\\xff\"\\x0a" },
		{ "a\"b\\c\n", "a\"b\\c\\x0a" },
		{ "\xc2\x9b\u202e",
		  "\\xc2\\x9b\\xe2\\x80\\xae" }, /* --report=fd:2 is read by people */
	};
	struct report r;

	(void)state;
	report_clear(&r);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = NULL;
		json_t *json;

		strcpy(r.error, cases[i].text);
		text = report_json(&r);
		json = json_loads(text, 0, NULL);
		assert_string_equal(json_string_value(json_object_get(json, "error")),
				    cases[i].json);
		assert_int_equal(strcspn(text, "\n"), strlen(text) - 1); /* one line */
		json_decref(json);
	}
	memset(r.error, 0xff, sizeof(r.error) - 1);
	free(report_json(&r));
}

static void names_all_reasons(void **state)
{
	(void)state;
	for (int i = 0; i < ENDED_COUNT; i++)
		assert_true(ended_names[i][0]);
}

static const struct {
	enum ended ended;
	const char *sentence;
	const char *error;
	uint64_t code;
} sentences[] = {
	{ ENDED_EXITED, NULL, "", 0 },
	{ ENDED_EXITED, "the command ended: nobody knows how", "nobody knows how", REPORT_UNKNOWN },
	{ ENDED_SIGNALED, NULL, "", 0 },
	{ ENDED_MEMORY,
	  "memory limit of 64M reached: the guest was killed (2 kills by the kernel, peak 64M)", "",
	  0 },
	{ ENDED_CPU_TIME,
	  "CPU time limit of 1.5s reached: the guest was killed (used 1.51s of CPU in 2s)", "", 0 },
	{ ENDED_WALL_CLOCK,
	  "wall-clock limit of 2s reached: the guest was killed (used 1.51s of CPU)", "", 0 },
	{ ENDED_KILLED, "killed by an operator: \"harpe-gov kill\", or its scope was stopped", "",
	  0 },
	{ ENDED_CALLER_GONE, "the caller went away: the guest was killed", "", 0 },
	{ ENDED_POLICY_LOST,
	  "the firewall was no longer in force: the guest was killed: table is gone",
	  "table is gone", 0 },
	{ ENDED_SETUP_FAILED, "set-up failed, nothing ran: no uid is free", "no uid is free", 0 },
	{ ENDED_SETUP_FAILED, "nothing ran: foo: command not found", "foo: command not found",
	  127 },
	{ ENDED_GOVERNOR_STOPPED, "the governor was stopped: the guest was killed", "", 0 },
	{ ENDED_GOVERNOR_LOST,
	  "the governor died during the run: the guest is killed with it: connection closed",
	  "connection closed", 0 },
	{ ENDED_UNKILLABLE, "processes of the guest did not go away after SIGKILL", "", 0 },
};

static void says_why(void **state)
{
	char buf[2 * ERROR_TEXT_MAX];
	struct report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
		const char *sentence;

		fill(&r);
		r.ended = sentences[i].ended;
		r.exit_code = sentences[i].code;
		r.memory_oom_kills = 2;
		r.memory_limit_hits = 1;
		r.memory_peak = 64 << 20;
		r.cpu_usec = 1512345;
		r.limits.value[LIMIT_CPU_TIME] = 1500000;
		strcpy(r.error, sentences[i].error);
		sentence = report_sentence(&r, buf, sizeof(buf));
		if (sentences[i].sentence)
			assert_string_equal(sentence, sentences[i].sentence);
		else
			assert_null(sentence);
	}
	r.ended = ENDED_COUNT;
	assert_null(report_sentence(&r, buf, sizeof(buf)));
}

static void says_unknown(void **state)
{
	char buf[256], little[10];
	struct report r;

	(void)state;
	report_clear(&r);
	r.ended = ENDED_MEMORY;
	assert_string_equal(report_sentence(&r, buf, sizeof(buf)),
			    "memory limit of unknown reached: the guest was killed (unknown kills "
			    "by the kernel, peak unknown)");
	assert_string_equal(report_sentence(&r, little, sizeof(little)), "memory li");
}

static const struct {
	enum ended ended;
	uint64_t exit_code, signal;
	int status;
} statuses[] = {
	{ ENDED_EXITED, 0, REPORT_UNKNOWN, 0 },
	{ ENDED_EXITED, 255, REPORT_UNKNOWN, 255 },
	{ ENDED_EXITED, 256, REPORT_UNKNOWN, 125 },
	{ ENDED_EXITED, REPORT_UNKNOWN, REPORT_UNKNOWN, 125 },
	{ ENDED_SIGNALED, REPORT_UNKNOWN, SIGSEGV, -SIGSEGV },
	{ ENDED_SIGNALED, REPORT_UNKNOWN, 64, -64 },
	{ ENDED_SIGNALED, REPORT_UNKNOWN, 65, 125 },
	{ ENDED_SIGNALED, REPORT_UNKNOWN, 0, 125 },
	{ ENDED_SIGNALED, REPORT_UNKNOWN, REPORT_UNKNOWN, 125 },
	{ ENDED_MEMORY, REPORT_UNKNOWN, SIGKILL, 124 },
	{ ENDED_CPU_TIME, REPORT_UNKNOWN, SIGKILL, 124 },
	{ ENDED_WALL_CLOCK, REPORT_UNKNOWN, SIGKILL, 124 },
	{ ENDED_KILLED, REPORT_UNKNOWN, SIGKILL, -SIGKILL },
	{ ENDED_CALLER_GONE, REPORT_UNKNOWN, REPORT_UNKNOWN, -SIGKILL },
	{ ENDED_POLICY_LOST, REPORT_UNKNOWN, SIGKILL, 125 },
	{ ENDED_SETUP_FAILED, REPORT_UNKNOWN, REPORT_UNKNOWN, 125 },
	{ ENDED_SETUP_FAILED, 126, REPORT_UNKNOWN, 126 },
	{ ENDED_SETUP_FAILED, 127, REPORT_UNKNOWN, 127 },
	{ ENDED_SETUP_FAILED, 0, REPORT_UNKNOWN, 125 },
	{ ENDED_GOVERNOR_STOPPED, REPORT_UNKNOWN, SIGKILL, 125 },
	{ ENDED_GOVERNOR_LOST, REPORT_UNKNOWN, REPORT_UNKNOWN, 125 },
	{ ENDED_UNKILLABLE, REPORT_UNKNOWN, REPORT_UNKNOWN, 125 },
	{ ENDED_COUNT, 0, REPORT_UNKNOWN, 125 },
};

static void gives_exit_statuses(void **state)
{
	struct report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		report_clear(&r);
		r.ended = statuses[i].ended;
		r.exit_code = statuses[i].exit_code;
		r.signal = statuses[i].signal;
		if (report_exit_status(&r) != statuses[i].status)
			fail_msg("case %zu: %d", i, report_exit_status(&r));
	}
}

static void goes_over_the_wire(void **state)
{
	_cleanup_free_ char *text = NULL, *back_text = NULL;
	WIRE_BUFFER(buf);
	struct report r, back;
	ssize_t n;

	(void)state;
	fill(&r);
	memset(r.error, 'e', sizeof(r.error) - 1);
	n = wire_encode(WIRE_REPORT, report_fields, report_n_fields, &r, buf, sizeof(buf));
	assert_true(n > 0);
	report_clear(&back);
	assert_int_equal(wire_decode(report_fields, report_n_fields, buf, (size_t)n, &back, NULL),
			 0);
	text = report_json(&r);
	back_text = report_json(&back);
	assert_string_equal(text, back_text);
}

/* Every byte of the struct but padding is on the wire, so no new member can be forgotten. */
static void carries_every_member(void **state)
{
	unsigned char seen[sizeof(struct report)] = {};
	size_t missing = 0;

	(void)state;
	for (size_t i = 0; i < report_n_fields; i++)
		memset(seen + report_fields[i].offset, 1, report_fields[i].size);
	for (size_t i = 0; i < sizeof(seen); i++) {
		missing = seen[i] ? 0 : missing + 1;
		assert_true(missing < 8);
	}
}

/* ---- flat ---- */

struct taken {
	size_t n;
	char text[4096]; /* "NAME=TEXT\n" each */
};

static void take(void *userdata, const char *name, const char *text)
{
	struct taken *t = userdata;
	size_t used = strlen(t->text);

	t->n++;
	snprintf(t->text + used, sizeof(t->text) - used, "%s=%s\n", name, text);
}

static void is_flat_for_the_journal(void **state)
{
	static const char *const lines[] = {
		"SCHEMA=1\n",
		"\nID=0123456789abcdef\n",
		"\nENDED=exited\n",
		"\nGUEST_RAN=true\n",
		"\nCALLER_UID=1000\n",
		"\nCPU_THROTTLED_USEC=0\n",
		"\nMEMORY_PEAK_BYTES=1048576\n",
		"\nIO_WRITTEN_BYTES=4096\n",
		"\nLIMITS_CPU_TIME_USEC=max\n",
		"\nLIMIT_DETAILS_PIDS_ASKED=256\n",
		"\nLIMIT_DETAILS_PIDS_ORIGIN=/sys/fs/cgroup/a.slice\n",
	};
	struct taken t = { 0 };
	struct report r;

	(void)state;
	fill(&r);
	assert_int_equal(report_flat(&r, take, &t), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_non_null(strstr(t.text, lines[i]));
	assert_null(strstr(t.text, "SIGNAL=")); /* unknown: left out */
	assert_null(strstr(t.text, "ERROR="));
	t = (struct taken){ 0 };
	report_clear(&r);
	assert_int_equal(report_flat(&r, take, &t), 0);
	assert_string_equal(t.text, "SCHEMA=1\nENDED=governor-lost\nGUEST_RAN=false\n");
}

/* "*KEY*", of @object and all below. */
static void assert_documented(const char *page, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		assert_mentions(page, "*", key, "*");
		assert_documented(page, value);
	}
}

static void is_documented(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov-report.7.scd");
	_cleanup_free_ char *text = NULL;
	json_t *json;
	struct report r;

	(void)state;
	report_clear(&r);
	text = report_json(&r);
	json = json_loads(text, 0, NULL);
	assert_documented(page, json);
	json_decref(json);
	for (int i = 0; i < ENDED_COUNT; i++)
		assert_mentions(page, "\n_", ended_names[i], "_\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_json),
		cmocka_unit_test(prints_unknown_as_null),
		cmocka_unit_test(prints_ran_unknown_as_null),
		cmocka_unit_test(survives_any_text),
		cmocka_unit_test(names_all_reasons),
		cmocka_unit_test(says_why),
		cmocka_unit_test(says_unknown),
		cmocka_unit_test(gives_exit_statuses),
		cmocka_unit_test(goes_over_the_wire),
		cmocka_unit_test(carries_every_member),
		cmocka_unit_test(is_flat_for_the_journal),
		cmocka_unit_test(is_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
