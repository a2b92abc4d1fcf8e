/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What verify makes of what a probe says, which a hostile guest might say in its place; and that
 * the probe, the table and the manual page have the same rows.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "governor/verify/verify.h"

/* ---- lines ---- */

struct taken {
	char text[8][SAID_LINE_MAX];
	size_t n;
};

static void take(void *userdata, char *line)
{
	struct taken *t = userdata;

	assert_true(t->n < 8);
	strcpy(t->text[t->n++], line);
}

static void lines_come_in_any_pieces(void **state)
{
	static const char text[] = "a\tb\tc\n\nd\te\tf\n";

	(void)state;
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		struct said_lines l = { .used = 0 };
		struct taken t = { .n = 0 };

		for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
			size_t left = sizeof(text) - 1 - at;

			said_feed(&l, text + at, left < piece ? left : piece, take, &t);
		}
		assert_int_equal(t.n, 3);
		assert_string_equal(t.text[0], "a\tb\tc");
		assert_string_equal(t.text[1], "");
		assert_string_equal(t.text[2], "d\te\tf");
	}
}

static void a_line_that_is_too_long_is_none(void **state)
{
	struct said_lines l = { .used = 0 };
	struct taken t = { .n = 0 };
	static char text[100000];

	(void)state;
	memset(text, 'x', sizeof(text));
	said_feed(&l, text, sizeof(text), take, &t);
	said_feed(&l, "\na\tb\tc\n", 7, take, &t);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.text[0], "a\tb\tc");
}

static void what_cannot_be_shown_is_no_line(void **state)
{
	static const char *const texts[] = { "a\tdone\t\033[2J\n", "a\tdone\t\r\n",
					     "a\tdone\t\xc3\xa4\n", "a\tdone\t\x7f\n" };
	struct said_lines l = { .used = 0 };
	struct taken t = { .n = 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		said_feed(&l, texts[i], strlen(texts[i]), take, &t);
	said_feed(&l, "a\tdone\t\0\n", 9, take, &t);
	assert_int_equal(t.n, 0);
}

static void splits_at_two_tabs(void **state)
{
	static const char *const bad[] = { "",	   "\t",	 "a",
					   "a\tb", "a\tb\tc\td", "a\t123456789012345678901234\tc" };
	char line[SAID_LINE_MAX] = "network.tcp\tEPERM\t127.0.0.1 and so on";
	const char *id, *outcome, *detail;

	(void)state;
	assert_true(said_split(line, &id, &outcome, &detail));
	assert_string_equal(id, "network.tcp");
	assert_string_equal(outcome, "EPERM");
	assert_string_equal(detail, "127.0.0.1 and so on");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		strcpy(line, bad[i]);
		assert_false(said_split(line, &id, &outcome, &detail));
	}
	memset(line, 'x', sizeof(line));
	memcpy(line, "a\tb\t", 4);
	line[4 + SAID_DETAIL_MAX] = '\0';
	assert_false(said_split(line, &id, &outcome, &detail));
}

static void a_probe_says_one_thing(void **state)
{
	static const char *const ids[] = { "one", "two" };
	struct said said[2] = { 0 };
	char line[64];

	(void)state;
	assert_int_equal(said_add(strcpy(line, "two\tEPERM\tx"), ids, 2, said), 1);
	assert_int_equal(said_add(strcpy(line, "three\tdone\tx"), ids, 2, said), -1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(said_add(strcpy(line, "two\tdone\ty"), ids, 2, said), 1);
	assert_int_equal(said[0].n, 0);
	assert_int_equal(said[1].n, 2);
	assert_string_equal(said[1].outcome, "EPERM");
	assert_string_equal(said[1].detail, "x");
}

/* ---- verdicts ---- */

/* All rows, as on a host that has everything; nobody has said anything. */
static struct verify *fresh(void)
{
	struct verify *v = calloc(1, sizeof(*v));

	assert_non_null(v);
	v->net = "isolated";
	v->prepared.victim_fd = -1;
	for (int i = AIM_TARGET; i < AIM_COUNT; i++)
		strcpy(v->prepared.aim[i], "127.0.0.1/1");
	for (int i = 0; i < VERIFY_RUNS; i++)
		v->runs[i].errors = -1;
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		v->prepared.listener[i] = (struct listener){ .fd = -1, .able = true };
	verify_choose(v);
	return v;
}

static struct judgement judged(struct verify *v, const char *id, const char *outcome,
			       const char *detail)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->ids[i], id) != 0)
			continue;
		v->said[i] = (struct said){ .n = 1 };
		strcpy(v->said[i].outcome, outcome);
		strcpy(v->said[i].detail, detail);
		verify_judge(v);
		return v->judgements[i];
	}
	fail_msg("there is no check %s", id);
	return (struct judgement){ 0 };
}

static void silence_is_unknown(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	verify_judge(v);
	for (size_t i = 0; i < v->n; i++)
		if (!v->checks[i]->no_probe)
			assert_int_equal(v->judgements[i].verdict, VERDICT_UNKNOWN);
	assert_int_not_equal(verify_status(v), VERDICT_EXIT_PASS);
}

static void words_of_no_meaning_do_not_pass(void **state)
{
	static const char *const words[] = { "", "PASS", "ok", "seen", "unable", "ended" };
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < v->n; i++)
		for (size_t j = 0; j < ARRAY_SIZE(words); j++) {
			const char *id = v->ids[i];

			if (v->checks[i]->no_probe)
				continue;
			assert_int_not_equal(judged(v, id, words[j], "x").verdict, VERDICT_PASS);
		}
}

static const struct {
	const char *id, *outcome, *detail;
	enum verdict verdict;
} sayings[] = {
	{ "files.shadow", "EACCES", "/etc/shadow", VERDICT_PASS },
	{ "files.shadow", "done", "/etc/shadow", VERDICT_FAIL },
	{ "sockets.smc", "EPERM", "", VERDICT_PASS },
	{ "sockets.smc", "EAFNOSUPPORT", "", VERDICT_FAIL },
	{ "sockets.smc", "done", "", VERDICT_FAIL },
	{ "network.join6", "EAFNOSUPPORT", "socket", VERDICT_PASS },
	{ "syscalls.i386", "killed", "signal 11", VERDICT_PASS },
	{ "syscalls.i386", "done", "", VERDICT_FAIL },
	{ "syscalls.pointer-flags", "ENOSYS", "", VERDICT_PASS },
	{ "syscalls.pointer-flags", "EPERM", "", VERDICT_FAIL },
	{ "files.own", "ENOENT", "", VERDICT_FAIL },
	{ "names.dns", "nothing", "127.0.0.53", VERDICT_UNKNOWN },
	{ "names.resolver", "answer", "no such name", VERDICT_UNKNOWN },
	{ "identity.groups", "seen", "Groups:", VERDICT_PASS },
	{ "identity.groups", "seen", "Groups: 27", VERDICT_FAIL },
	{ "identity.capabilities", "seen", "CapInh: 0000 CapEff: 0000", VERDICT_PASS },
	{ "identity.capabilities", "seen", "CapInh: 0000 CapEff: 0400", VERDICT_FAIL },
	{ "identity.capabilities", "seen", "CapInh: CapEff:", VERDICT_FAIL },
	{ "identity.ids", "seen", "Uid: 9 9 9 9 Gid: 9 9 9 9", VERDICT_PASS },
	{ "identity.ids", "seen", "Uid: 9 9 9 0 Gid: 9 9 9 9", VERDICT_FAIL },
	{ "identity.ids", "seen", "Uid: 0 0 0 0 Gid: 0 0 0 0", VERDICT_FAIL },
	{ "identity.descriptors", "seen", "1 7 ", VERDICT_FAIL },
	{ "processes.signal-all", "done", "", VERDICT_PASS },
	{ "processes.signal-all", "unsafe", "", VERDICT_FAIL },
	{ "limits.pids", "EAGAIN", "14", VERDICT_PASS },
	{ "limits.pids", "EAGAIN", "100", VERDICT_FAIL },
	{ "limits.pids", "done", "512", VERDICT_FAIL },
};

static void judges_what_is_said(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sayings); i++) {
		struct judgement j =
			judged(v, sayings[i].id, sayings[i].outcome, sayings[i].detail);

		if (j.verdict != sayings[i].verdict)
			fail_msg("%s %s %s: %s", sayings[i].id, sayings[i].outcome,
				 sayings[i].detail, verdict_names[j.verdict]);
	}
}

static void what_arrives_counts_whatever_is_said(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		v->prepared.listener[i].heard = 1;
	assert_int_equal(judged(v, "network.udp", "EPERM", "x").verdict, VERDICT_FAIL);
	v->has_allowances = true;
	assert_int_equal(judged(v, "network.udp", "EPERM", "x").verdict, VERDICT_UNKNOWN);
}

static void a_deaf_listener_proves_nothing(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	assert_int_equal(judged(v, "network.udp", "EPERM", "x").verdict, VERDICT_PASS);
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		v->prepared.listener[i].able = false;
	assert_int_equal(judged(v, "network.udp", "EPERM", "x").verdict, VERDICT_UNKNOWN);
}

static void what_was_not_prepared_is_unknown(void **state)
{
	_cleanup_free_ struct verify *v = fresh();
	struct judgement j;

	(void)state;
	strcpy(v->prepared.why_not[AIM_HOME], "no home");
	j = judged(v, "files.home", "EACCES", "x");
	assert_int_equal(j.verdict, VERDICT_UNKNOWN);
	assert_string_equal(j.seen, "no home");
}

static void saying_it_twice_is_unknown(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < v->n; i++) {
		v->said[i] = (struct said){ .outcome = "EPERM", .n = 2 };
		v->prepared.listener[0].able = true;
	}
	verify_judge(v);
	for (size_t i = 0; i < v->n; i++)
		if (!v->checks[i]->no_probe)
			assert_int_equal(v->judgements[i].verdict, VERDICT_UNKNOWN);
}

static void a_limit_ends_its_guest(void **state)
{
	static const struct {
		const char *ended_by;
		bool ended;
		enum verdict verdict;
	} ends[] = {
		{ "memory", true, VERDICT_PASS },
		{ "exited", true, VERDICT_FAIL },
		{ "", true, VERDICT_FAIL },
		{ "", false, VERDICT_FAIL },
	};
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		strcpy(v->runs[RUN_MEMORY].ended_by, ends[i].ended_by);
		v->runs[RUN_MEMORY].ended = ends[i].ended;
		assert_int_equal(judged(v, "limits.memory", "begun", "").verdict, ends[i].verdict);
	}
}

static void the_worst_counts(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	for (size_t i = 0; i < v->n; i++)
		v->judgements[i].verdict = VERDICT_PASS;
	assert_int_equal(verify_status(v), VERDICT_EXIT_PASS);
	v->judgements[1].verdict = VERDICT_UNKNOWN;
	assert_int_equal(verify_status(v), VERDICT_EXIT_UNKNOWN);
	v->judgements[2].verdict = VERDICT_FAIL;
	assert_int_equal(verify_status(v), VERDICT_EXIT_FAIL);
	v->n = 0;
	assert_int_equal(verify_status(v), VERDICT_EXIT_UNKNOWN);
}

/* ---- the same rows everywhere ---- */

static bool has_row(const struct verify *v, const char *id)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->ids[i], id) == 0)
			return !v->checks[i]->no_probe;
	return false;
}

static void the_probe_has_every_row_and_no_other(void **state)
{
	_cleanup_free_ struct verify *v = fresh();
	char command[512], line[64];
	char list[16384] = "\n";
	FILE *p;

	(void)state;
	snprintf(command, sizeof(command), "'%s' --list", getenv("HARPE_GOV_PROBE"));
	p = popen(command, "r");
	assert_non_null(p);
	assert_true(fread(list + 1, 1, sizeof(list) - 2, p) > 0);
	assert_int_equal(pclose(p), 0);
	for (size_t i = 0; i < v->n; i++) {
		snprintf(line, sizeof(line), "\n%s\n", v->ids[i]);
		if (!v->checks[i]->no_probe && !strstr(list, line))
			fail_msg("the probe has no %s", v->ids[i]);
	}
	for (char *id = strtok(list, "\n"); id; id = strtok(NULL, "\n"))
		if (!has_row(v, id))
			fail_msg("nobody asks the probe for %s", id);
}

static void every_row_is_one_of_its_own(void **state)
{
	_cleanup_free_ struct verify *v = fresh();

	(void)state;
	assert_true(v->n >= 60);
	for (size_t i = 0; i < v->n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(v->ids[i], v->ids[j]);
}

static void the_page_has_every_boundary(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.1.scd");

	(void)state;
	for (size_t i = 0; i < verify_n_areas; i++)
		assert_mentions(page, "\n_", verify_areas[i].boundary, "_\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_in_any_pieces),
		cmocka_unit_test(a_line_that_is_too_long_is_none),
		cmocka_unit_test(what_cannot_be_shown_is_no_line),
		cmocka_unit_test(splits_at_two_tabs),
		cmocka_unit_test(a_probe_says_one_thing),
		cmocka_unit_test(silence_is_unknown),
		cmocka_unit_test(words_of_no_meaning_do_not_pass),
		cmocka_unit_test(judges_what_is_said),
		cmocka_unit_test(what_arrives_counts_whatever_is_said),
		cmocka_unit_test(a_deaf_listener_proves_nothing),
		cmocka_unit_test(what_was_not_prepared_is_unknown),
		cmocka_unit_test(saying_it_twice_is_unknown),
		cmocka_unit_test(a_limit_ends_its_guest),
		cmocka_unit_test(the_worst_counts),
		cmocka_unit_test(the_probe_has_every_row_and_no_other),
		cmocka_unit_test(every_row_is_one_of_its_own),
		cmocka_unit_test(the_page_has_every_boundary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
