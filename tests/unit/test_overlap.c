/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>

#include "governor/daemon/overlap.h"

#define FIRST 90000u
#define COUNT 256u /* the last is 90255 */

static int check(const char *text, enum overlap_kind kind, uint32_t first, uint32_t count,
		 struct error *e)
{
	FILE *file = fmemopen((void *)text, strlen(text), "re");
	int r;

	assert_non_null(file);
	r = overlap_check_file(file, "F", kind, first, count, e);
	fclose(file);
	return r;
}

/* ---- the files ---- */

static const struct {
	enum overlap_kind kind;
	const char *text;
} apart[] = {
	{ OVERLAP_PASSWD, "root:x:0:0:root:/root:/bin/sh\n" },
	{ OVERLAP_PASSWD, "a:x:89999:90256::/:/bin/sh\nb:x:90256:89999::/:/bin/sh\n" },
	{ OVERLAP_PASSWD, "a:90100:0:0:90100:90100:90100\n" },
	{ OVERLAP_PASSWD, "90100:x:0:0::/:\n" },
	{ OVERLAP_PASSWD, "a:x:90100x:0::/:\n" },
	{ OVERLAP_PASSWD, "a:x::::/:\n\n+::::::\n# 90100\n90100\n90100:90100\n:\n" },
	{ OVERLAP_PASSWD, "a:x:4294967295:4294967295::/:\n" },
	{ OVERLAP_PASSWD, "a:x:4295057396:0::/:\n" }, /* 90100 behind what 32 bits hold */
	{ OVERLAP_GROUP, "root:x:0:\nb:x:89999:90100\nc:x:90256:d,90100\n" },
	{ OVERLAP_GROUP, "a:x:10:90100:90100\n" },
	{ OVERLAP_SUBID, "a:89999:1\n" },
	{ OVERLAP_SUBID, "a:24464:65536\n" }, /* up to 89999 */
	{ OVERLAP_SUBID, "a:90256:65536\n" },
	{ OVERLAP_SUBID, "90100:100000:65536\n" },
	{ OVERLAP_SUBID, "a:0:65536\nb:524288:65536\n" },
};

static const struct {
	enum overlap_kind kind;
	unsigned int line;
	const char *name, *text;
} overlapping[] = {
	{ OVERLAP_PASSWD, 1, "a", "a:x:90000:0::/:/bin/sh\n" },
	{ OVERLAP_PASSWD, 1, "a", "a:x:90255:0::/:/bin/sh\n" },
	{ OVERLAP_PASSWD, 1, "a", "a:x:0:90000::/:/bin/sh\n" },
	{ OVERLAP_PASSWD, 1, "a", "a:x:0:90255::/:/bin/sh\n" },
	{ OVERLAP_PASSWD, 1, "a", "a:x:90100:90100::/:/bin/sh" },
	{ OVERLAP_PASSWD, 3, "c", "a:x:1:1::/:\nb:x:2:2::/:\nc:x:90100:3::/:\nd:x:90101:1::/:\n" },
	{ OVERLAP_PASSWD, 2, "b", "\nb:x:90100:0\n" },
	{ OVERLAP_GROUP, 1, "a", "a:x:90000:\n" },
	{ OVERLAP_GROUP, 1, "a", "a:x:90255:b,c\n" },
	{ OVERLAP_GROUP, 2, "b", "a:x:1:\nb:x:90100" },
	{ OVERLAP_SUBID, 1, "a", "a:89999:2\n" }, /* up to 90000 */
	{ OVERLAP_SUBID, 1, "a", "a:24465:65536\n" },
	{ OVERLAP_SUBID, 1, "a", "a:90255:1\n" },
	{ OVERLAP_SUBID, 1, "a", "a:90255:65536\n" },
	{ OVERLAP_SUBID, 1, "a", "a:90100:1\n" },
	{ OVERLAP_SUBID, 1, "a", "a:0:4294967295\n" },
	{ OVERLAP_SUBID, 1, "a", "a:89000:18446744073709551615\n" },
	{ OVERLAP_SUBID, 1, "a", "a:90100\n" }, /* without its length, at least itself */
	{ OVERLAP_SUBID, 2, "1000", "a:100000:65536\n1000:89000:65536\n" },
};

static void takes_what_is_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		struct error e = ERROR_NULL;

		if (check(apart[i].text, apart[i].kind, FIRST, COUNT, &e) != 0)
			fail_msg("%s\n%s", e.text, apart[i].text);
		assert_string_equal(e.text, "");
	}
}

static void names_the_line_that_overlaps(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(overlapping); i++) {
		struct error e = ERROR_NULL;
		char sentence[128];

		if (check(overlapping[i].text, overlapping[i].kind, FIRST, COUNT, &e) !=
		    -EADDRINUSE)
			fail_msg("taken for apart: %s", overlapping[i].text);
		snprintf(sentence, sizeof(sentence),
			 "[pool]: F:%u (\"%s\") has ids between 90000 and 90255; choose another "
			 "first-uid",
			 overlapping[i].line, overlapping[i].name);
		assert_string_equal(e.text, sentence);
		assert_int_equal(
			check(overlapping[i].text, overlapping[i].kind, FIRST, COUNT, NULL),
			-EADDRINUSE);
	}
}

/* Both edges, for all lengths of a short pool and a short range. */
static void compares_ranges_of_all_lengths(void **state)
{
	(void)state;
	for (uint32_t first = 100000; first < 100020; first++)
		for (uint32_t count = 1; count < 6; count++)
			for (uint32_t length = 1; length < 6; length++) {
				int apart_by_far =
					first + count <= 100010 || 100010 + length <= first;
				char text[64];

				snprintf(text, sizeof(text), "a:100010:%u\n", length);
				assert_int_equal(check(text, OVERLAP_SUBID, first, count, NULL),
						 apart_by_far ? 0 : -EADDRINUSE);
			}
}

static void looks_behind_long_lines(void **state)
{
	char text[20000];

	(void)state;
	memset(text, 'x', sizeof(text));
	strcpy(text, "long:x:5:");
	text[strlen(text)] = 'x';
	strcpy(text + sizeof(text) - 32, "\na:x:90100:\n");
	assert_int_equal(check(text, OVERLAP_GROUP, FIRST, COUNT, NULL), -EADDRINUSE);
	strcpy(text + sizeof(text) - 32, "\na:x:1:\n");
	assert_int_equal(check(text, OVERLAP_GROUP, FIRST, COUNT, NULL), 0);
}

/* ---- systemd's ranges ---- */

static const struct {
	uint32_t first, count;
	const char *owner; /* NULL = apart */
} ranges[] = {
	{ 90000, 256, NULL },
	{ 65536, 458752, NULL }, /* all that there is in between */
	{ 65535, 1, "65534 to 65535, which belong to nobody" },
	{ 65534, 2, "nobody" },
	{ 61184, 1, "61184 to 65519, which belong to systemd's dynamic users" },
	{ 65519, 10, "systemd's dynamic users" },
	{ 1000, 64536, "systemd-homed" },
	{ 60001, 1, "60001 to 60577, which belong to systemd-homed and systemd-nspawn" },
	{ 524287, 2, "524288 to 1879048191, which belong to systemd-nspawn's containers" },
	{ 524032, 257, "containers" },
	{ 1000000, 1, "containers" },
	{ 1879048191, 65536, "containers" },
	{ 1879048192, 65536, NULL },
	{ 2147352576, 1, "foreign" },
	{ 2147418111, 1, "foreign" },
	{ 2147418112, 1, NULL },
	{ 3000000000, 65536, NULL },
	{ 4294901760, 1, NULL },
};

static void knows_systemds_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct error e = ERROR_NULL;
		int r = overlap_check_ranges(ranges[i].first, ranges[i].count, &e);
		char start[64];

		if (r != (ranges[i].owner ? -EADDRINUSE : 0))
			fail_msg("%u, %u: %d, \"%s\"", ranges[i].first, ranges[i].count, r, e.text);
		if (r == 0)
			continue;
		snprintf(start, sizeof(start), "[pool]: uids %u to %u overlap ", ranges[i].first,
			 ranges[i].first + ranges[i].count - 1);
		assert_ptr_equal(strstr(e.text, start), e.text);
		assert_mentions(e.text, "", ranges[i].owner, "");
		assert_mentions(e.text, "; choose another first-uid", "", "");
	}
}

/* ---- this host ---- */

static void reads_the_files_of_this_host(void **state)
{
	struct error e = ERROR_NULL;
	int before = open_fds();

	(void)state;
	if (overlap_check(3000000000, 256, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(overlap_check(0, 1, &e), -EADDRINUSE);
	assert_mentions(e.text, "[pool]: /etc/passwd:", "", "");
	assert_mentions(e.text, "(\"root\") has ids between 0 and 0; choose", "", "");
	assert_int_equal(overlap_check(524288, 1, &e), -EADDRINUSE);
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_apart),
		cmocka_unit_test(names_the_line_that_overlaps),
		cmocka_unit_test(compares_ranges_of_all_lengths),
		cmocka_unit_test(looks_behind_long_lines),
		cmocka_unit_test(knows_systemds_ranges),
		cmocka_unit_test(reads_the_files_of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
