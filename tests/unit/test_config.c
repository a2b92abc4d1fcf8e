/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "governor/config.h"

#define TEXT_SIZE 16384
#define MIB	  (UINT64_C(1) << 20)

static int parse(const char *text, struct config *c, struct error *e)
{
	FILE *file = fmemopen((void *)text, strlen(text), "re");
	int r;

	assert_non_null(file);
	config_defaults(c);
	r = config_read(file, "F", c, e);
	if (r == 0)
		r = config_check(c, e);
	fclose(file);
	return r;
}

static void assert_parses_to(const char *text, const struct config *want)
{
	struct config c = {};
	struct error e = ERROR_NULL;

	if (parse(text, &c, &e) < 0)
		fail_msg("%s\n%s", e.text, text);
	assert_memory_equal(&c, want, sizeof(c));
}

static void holds_the_defaults(void **state)
{
	struct config c;

	(void)state;
	config_defaults(&c);
	assert_parses_to("\n", &c);
	assert_parses_to("# nothing\n; at all\n\n[pool]\n[defaults]\n[ceiling]\n[access]\n", &c);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		assert_true(c.defaults.value[i] >= limit_table[i].min);
		assert_true(c.defaults.value[i] <= c.ceiling.value[i]);
	}
}

/* ---- keys ---- */

#define KEY(section, name, text, unit, member, number)                                             \
	{                                                                                          \
		section, name, text, unit, offsetof(struct config, member),                        \
			sizeof(((struct config *)0)->member), number                               \
	}
#define DEFAULT(name, text, unit, limit, number)                                                   \
	KEY("defaults", name, text, unit, defaults.value[limit], number)
#define CEILING(name, text, unit, limit, number)                                                   \
	KEY("ceiling", name, text, unit, ceiling.value[limit], number)

/* All there are, with values that are not built in, in an order that never leaves a default above
 * its ceiling. */
static const struct key {
	const char *section, *name, *text;
	enum unit_kind unit;
	size_t offset, size;
	uint64_t value;
} keys[] = {
	KEY("pool", "first-uid", "65536", UNIT_COUNT, first_uid, 65536),
	KEY("pool", "count", "65536", UNIT_COUNT, uid_count, 65536),
	KEY("pool", "memory", "3G", UNIT_SIZE, pool_memory, 3072 * MIB),
	KEY("access", "max-guests", "1", UNIT_COUNT, access[0].max_guests, 1),
	KEY("access", "max-connections", "65536", UNIT_COUNT, access[0].max_connections, 65536),
	CEILING("swap", "1T", UNIT_SIZE, LIMIT_SWAP, MIB << 20),
	DEFAULT("memory", "8M", UNIT_SIZE, LIMIT_MEMORY, 8 * MIB),
	DEFAULT("swap", "4096", UNIT_SIZE, LIMIT_SWAP, 4096),
	DEFAULT("cpu", "0.1%", UNIT_CPU, LIMIT_CPU, 1000),
	DEFAULT("pids", "1", UNIT_COUNT, LIMIT_PIDS, 1),
	DEFAULT("time", "1ms", UNIT_DURATION, LIMIT_TIME, 1000),
	DEFAULT("cpu-time", "30s", UNIT_DURATION, LIMIT_CPU_TIME, 30 * USEC_PER_SEC),
	CEILING("memory", "infinity", UNIT_SIZE, LIMIT_MEMORY, LIMIT_INFINITY),
	CEILING("cpu", "max", UNIT_CPU, LIMIT_CPU, LIMIT_INFINITY),
	CEILING("pids", "4194304", UNIT_COUNT, LIMIT_PIDS, 4 * MIB),
	CEILING("time", "1h30min", UNIT_DURATION, LIMIT_TIME, 5400 * USEC_PER_SEC),
	CEILING("cpu-time", "60", UNIT_DURATION, LIMIT_CPU_TIME, 60 * USEC_PER_SEC),
};

static uint64_t load(const struct config *c, const struct key *key)
{
	uint64_t value = 0; /* little-endian, as everything that this runs on */

	memcpy(&value, (const char *)c + key->offset, key->size);
	return value;
}

/* One more line each time, which changes its own member and no other. */
static void reads_every_key(void **state)
{
	char text[TEXT_SIZE] = "";
	struct config want;
	size_t used = 0;

	(void)state;
	config_defaults(&want);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct key *k = &keys[i];

		assert_true(load(&want, k) != k->value);
		memcpy((char *)&want + k->offset, &k->value, k->size);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[%s]\n%s = %s\n",
					 k->section, k->name, k->text);
		assert_parses_to(text, &want);
	}
}

static void takes_other_spellings(void **state)
{
	struct config want;

	(void)state;
	config_defaults(&want);
	want.uid_count = 5;
	assert_parses_to("[pool]\ncount=5", &want);
	assert_parses_to("[pool]\ncount: 5\n", &want);
	assert_parses_to("[pool]\n; first-uid = 1\ncount = 5 ; few\n", &want);
	assert_parses_to("[pool]\r\ncount\t= 5 \r\n", &want);
	assert_parses_to("\xef\xbb\xbf[pool]\ncount = 5\n", &want); /* a byte order mark */
	want.uid_count = 65535;
	want.first_uid = 4294901760 - 65535;
	assert_parses_to("[pool]\ncount = 65535\nfirst-uid = 4294836225\n", &want);
}

/* ---- refusals ---- */

#define LONG_WORD "0123456789012345678901234567890123456789"

static const struct {
	const char *text, *sentence;
} bad[] = {
	{ "[poll]\ncount = 1\n", "F:1: [poll]: there is no such section; see harpe-gov.conf(5)" },
	{ "count = 1\n", "F:1: []: there is no such section; see harpe-gov.conf(5)" },
	{ "[pool\ncount = 1\n", "F:2: []: there is no such section; see harpe-gov.conf(5)" },
	{ "[Pool]\ncount = 1\n", "F:1: [Pool]: there is no such section; see harpe-gov.conf(5)" },
	{ "[pool]\n\n# x\nsize = 1\n",
	  "F:4: [pool] size: there is no such key; see harpe-gov.conf(5)" },
	{ "[pool]\nswap = 1G\n", "F:2: [pool] swap: there is no such key; see harpe-gov.conf(5)" },
	{ "[defaults]\ncount = 1\n",
	  "F:2: [defaults] count: there is no such key; see harpe-gov.conf(5)" },
	{ "[pool]\nCount = 1\n", "F:2: [pool] Count: there is no such key; see harpe-gov.conf(5)" },
	{ "[pool]\n" LONG_WORD " = 1\n",
	  "F:2: [pool] " LONG_WORD ": there is no such key; see harpe-gov.conf(5)" },
	{ "[pool]\ncount = 0\n", "F:2: [pool] count: \"0\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = 65537\n",
	  "F:2: [pool] count: \"65537\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = 4294967297\n",
	  "F:2: [pool] count: \"4294967297\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = infinity\n",
	  "F:2: [pool] count: \"infinity\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = -1\n", "F:2: [pool] count: \"-1\" is not a number from 1 to 65536" },
	{ "[pool]\ncount =\n", "F:2: [pool] count: \"\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = 5 # few\n",
	  "F:2: [pool] count: \"5 # few\" is not a number from 1 to 65536" },
	{ "[pool]\nfirst-uid = 65535\n",
	  "F:2: [pool] first-uid: \"65535\" is not a number from 65536 to 4294901760" },
	{ "[pool]\nfirst-uid = 4294901761\n",
	  "F:2: [pool] first-uid: \"4294901761\" is not a number from 65536 to 4294901760" },
	{ "[access]\nmax-guests = -1\n",
	  "F:2: [access] max-guests: \"-1\" is not a number from 0 to 65536" },
	{ "[access]\nmax-connections = 0\n",
	  "F:2: [access] max-connections: \"0\" is not a number from 1 to 65536" },
	{ "[access]\nmax-connections = 65537\n",
	  "F:2: [access] max-connections: \"65537\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = 5\n[access]\n[pool]\ncount = 5\n",
	  "F:5: [pool] count: is set twice; keep one line" },
	{ "[ceiling]\nswap = 0\nswap = 0\n", "F:3: [ceiling] swap: is set twice; keep one line" },
	{ "[pool]\ncount = 5\njunk\n", "F:3: is neither \"[section]\" nor \"key = value\"" },
	{ "junk\n", "F:1: is neither \"[section]\" nor \"key = value\"" },
	{ "[pool]\ncount = 5\n[pool\n", "F:3: is neither \"[section]\" nor \"key = value\"" },
	{ "[ceiling]\nmemory = 100M\n", /* the built-in default is 512M */
	  "[defaults] memory: is above [ceiling] memory; lower the one or raise the other" },
	{ "[defaults]\ncpu-time = infinity\n[ceiling]\ncpu-time = 1d\n",
	  "[defaults] cpu-time: is above [ceiling] cpu-time; lower the one or raise the "
	  "other" },
	{ "[pool]\nfirst-uid = 4294901505\n",
	  "[pool]: first-uid 4294901505 and count 256 pass the last uid 4294901760" },
	{ "[pool]\nfirst-uid = 4294901760\ncount = 65536\n",
	  "[pool]: first-uid 4294901760 and count 65536 pass the last uid 4294901760" },
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config c;
		struct error e = ERROR_NULL;

		assert_int_equal(parse(bad[i].text, &c, &e), -EINVAL);
		assert_string_equal(e.text, bad[i].sentence);
	}
}

/* What a limit may be is limit_parse()'s; the line and the section are the configuration's. */
static void refuses_bad_limits(void **state)
{
	static const char *const values[] = { "64Q", "", "-1", "1\x1b[2J",
					      "9999999999999999999999" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			char text[128], place[64];
			struct error e = ERROR_NULL;
			struct config c;

			snprintf(text, sizeof(text), "\n[%s]\n%s = %s\n", keys[i].section,
				 keys[i].name, values[j]);
			snprintf(place, sizeof(place), "F:3: [%s]", keys[i].section);
			assert_true(parse(text, &c, &e) < 0);
			assert_mentions(e.text, place, "", "");
			assert_mentions(e.text, "", keys[i].name, ": \"");
		}
	}
}

static void complains_of_the_first_line_only(void **state)
{
	struct error e = ERROR_NULL;
	struct config c;

	(void)state;
	assert_true(parse("[pool]\ncount = a\ncount = b\njunk\n[x]\ny = z\n", &c, &e) < 0);
	assert_string_equal(e.text, "F:2: [pool] count: \"a\" is not a number from 1 to 65536");
	assert_int_equal(parse("[pool]\ncount = a\n", &c, NULL), -EINVAL);
}

/* ---- files ---- */

static void loads_files(void **state)
{
	char path[] = "/tmp/harpe-gov-test-XXXXXX", wanted[128];
	struct config want, c = {};
	struct error e = ERROR_NULL;
	int before = open_fds(), fd = mkstemp(path);

	(void)state;
	config_defaults(&want);
	want.uid_count = 7;
	assert_int_equal(write_whole(fd, "[pool]\ncount = 7\n", 17), 0);
	assert_int_equal(config_load(path, &c, &e), 0);
	assert_memory_equal(&c, &want, sizeof(c));
	assert_int_equal(write_whole(fd, "junk\n", 5), 0);
	assert_int_equal(config_load(path, &c, &e), -EINVAL);
	assert_memory_equal(&c, &want, sizeof(c));
	snprintf(wanted, sizeof(wanted), "%s:3: is neither", path);
	assert_mentions(e.text, wanted, "", "");
	close(fd);
	unlink(path);
	assert_int_equal(config_load(path, &c, &e), 0);
	config_defaults(&want);
	assert_memory_equal(&c, &want, sizeof(c));
	assert_int_equal(open_fds(), before);
}

static void refuses_files_that_it_cannot_open(void **state)
{
	struct config c = { .first_uid = 4711 };
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(config_load("/dev/null/harpe-gov.conf", &c, &e), -ENOTDIR);
	assert_mentions(e.text, "/dev/null/harpe-gov.conf", ": cannot be opened", ": Not a dir");
	assert_int_equal(c.first_uid, 4711);
}

/* ---- what is shipped ---- */

/* Removes the "#" of every "#key = value"; prose has a blank behind it. */
static void uncomment(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++)
		if (*from != '#' || (from > text && from[-1] != '\n') ||
		    !islower((unsigned char)from[1]))
			*to++ = *from;
	*to = '\0';
}

static void assert_key_is_set(const char *text, const struct key *key)
{
	char more[TEXT_SIZE], sentence[128];
	struct error e = ERROR_NULL;
	struct config c;

	snprintf(more, sizeof(more), "%s\n[%s]\n%s = %s\n", text, key->section, key->name,
		 key->text);
	snprintf(sentence, sizeof(sentence), "[%s] %s: is set twice", key->section, key->name);
	assert_int_equal(parse(more, &c, &e), -EINVAL);
	assert_mentions(e.text, sentence, "", "");
}

static void ships_the_defaults(void **state)
{
	_cleanup_free_ char *text = source_text("units/harpe-gov.conf");
	struct config want;

	(void)state;
	config_defaults(&want);
	assert_parses_to(text, &want);
	uncomment(text);
	assert_parses_to(text, &want);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_key_is_set(text, &keys[i]);
}

/* Makes one line of a paragraph behind a key. */
static void join_lines(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		*to++ = from[0] == '\n' && from[1] == '\t' ? (from++, ' ') : *from;
	*to = '\0';
}

/* The text of "# SECTION [name]" or "# SECTIONS [name] AND ..."; to be freed. */
static char *section_of(const char *page, const char *name)
{
	char title[64], *text;
	const char *start = page, *end;

	snprintf(title, sizeof(title), "[%s]", name);
	do {
		start = strstr(start + 1, "\n# SECTION");
		if (!start)
			fail_msg("no section %s", title);
		start += strcspn(start, "[");
	} while (strncmp(start, title, strlen(title)) != 0);
	end = strstr(start, "\n# ");
	assert_non_null(end);
	text = strndup(start, (size_t)(end - start) + 1);
	assert_non_null(text);
	join_lines(text);
	return text;
}

/* "*key*=_KIND_", and "Default: VALUE." before the next key. */
static void assert_entry(const char *section, const char *name, const char *value)
{
	char entry[64], sentence[64];
	const char *start, *at, *next;

	snprintf(entry, sizeof(entry), "\n*%s*=_", name);
	snprintf(sentence, sizeof(sentence), " Default: %s", value);
	assert_mentions(section, entry, "", "");
	start = strstr(section, entry);
	at = strstr(start, sentence);
	next = strstr(start + 1, "\n*");
	if (!at || (next && next < at) || !strchr(".;", at[strlen(sentence)]))
		fail_msg("%s does not have \"%s\"", name, sentence);
}

/* "*key*=VALUE" in a list. */
static void assert_listed(const char *section, const char *name, const char *value)
{
	char item[64];
	const char *at;

	snprintf(item, sizeof(item), "*%s*=%s", name, value);
	assert_mentions(section, item, "", "");
	at = strstr(section, item) + strlen(item);
	assert_true((at[0] == ',' || at[0] == '.') && isspace((unsigned char)at[1]));
}

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

static void documents_every_key(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.conf.5.scd"), *access = NULL;
	struct config c;

	(void)state;
	config_defaults(&c);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		_cleanup_free_ char *section = section_of(page, keys[i].section);
		char value[32];

		unit_format(keys[i].unit, load(&c, &keys[i]), value, sizeof(value));
		if (strcmp(keys[i].section, "ceiling") == 0)
			assert_listed(section, keys[i].name, value);
		else
			assert_entry(section, keys[i].name, value);
	}
	access = section_of(page, "access");
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_mentions(access, "*", limit_table[i].name, "*");
	assert_mentions(access, "*users*=_", "", "");
	assert_mentions(access, "*groups*=_", "", "");
	assert_int_equal(count_of(page, "*=_"), ARRAY_SIZE(keys) - LIMIT_COUNT + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_the_defaults),
		cmocka_unit_test(reads_every_key),
		cmocka_unit_test(takes_other_spellings),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_bad_limits),
		cmocka_unit_test(complains_of_the_first_line_only),
		cmocka_unit_test(loads_files),
		cmocka_unit_test(refuses_files_that_it_cannot_open),
		cmocka_unit_test(ships_the_defaults),
		cmocka_unit_test(documents_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
