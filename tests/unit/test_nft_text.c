/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules as text, what differs between two texts, and what is said of values that are known in part;
 * without a kernel.
 */
#include "tests/unit/test.h"

#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "nft/lookup.h"
#include "nft/text.h"
#include "nft/text_diff.h"
#include "nft/walk.h"
#include "tests/net/golden.h"

static const struct text_cgroup cgroups[] = {
	{ GOLDEN_SLICE_ID, "harpe.slice" },
	{ GOLDEN_WEB_ID, "harpe.slice/harpe-web.slice" },
};
static const struct text_names names = { cgroups, ARRAY_SIZE(cgroups) };

static void drop_blanks(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (!strchr(" \t\n", *from))
			*to++ = *from;
	*to = '\0';
}

/* Every line of the golden text that is a rule. */
static void rules_are_as_nft_lists_them(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_free_ char *text = NULL;
	const struct text_names none = { NULL, 0 };
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(foreign_put_wanted(&f, &golden_policy, NULL), 0);
	text_table(out, &f, &f.tables[0], &none, false);
	fclose(out);
	drop_blanks(text);
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
		char wanted[1024];

		if (!strstr(golden[i].listing, "rule 1") && !strstr(golden[i].listing, "rule 2"))
			continue;
		snprintf(wanted, sizeof(wanted), "%s", golden[i].nft);
		drop_blanks(wanted);
		if (!strstr(text, wanted))
			print_error("%s\n", golden[i].nft);
		assert_non_null(strstr(text, wanted));
	}
}

static void cgroups_are_told_by_path(void **state)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(foreign_put_wanted(&f, &golden_policy, NULL), 0);
	text_table(out, &f, &f.tables[0], &names, false);
	fclose(out);
	assert_non_null(strstr(text, "level 1 \"harpe.slice\" jump guests"));
	assert_non_null(strstr(text, "\"harpe.slice/harpe-web.slice\" : jump profile_web"));
	assert_non_null(strstr(text, "144680345676153346 : jump profile_drop"));
}

/* ---- differences ---- */

static void assert_diff(const char *wanted, const char *live, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool same = false;

	assert_int_equal(text_diff(wanted, live, out, &same), 0);
	fclose(out);
	assert_string_equal(text, expected);
	assert_true(same == !(strstr(expected, "- ") || strstr(expected, "+ ")));
}

static void differences_are_marked(void **state)
{
	(void)state;
	assert_diff("", "", "");
	assert_diff("a\nb\nc\n", "a\nb\nc\n", "  a\n  b\n  c\n");
	assert_diff("a\nb\nc\n", "a\nc\n", "  a\n- b\n  c\n");
	assert_diff("a\nc\n", "a\nb\nc\n", "  a\n+ b\n  c\n");
	assert_diff("a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c\n");
	assert_diff("a\n", "", "- a\n");
	assert_diff("", "a\nb\n", "+ a\n+ b\n");
	assert_diff("a\nb\n", "b\na\n", "+ b\n  a\n- b\n");
}

static void notes_are_not_compared(void **state)
{
	(void)state;
	assert_diff("\ta\n", "\ta\t5 packets\n", "  \ta # 5 packets\n");
	assert_diff("\t\t\t1,\n\t\t\t2,\n\t\t\t3,\n\t\t\t4,\n",
		    "\t\t\t1,\tx\n\t\t\t2,\tx\n\t\t\t3,\tx\n\t\t\t4,\tx\n",
		    "  \t\t\t1, ... 4, # 4 elements, x each\n");
	assert_diff("\t\t\t1,\n\t\t\t2,\n", "\t\t\t1,\tx\n\t\t\t2,\ty\n",
		    "  \t\t\t1, # x\n  \t\t\t2, # y\n");
}

/* ---- what is known in part ---- */

static void bits_say_what_is_certain(void **state)
{
	struct bits_buffer b = { .data = { 0x0a, 0 }, .known = { 0xff, 0xf0 } };
	struct bits two = bits_part(&b, 0, 2);

	(void)state;
	assert_int_equal(bits_equal(two, "\x0a\x00"), ANSWER_MAYBE);
	assert_int_equal(bits_equal(two, "\x0a\x10"), ANSWER_NO);
	assert_int_equal(bits_within(two, "\x0a\x00", "\x0a\x0f"), ANSWER_YES);
	assert_int_equal(bits_within(two, "\x0a\x01", "\x0a\xff"), ANSWER_MAYBE);
	assert_int_equal(bits_within(two, "\x0a\x10", "\xff\xff"), ANSWER_NO);
	bits_set(two, "\x01\x02");
	assert_int_equal(bits_equal(two, "\x01\x02"), ANSWER_YES);
	bits_join(two, "\x01\x03");
	assert_int_equal(bits_equal(two, "\x01\x02"), ANSWER_MAYBE);
	assert_int_equal(bits_equal(two, "\x01\x00"), ANSWER_NO);
	assert_int_equal(bits_part(&b, BITS_MAX, 1).len, 0);
	assert_int_equal(bits_part(&b, SIZE_MAX, 2).len, 0);
}

/* ---- our own table ---- */

static enum walk_outcome outcome_of(const struct packet *p)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_(walk_free) struct walk w = WALK_NULL;

	assert_int_equal(foreign_put_wanted(&f, &golden_policy, NULL), 0);
	assert_int_equal(walk(&f, p, &w), 0);
	assert_int_equal(w.n_steps, 1);
	return w.outcome;
}

static void our_own_table_has_no_unknowns(void **state)
{
	struct packet p = {
		.family = AF_INET,
		.protocol = IPPROTO_TCP,
		.address = { 192, 0, 2, 10 },
		.port = 443,
		.uid = 90001,
		.cgroup = { [1] = GOLDEN_SLICE_ID, [2] = GOLDEN_WEB_ID },
	};

	(void)state;
	assert_int_equal(outcome_of(&p), WALK_ACCEPT);
	p.port = 444;
	assert_int_equal(outcome_of(&p), WALK_DROP);
	p.port = 443;
	p.uid = 1000;
	assert_int_equal(outcome_of(&p), WALK_DROP);
	p.cgroup[2] = GOLDEN_DROP_ID;
	assert_int_equal(outcome_of(&p), WALK_DROP);
	p.cgroup[1] = p.cgroup[2] = PACKET_ANY_CGROUP;
	assert_int_equal(outcome_of(&p), WALK_UNKNOWN);
	p.not_in = GOLDEN_SLICE_ID;
	p.not_in_level = 1;
	assert_int_equal(outcome_of(&p), WALK_ACCEPT);
	p.uid = 90002;
	assert_int_equal(outcome_of(&p), WALK_DROP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_as_nft_lists_them),
		cmocka_unit_test(cgroups_are_told_by_path),
		cmocka_unit_test(differences_are_marked),
		cmocka_unit_test(notes_are_not_compared),
		cmocka_unit_test(bits_say_what_is_certain),
		cmocka_unit_test(our_own_table_has_no_unknowns),
	};

	return cmocka_run_group_tests_name("nft/text", tests, NULL, NULL);
}
