/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What may go to a terminal.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/text.h"
#include "governor/client/verb.h"

static void assert_escaped(const char *text, const char *want)
{
	char shown[256];

	assert_string_equal(text_escape(text, shown, sizeof(shown)), want);
	assert_int_equal(text_printable(text), strcmp(text, want) == 0);
	assert_true(text_printable(shown));
}

static void keeps_what_people_read(void **state)
{
	static const char *const texts[] = {
		"",
		" !~\\\"'",
		"/tmp/\u00fcbung/na\u00efve caf\u00e9",
		"\u0434\u043e\u043a\u0443\u043c\u0435\u043d\u0442",
		"\u05e9\u05dc\u05d5\u05dd", /* right to left by itself */
		"\u6587\u4ef6\u3000\uff21",
		"e\u0301 \u00a0 \u2026 \u20ac \ufffd",
		"\U0001f600 \U00020000",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_escaped(texts[i], texts[i]);
}

static const struct {
	const char *text, *want;
} hostile[] = {
	/* controls, also those of 8-bit terminals, alone and as characters */
	{ "a\x1b[2J", "a\\x1b[2J" },
	{ "\t\n\r\x7f", "\\x09\\x0a\\x0d\\x7f" },
	{ "\x9b[2J", "\\x9b[2J" },
	{ "\xc2\x9b[2J", "\\xc2\\x9b[2J" },
	{ "\xc2\x80\xc2\x85\xc2\x9f", "\\xc2\\x80\\xc2\\x85\\xc2\\x9f" },
	/* no UTF-8: lone, cut, too many, beyond */
	{ "\x80", "\\x80" },
	{ "\xc3", "\\xc3" },
	{ "\xc3(", "\\xc3(" },
	{ "\xe2\x82", "\\xe2\\x82" },
	{ "\xe2\x82z", "\\xe2\\x82z" },
	{ "\xf0\x9f\x98", "\\xf0\\x9f\\x98" },
	{ "\xc3\xa9\xa9", "\xc3\xa9\\xa9" },
	{ "\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80" },
	{ "\xfe\xff", "\\xfe\\xff" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
	/* overlong: ESC, /, C1, U+FFFF */
	{ "\xc0\x9b", "\\xc0\\x9b" },
	{ "\xc1\xbf", "\\xc1\\xbf" },
	{ "\xe0\x80\x9b", "\\xe0\\x80\\x9b" },
	{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf" },
	{ "\xe0\x82\x9b", "\\xe0\\x82\\x9b" },
	{ "\xe0\x9f\xbf", "\\xe0\\x9f\\xbf" },
	{ "\xf0\x80\x80\x9b", "\\xf0\\x80\\x80\\x9b" },
	{ "\xf0\x8f\xbf\xbd", "\\xf0\\x8f\\xbf\\xbd" },
	/* surrogates */
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "\xed\xa0\xbd\xed\xb8\x80", "\\xed\\xa0\\xbd\\xed\\xb8\\x80" },
	{ "\xed\xbf\xbf", "\\xed\\xbf\\xbf" },
	/* what reorders the line */
	{ "\u202etxt.exe", "\\xe2\\x80\\xaetxt.exe" },
	{ "\u202a", "\\xe2\\x80\\xaa" },
	{ "\u2066", "\\xe2\\x81\\xa6" },
	{ "\u2069", "\\xe2\\x81\\xa9" },
	{ "\u200e\u200f", "\\xe2\\x80\\x8e\\xe2\\x80\\x8f" },
	{ "\u061c", "\\xd8\\x9c" },
	/* what breaks it, or is not seen */
	{ "\u2028\u2029", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9" },
	{ "a\u200bb", "a\\xe2\\x80\\x8bb" },
	{ "\ufeff", "\\xef\\xbb\\xbf" },
	{ "\u00ad", "\\xc2\\xad" },
	{ "\u3164", "\\xe3\\x85\\xa4" },
	{ "\ufe0f", "\\xef\\xb8\\x8f" },
	{ "\U000e0041", "\\xf3\\xa0\\x81\\x81" },
	/* what means nothing */
	{ "\ue000", "\\xee\\x80\\x80" },
	{ "\xef\xbf\xbf", "\\xef\\xbf\\xbf" },
	{ "\xf0\x9f\xbf\xbe", "\\xf0\\x9f\\xbf\\xbe" },
	{ "\xf4\x8f\xbf\xbd", "\\xf4\\x8f\\xbf\\xbd" },
};

static void lets_nothing_else_pass(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		assert_escaped(hostile[i].text, hostile[i].want);
}

static void keeps_ascii_alone(void **state)
{
	char shown[64];

	(void)state;
	text_escape_ascii("a\xc3\x9b[2J\x1b~", shown, sizeof(shown));
	assert_string_equal(shown, "a\\xc3\\x9b[2J\\x1b~");
}

/* At every size: whole characters, and "..." when it does not fit. */
static void cuts_between_characters(void **state)
{
	static const char text[] = "a\u00e9\u20ac\U0001f600\x1b\u00e9z";
	char whole[64];

	(void)state;
	text_escape(text, whole, sizeof(whole));
	for (size_t size = 8; size < sizeof(whole); size++) {
		char *cut = malloc(size); /* the sanitizer's to watch */
		size_t len;

		text_escape(text, cut, size);
		len = strlen(cut);
		assert_true(len < size && text_printable(cut));
		if (strlen(whole) < size) {
			assert_string_equal(cut, whole);
		} else {
			assert_true(len >= 3 && memcmp(cut, whole, len - 3) == 0);
			assert_string_equal(cut + len - 3, "...");
		}
		free(cut);
	}
}

static const struct {
	const char *all, *ctype, *lang; /* NULL = not set */
	int utf8;
} locales[] = {
	{ NULL, NULL, NULL, 0 },	  { NULL, NULL, "C", 0 },
	{ NULL, NULL, "de_DE.UTF-8", 1 }, { NULL, NULL, "C.utf8", 1 },
	{ NULL, NULL, "de_DE@euro", 0 },  { NULL, "C.UTF-8", "C", 1 },
	{ "C", "C.UTF-8", "C.UTF-8", 0 }, { "", "", "C.UTF-8", 1 },
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* U+00DB ends in byte 9b, which is CSI to a terminal of the old kind. */
static void trusts_no_terminal_of_another_locale(void **state)
{
	static const char text[] = "\u00db[2J";
	int master, terminal, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char shown[64];

	(void)state;
	assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(locales); i++) {
		set("LC_ALL", locales[i].all);
		set("LC_CTYPE", locales[i].ctype);
		set("LANG", locales[i].lang);
		escape_for(terminal, text, shown, sizeof(shown));
		assert_string_equal(shown, locales[i].utf8 ? text : "\\xc3\\x9b[2J");
		assert_string_equal(escape_for(null, text, shown, sizeof(shown)), text);
	}
	close(master);
	close(terminal);
	close(null);
}

static void finds_whole_words(void **state)
{
	(void)state;
	assert_true(text_has_word("cpuset cpu io memory pids\n", "cpu"));
	assert_true(text_has_word("cpuset cpu io memory pids\n", "pids"));
	assert_true(text_has_word(" io", "io"));
	assert_false(text_has_word("cpuset io memory", "cpu"));
	assert_false(text_has_word("cpuset io memory", "set"));
	assert_false(text_has_word("", "cpu"));
	assert_false(text_has_word(" \n", "cpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_whole_words),
		cmocka_unit_test(keeps_what_people_read),
		cmocka_unit_test(lets_nothing_else_pass),
		cmocka_unit_test(keeps_ascii_alone),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(trusts_no_terminal_of_another_locale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
