/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "governor/daemon/config.h"
#include "governor/guest/confine.h"

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
		r = config_check_profiles(c, e);
	if (r == 0)
		r = config_check(c, e);
	fclose(file);
	return r;
}

#define VALUES offsetof(struct config, n_files) /* behind that is where they come from */

static void assert_parses_to(const char *text, const struct config *want)
{
	struct config c = {};
	struct error e = ERROR_NULL;

	if (parse(text, &c, &e) < 0)
		fail_msg("%s\n%s", e.text, text);
	assert_memory_equal(&c, want, VALUES);
}

static void holds_the_defaults(void **state)
{
	struct config c;

	(void)state;
	config_defaults(&c);
	assert_parses_to("\n", &c);
	assert_parses_to("# nothing\n; at all\n\n[pool]\n[defaults]\n[ceiling]\n[view]\n[access]\n",
			 &c);
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
	KEY("pool", "warm", "256", UNIT_COUNT, warm, 256),
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
	CEILING("io-weight", "10000", UNIT_COUNT, LIMIT_IO_WEIGHT, 10000),
	DEFAULT("io-weight", "1", UNIT_COUNT, LIMIT_IO_WEIGHT, 1),
	DEFAULT("io-read", "4K", UNIT_RATE, LIMIT_IO_READ, 4096),
	DEFAULT("io-write", "1G", UNIT_RATE, LIMIT_IO_WRITE, 1024 * MIB),
	CEILING("io-read", "2T", UNIT_RATE, LIMIT_IO_READ, MIB << 21),
	CEILING("io-write", "2G", UNIT_RATE, LIMIT_IO_WRITE, 2048 * MIB),
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
	want.warm = 4;
	assert_parses_to("[pool]\ncount = 5\nwarm = 4\n", &want);
	want.warm = 0;
	want.pool_memory = 8 * MIB;
	assert_parses_to("[pool]\nmemory = 8M\ncount = 5\n", &want);
	want.pool_memory = LIMIT_INFINITY;
	assert_parses_to("[pool]\ncount = 5\nwarm = 0\n", &want);
	want.uid_count = 65535;
	want.first_uid = 4294901760 - 65535;
	assert_parses_to("[pool]\ncount = 65535\nfirst-uid = 4294836225\n", &want);
}

/* ---- refusals ---- */

#define NAME_OF_32 "abcdefghijklmnopqrstuvwxyz-01234"
#define LONG_WORD  "0123456789012345678901234567890123456789"

static const struct refusal {
	const char *text, *sentence;
} bad[] = {
	{ "[poll]\ncount = 1\n", "F:1: [poll]: there is no such section; see harpe-gov.conf(5)" },
	{ "count = 1\n", "F:1: a key in front of the first [section]" },
	{ "[pool\ncount = 1\n", "F:1: is neither \"[section]\" nor \"key = value\"" },
	{ "[pool count\nfirst-uid = 1\n", "F:1: is neither \"[section]\" nor \"key = value\"" },
	{ "[pool]\njunk\nno = 1\n", "F:2: is neither \"[section]\" nor \"key = value\"" },
	{ "[poll\n[poll]\n", "F:1: is neither \"[section]\" nor \"key = value\"" },
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
	{ "[pool]\nwarm = 257\n", "F:2: [pool] warm: \"257\" is not a number from 0 to 256" },
	{ "[pool]\nwarm = -1\n", "F:2: [pool] warm: \"-1\" is not a number from 0 to 256" },
	{ "[pool]\nwarm = no\n", "F:2: [pool] warm: \"no\" is not a number from 0 to 256" },
	{ "[pool]\nwarm =\n", "F:2: [pool] warm: \"\" is not a number from 0 to 256" },
	{ "[pool]\ncount = 5 # few\n",
	  "F:2: [pool] count: \"5 # few\" is not a number from 1 to 65536" },
	{ "[pool]\nfirst-uid = 65535\n",
	  "F:2: [pool] first-uid: \"65535\" is not a number from 65536 to 4294901760" },
	{ "[pool]\nfirst-uid = 4294901761\n",
	  "F:2: [pool] first-uid: \"4294901761\" is not a number from 65536 to 4294901760" },
	{ "[pool]\nmemory = 64Q\n", "F:2: [pool] memory: \"64Q\" is not a size such as 512M" },
	{ "[pool]\nmemory = 0\n", "F:2: [pool] memory: \"0\" is too little: 8M is the least" },
	{ "[pool]\nmemory = 8388607\n",
	  "F:2: [pool] memory: \"8388607\" is too little: 8M is the least" },
	{ "[pool]\nmemory = 1G\n[defaults]\n\n[pool]\nmemory = 1G\n",
	  "F:6: [pool] memory: is set twice; keep one line" },
	{ "[access]\nusers = root\n",
	  "F:2: [access] users: there is no such key; see harpe-gov.conf(5)" },
	{ "[access]\ngroups = root\n",
	  "F:2: [access] groups: there is no such key; see harpe-gov.conf(5)" },
	{ "[access a]\nfirst-uid = 70000\n",
	  "F:2: [access a] first-uid: there is no such key; see harpe-gov.conf(5)" },
	{ "[access a]\nusers =\n", "F:2: [access a] users: names nothing" },
	{ "[access a]\ngroups = ; none\n", "F:2: [access a] groups: names nothing" },
	{ "[access a]\nusers = root\nusers = root\n",
	  "F:3: [access a] users: is set twice; keep one line" },
	{ "[access a]\nusers = root\n[access]\nmax-guests = 1\n[access a]\nusers = root\n",
	  "F:6: [access a] users: is set twice; keep one line" },
	{ "[access a]\nusers = root\nmemory = lots\n",
	  "F:3: [access a] memory: \"lots\" is not a size such as 512M" },
	{ "[access A]\nusers = root\n",
	  "F:1: [access A]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access a b]\nusers = root\n",
	  "F:1: [access a b]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access a_b]\nusers = root\n",
	  "F:1: [access a_b]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access ]\nusers = root\n",
	  "F:1: [access ]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access  a]\nusers = root\n",
	  "F:1: [access  a]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access:a]\nusers = root\n",
	  "F:1: [access:a]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access " NAME_OF_32 "x]\nusers = root\n",
	  "F:1: [access " NAME_OF_32 "x]: there is no such section; see harpe-gov.conf(5)" },
	{ "[access]\nmax-guests = -1\n",
	  "F:2: [access] max-guests: \"-1\" is not a number from 0 to 65536" },
	{ "[access]\nmax-connections = 0\n",
	  "F:2: [access] max-connections: \"0\" is not a number from 1 to 65536" },
	{ "[access]\nmax-connections = 65537\n",
	  "F:2: [access] max-connections: \"65537\" is not a number from 1 to 65536" },
	{ "[pool]\ncount = 5\n[access]\n[pool]\ncount = 5\n",
	  "F:5: [pool] count: is set twice; keep one line" },
	{ "[defaults]\nnet = a b\n",
	  "F:2: [defaults] net: \"a b\" is no profile's name: 1 to 31 of a-z 0-9" },
	{ "[profile drop]\nlog = yes\n", "F:1: [profile drop]: is built in; choose another name" },
	{ "[profile A]\n", "F:1: [profile A]: there is no such section; see harpe-gov.conf(5)" },
	{ "[profile a]\nlog = maybe\n", "F:2: [profile a] log: \"maybe\" is not no or yes" },
	{ "[profile a]\nuser-namespaces = 1\n",
	  "F:2: [profile a] user-namespaces: \"1\" is not no or yes" },
	{ "[profile a]\non-deny = allow\n",
	  "F:2: [profile a] on-deny: \"allow\" is not drop or reject" },
	{ "[profile a]\nlog-group = 65536\n",
	  "F:2: [profile a] log-group: \"65536\" is not a number from 0 to 65535" },
	{ "[profile a]\nlog = no\nlog = yes\n",
	  "F:3: [profile a] log: is set twice; keep one line" },
	{ "[profile a]\nmemory = 1G\n",
	  "F:2: [profile a] memory: there is no such key; see harpe-gov.conf(5)" },
	{ "[access]\nprofiles =\n", "F:2: [access] profiles: names nothing" },
	{ "[view]\nro =\n", "F:2: [view] ro: names nothing" },
	{ "[view]\nro = /opt srv\n",
	  "F:2: [view] ro: \"srv\" is no absolute path without empty, \".\" and \"..\" parts" },
	{ "[view]\nhide = /opt/../etc\n",
	  "F:2: [view] hide: \"/opt/../etc\" is no absolute path without empty, \".\" and \"..\" "
	  "parts" },
	{ "[view]\nro = /opt /proc/sys\n",
	  "F:2: [view] ro: /proc/sys: every guest has a /proc of its own" },
	{ "[view]\nhide = /proc/sys\n",
	  "F:2: [view] hide: /proc/sys: every guest has a /proc of its own" },
	{ "[view]\nro = /run\n", "F:2: [view] ro: /run: every guest has a /run of its own" },
	{ "[ceiling]\nswap = 0\nswap = 0\n", "F:3: [ceiling] swap: is set twice; keep one line" },
	{ "[pool]\ncount = 5\njunk\n", "F:3: is neither \"[section]\" nor \"key = value\"" },
	{ "junk\n", "F:1: is neither \"[section]\" nor \"key = value\"" },
	{ "[pool]\ncount = 5\n[pool\n", "F:3: is neither \"[section]\" nor \"key = value\"" },
};

/* Lines that are good, but not together: that is known when all have been read. */
static const struct refusal apart[] = {
	{ "[access a]\nmax-guests = 1\n", "F:1: [access a]: names no users and no groups" },
	{ "[access a]\nusers = root\nmemory = 100M\n",
	  "F:3: [defaults] memory = 512M is above [access a] memory = 100M; lower the one or raise "
	  "the other" },
	{ "[access]\npids = 1\n", "F:2: [defaults] pids = 128 is above [access] pids = 1; lower "
				  "the one or raise the other" },
	{ "[defaults]\nnet = open\n", "F:2: [defaults] net: there is no profile \"open\"" },
	{ "[access]\nprofiles = isolated open\n",
	  "F:2: [access] profiles: there is no profile \"open\"" },
	{ "[access]\nprofiles = drop\n",
	  "F:2: [defaults] net = isolated is none of [access] profiles; add it there, or change "
	  "the default" },
	{ "[ceiling]\nmemory = 100M\n", /* the built-in default is 512M */
	  "F:2: [defaults] memory = 512M is above [ceiling] memory = 100M; lower the one or raise "
	  "the other" },
	{ "[defaults]\ncpu-time = infinity\n[ceiling]\ncpu-time = 1d\n",
	  "F:4: [defaults] cpu-time = infinity is above [ceiling] cpu-time = 1d; lower the one or "
	  "raise the other" },
	{ "[pool]\nwarm = 256\n",
	  "F:2: [pool]: warm 256 is not below count 256, and a slot has a uid; "
	  "lower the one or raise the other" },
	{ "[pool]\nrecycle = yes\n",
	  "F:2: [pool]: recycle needs slots that it serves: set warm to 1 or more, or recycle to "
	  "no" },
	{ "[pool]\ncount = 1\nwarm = 2\n",
	  "F:3: [pool]: warm 2 is not below count 1, and a slot has a uid; lower the one or raise "
	  "the other" },
	{ "[pool]\nfirst-uid = 4294901505\n",
	  "F:2: [pool]: first-uid 4294901505 and count 256 pass the last uid 4294901760" },
	{ "[pool]\nfirst-uid = 4294901760\ncount = 65536\n",
	  "F:3: [pool]: first-uid 4294901760 and count 65536 pass the last uid 4294901760" },
};

static void reads_paths(void **state)
{
	struct config want;

	(void)state;
	config_defaults(&want);
	want.view_ro.n = 2;
	strcpy(want.view_ro.path[0], "/opt");
	strcpy(want.view_ro.path[1], "/run/models");
	want.view_hide.n = 1;
	strcpy(want.view_hide.path[0], "/etc/sys");
	assert_parses_to("[view]\nro =  /opt\t/run/models \nhide = /etc/sys\n", &want);
}

static void assert_refused(const struct refusal *refusal)
{
	struct config c;
	struct error e = ERROR_NULL;

	assert_int_equal(parse(refusal->text, &c, &e), -EINVAL);
	assert_string_equal(e.text, refusal->sentence);
}

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(&bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
		assert_refused(&apart[i]);
}

/* Lists that are too long; to the last that fits. */
static void bounds_access_sections(void **state)
{
	char text[TEXT_SIZE] = "", sentence[128];
	struct error e = ERROR_NULL;
	struct config c;
	size_t used = 0;

	(void)state;
	for (int i = 1; i < ACCESS_SECTIONS_MAX; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "[access n%d]\nusers = %d\n", i, i);
		if (parse(text, &c, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(c.n_access, i + 1);
	}
	strcat(text, "[access n5]\nmax-guests = 3\n[access]\nmax-guests = 4\n");
	assert_int_equal(parse(text, &c, &e), 0);
	assert_int_equal(c.n_access, ACCESS_SECTIONS_MAX);
	assert_int_equal(c.access[5].max_guests, 3);
	strcat(text, "[access more]\nusers = 1\n");
	snprintf(sentence, sizeof(sentence), "F:%d: [access more]: more than %d access sections",
		 2 * ACCESS_SECTIONS_MAX + 3, ACCESS_SECTIONS_MAX - 1);
	assert_int_equal(parse(text, &c, &e), -E2BIG);
	assert_string_equal(e.text, sentence);
}

static void bounds_members(void **state)
{
	static const char *const kinds[] = { "users", "groups" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char text[256], sentence[128];
		struct error e = ERROR_NULL;
		struct config c;

		snprintf(text, sizeof(text), "[access a]\n%s = 1", kinds[i]);
		for (int n = 2; n <= ACCESS_MEMBERS_MAX; n++)
			snprintf(text + strlen(text), 8, " %d", n);
		assert_int_equal(parse(text, &c, &e), 0);
		assert_int_equal((i ? &c.access[1].groups : &c.access[1].users)->n,
				 ACCESS_MEMBERS_MAX);
		strcat(text, " x");
		snprintf(sentence, sizeof(sentence),
			 "F:2: [access a] %s: more than 32 names, or one longer than 32 characters",
			 kinds[i]);
		assert_int_equal(parse(text, &c, &e), -E2BIG);
		assert_string_equal(e.text, sentence);
		snprintf(text, sizeof(text), "[access a]\n%s = x " NAME_OF_32, kinds[i]);
		assert_int_equal(parse(text, &c, &e), 0);
		strcat(text, "x");
		assert_int_equal(parse(text, &c, &e), -E2BIG);
		assert_string_equal(e.text, sentence);
	}
}

/* libinih would take what it cuts off for a line of its own. How long a line may be is its
 * matter. */
static void refuses_long_lines(void **state)
{
	static const char *const ends[] = { "\n", "", "\n[pool]\ncount = 5\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		int was_too_long = 0;

		for (int n = 100; n < 5000; n += n < 300 ? 1 : 100) {
			char text[6000];
			struct error e = ERROR_NULL;
			struct config c;
			int r;

			snprintf(text, sizeof(text), "[defaults]\n#%0*d count = 7%s", n, 0,
				 ends[i]);
			r = parse(text, &c, &e);
			if (r == 0 && !was_too_long)
				continue;
			assert_int_equal(r, -E2BIG);
			assert_mentions(e.text, "F:2: the line is too long", "", "");
			was_too_long = 1;
		}
		assert_true(was_too_long);
	}
}

/* ---- [access NAME] ---- */

static void assert_members(const struct members *m, uint32_t n, const char *const names[])
{
	assert_int_equal(m->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_string_equal(m->name[i], names[i]);
}

static void reads_access_sections(void **state)
{
	struct error e = ERROR_NULL;
	struct config c, plain;

	(void)state;
	if (parse("[access b-2]\nusers = alice\t 1000  bob\nmax-guests = 0\n"
		  "[access]\nmax-guests = 9\nswap = 1M\n"
		  "[access " NAME_OF_32 "]\ngroups: wheel ; admins\nmax-connections = 7\n"
		  "memory = infinity\n"
		  "[access b-2]\ngroups = 5\n",
		  &c, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(c.n_access, 3);
	assert_string_equal(c.access[0].name, "");
	assert_int_equal(c.access[0].max_guests, 9);
	assert_int_equal(c.access[0].ceiling.value[LIMIT_SWAP], MIB);
	assert_int_equal(c.access[0].users.n + c.access[0].groups.n, 0);
	assert_string_equal(c.access[1].name, "b-2");
	assert_members(&c.access[1].users, 3, (const char *[]){ "alice", "1000", "bob" });
	assert_members(&c.access[1].groups, 1, (const char *[]){ "5" });
	assert_int_equal(c.access[1].max_guests, 0);
	assert_int_equal(c.access[1].max_connections, 128); /* built in, not [access]'s */
	assert_string_equal(c.access[2].name, NAME_OF_32);
	assert_members(&c.access[2].groups, 1, (const char *[]){ "wheel" });
	assert_int_equal(c.access[2].max_guests, 64);
	assert_int_equal(c.access[2].max_connections, 7);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		assert_true(c.access[1].ceiling.value[i] == LIMIT_UNSET);
		assert_true(c.access[2].ceiling.value[i] ==
			    (i == LIMIT_MEMORY ? LIMIT_INFINITY : LIMIT_UNSET));
	}
	config_defaults(&plain);
	assert_memory_equal(&c.ceiling, &plain.ceiling, sizeof(plain.ceiling));
	assert_memory_equal(&c.defaults, &plain.defaults, sizeof(plain.defaults));
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

/* A directory with a configuration in the making. */
struct place {
	char dir[32], path[48];
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char drop_ins[64];

	strcpy(p->dir, "/tmp/harpe-gov-test-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/conf", p->dir);
	snprintf(drop_ins, sizeof(drop_ins), "%s.d", p->path);
	*state = p;
	return mkdir(drop_ins, 0755);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int tear_down(void **state)
{
	struct place *p = *state;
	int r = nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);

	free(p);
	return r;
}

/* The configuration itself, or a drop-in of it. */
static void put(const struct place *p, const char *drop_in, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", p->path, drop_in ? ".d/" : "",
		 drop_in ? drop_in : "");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, text, strlen(text)), 0);
	close(fd);
}

static void assert_loads_to(const struct place *p, const struct config *want)
{
	struct error e = ERROR_NULL;
	struct config c = {};

	if (config_load(p->path, &c, &e) < 0)
		fail_msg("%s", e.text);
	assert_memory_equal(&c, want, VALUES);
}

/* @sentence without the path in front of it. */
static void assert_not_loaded(const struct place *p, const char *drop_in, int r,
			      const char *sentence)
{
	struct config c = { .first_uid = 4711 }, before = c;
	struct error e = ERROR_NULL;
	char wanted[512];
	int fds = open_fds();

	snprintf(wanted, sizeof(wanted), "%s%s%s%s", p->path, drop_in ? ".d/" : "",
		 drop_in ? drop_in : "", sentence);
	assert_int_equal(config_load(p->path, &c, &e), r);
	assert_string_equal(e.text, wanted);
	assert_memory_equal(&c, &before, sizeof(c));
	assert_int_equal(open_fds(), fds);
}

static void loads_files(void **state)
{
	struct place *p = *state;
	struct config want;
	int before = open_fds();

	config_defaults(&want);
	assert_loads_to(p, &want); /* there is none */
	want.uid_count = 7;
	put(p, NULL, "[pool]\ncount = 7\n");
	assert_loads_to(p, &want);
	put(p, NULL, "[pool]\ncount = 7\njunk\n");
	assert_not_loaded(p, NULL, -EINVAL, ":3: is neither \"[section]\" nor \"key = value\"");
	assert_int_equal(open_fds(), before);
}

static void reads_profiles(void **state)
{
	static const char *const lines[] = {
		"tcp 192.0.2.10:443",
		"udp [2001:db8::/32]:53-54",
		"icmp 192.0.2.1",
	};
	static const uint32_t line_numbers[] = { 4, 5, 4 };
	struct place *p = *state;
	struct error e = ERROR_NULL;
	const struct profile *web;
	struct config c = {};

	put(p, NULL,
	    "[access]\nprofiles = isolated web\n"
	    "[profile web]\nallow = tcp 192.0.2.10:443\nallow = udp [2001:db8::/32]:53-54\n"
	    "on-deny = reject\n[profile empty]\nuser-namespaces = yes\n");
	put(p, "1.conf",
	    "[defaults]\nnet = web\n"
	    "[profile web]\nallow = icmp 192.0.2.1\nlog = yes\nlog-group = 7\n");
	if (config_load(p->path, &c, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(c.n_profiles, PROFILE_BUILT_IN + 2);
	web = config_profile(&c, "web");
	assert_non_null(web);
	assert_string_equal(web->slice, "harpe-web.slice");
	assert_int_equal(web->on_deny, FIREWALL_REJECT);
	assert_int_equal(web->log, 1);
	assert_int_equal(web->log_group, 7);
	assert_int_equal(profile_filter(web), CONFINE_ICMP);
	assert_int_equal(web->n_entries, ARRAY_SIZE(lines));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char text[ALLOW_FORMAT_MAX];

		assert_string_equal(allow_format(&web->entries[i], text), lines[i]);
		assert_int_equal(web->from[i].line, line_numbers[i]);
	}
	assert_int_equal(config_profile(&c, "empty")->n_entries, 0);
	assert_int_equal(profile_filter(config_profile(&c, "empty")), CONFINE_USER_NAMESPACES);
	assert_int_equal(profile_filter(config_profile(&c, "isolated")), 0);
	assert_true(config_allows_profile(&c, &c.access[0], "web"));
	assert_false(config_allows_profile(&c, &c.access[0], "empty"));
	assert_false(config_allows_profile(&c, &c.access[0], "drop"));
	config_free(&c);
}

static void bounds_profiles(void **state)
{
	static char text[TEXT_SIZE];
	struct error e = ERROR_NULL;
	struct config c;
	size_t used = 0;

	(void)state;
	for (int i = PROFILE_BUILT_IN; i < CONFIG_PROFILES_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[profile p%d]\n", i);
	assert_int_equal(parse(text, &c, &e), 0);
	assert_int_equal(c.n_profiles, CONFIG_PROFILES_MAX);
	strcat(text, "[profile more]\n");
	assert_int_equal(parse(text, &c, &e), -E2BIG);
	assert_string_equal(e.text, "F:65: [profile more]: more than 64 profiles");
}

/* @n lines of a new profile, no two of which can be one. */
static void put_profile(const struct place *p, const char *name, int n)
{
	size_t size = 64 + (size_t)n * 64, used;
	_cleanup_free_ char *text = malloc(size);
	char file[32];

	assert_non_null(text);
	used = (size_t)snprintf(text, size, "[profile %s]\n", name);
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, size - used, "allow = tcp 10.%d.%d.1:%d\n",
					 i / 256, i % 256, 1 + i % 2);
	snprintf(file, sizeof(file), "%s.conf", name);
	put(p, file, text);
}

/* The firewall takes so many of all profiles together. */
static void bounds_allow_lines(void **state)
{
	struct place *p = *state;
	struct error e = ERROR_NULL;
	struct config c;

	put_profile(p, "a", FIREWALL_ENTRIES_MAX / 2);
	put_profile(p, "b", FIREWALL_ENTRIES_MAX / 2);
	if (config_load(p->path, &c, &e) < 0)
		fail_msg("%s", e.text);
	config_free(&c);
	put_profile(p, "b", FIREWALL_ENTRIES_MAX / 2 + 1);
	assert_not_loaded(p, "b.conf", -EINVAL,
			  ":16386: profile b: with its 16385 entries there are more than 32768 in "
			  "all profiles: allow networks or port ranges instead");
}

/* In the order of their names, whatever the directory's is. */
static void reads_drop_ins_in_order(void **state)
{
	static const char *const names[] = { "9-last.conf",	"10-a.conf", "20-b.conf",
					     "20-a.conf",	"B.conf",    "0.conf",
					     "with blank.conf", "a.conf" };
	static const char *const in_order[] = { "0.conf",    "10-a.conf",      "20-a.conf",
						"20-b.conf", "9-last.conf",    "B.conf",
						"a.conf",    "with blank.conf" };
	struct place *p = *state;
	struct config want;

	config_defaults(&want);
	put(p, NULL, "[pool]\ncount = 1000\n[access]\nmax-guests = 1000\n");
	want.access[0].max_guests = 1000;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put(p, names[i], "\n");
	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
		char text[64];

		snprintf(text, sizeof(text), "[pool]\ncount = %zu\n", i + 1);
		put(p, in_order[i], text);
	}
	for (size_t i = ARRAY_SIZE(in_order); i > 0; i--) {
		want.uid_count = (uint32_t)i;
		assert_loads_to(p, &want);
		put(p, in_order[i - 1], "; nothing\n");
	}
	want.uid_count = 1000;
	assert_loads_to(p, &want);
}

static void overrides_key_by_key(void **state)
{
	struct place *p = *state;
	struct config want;

	config_defaults(&want);
	put(p, NULL,
	    "[ceiling]\nmemory = 100M\nswap = 1M\n"
	    "[access a]\nusers = alice bob\nmax-guests = 1\nmax-connections = 5\n");
	put(p, "1.conf",
	    "[defaults]\nmemory = 64M\n"
	    "[access b]\ngroups = c\n[access a]\nmax-guests = 2\nusers = carol\n");
	put(p, "2.conf", "[access]\nmax-guests = 3\n[ceiling]\nswap = 2M\n");
	want.ceiling.value[LIMIT_MEMORY] = 100 * MIB;
	want.ceiling.value[LIMIT_SWAP] = 2 * MIB;
	want.defaults.value[LIMIT_MEMORY] = 64 * MIB; /* only now below its ceiling */
	want.n_access = 3;
	want.access[1] = want.access[2] = want.access[0];
	want.access[1].section++;
	want.access[2].section += 2;
	want.access[0].max_guests = 3;
	strcpy(want.access[1].name, "a");
	want.access[1].max_guests = 2;
	want.access[1].max_connections = 5;
	strcpy(want.access[2].name, "b");
	{
		struct error e = ERROR_NULL;
		struct config c;

		if (config_load(p->path, &c, &e) < 0)
			fail_msg("%s", e.text);
		assert_members(&c.access[1].users, 1, (const char *[]){ "carol" });
		assert_members(&c.access[2].groups, 1, (const char *[]){ "c" });
		want.access[1].users = c.access[1].users; /* with what it had before */
		want.access[2].groups = c.access[2].groups;
	}
	assert_loads_to(p, &want);
}

static void ignores_other_files(void **state)
{
	static const char *const names[] = { ".hidden.conf", "a.conf~", "a.con", "a.CONF",
					     "a.conf.bak",   "conf",	".conf", "a.conf.",
					     "aconf",	     "README" };
	struct place *p = *state;
	struct config want;

	config_defaults(&want);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put(p, names[i], "junk\n");
	assert_loads_to(p, &want);
	put(p, "x.conf", "[pool]\ncount = 5\n");
	want.uid_count = 5;
	assert_loads_to(p, &want);
}

/* @behind is in a file that is read later. */
static void assert_named(const struct place *p, const struct refusal *refusal, const char *behind)
{
	put(p, NULL, refusal->text);
	put(p, "50-x.conf", "");
	assert_not_loaded(p, NULL, -EINVAL, refusal->sentence + strlen("F"));
	put(p, NULL, "[pool]\n#\n#\n#\n#\n#\n#\n");
	put(p, "10-a.conf", "[defaults]\n");
	put(p, "50-x.conf", refusal->text);
	put(p, "60-y.conf", behind);
	assert_not_loaded(p, "50-x.conf", -EINVAL, refusal->sentence + strlen("F"));
	put(p, "60-y.conf", "");
}

/* All of them, in the file and in a drop-in. */
static void names_file_and_line(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_named(*state, &bad[i], "junk\n");
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
		assert_named(*state, &apart[i], "[view]\n");
}

/* Where each is good by itself, the line that is read last. */
static void names_the_later_of_two_lines(void **state)
{
	static const char sentence[] = "[pool]: warm 4 is not below count 4, and a slot has a uid; "
				       "lower the one or raise the other";
	struct place *p = *state;
	char text[256];

	snprintf(text, sizeof(text), ":3: %s", sentence);
	put(p, NULL, "[pool]\n\n\n\ncount = 4\n");
	put(p, "1.conf", "#\n[pool]\nwarm = 4\n");
	assert_not_loaded(p, "1.conf", -EINVAL, text);
	put(p, "2.conf", "[pool]\n\ncount = 4\n");
	assert_not_loaded(p, "2.conf", -EINVAL, text);
	put(p, NULL, "");
	put(p, "2.conf", "[pool]\ncount = 4\nwarm = 4\n");
	assert_not_loaded(p, "2.conf", -EINVAL, text);
}

/* A key may be in as many files as there are, but once in each. */
static void refuses_doubled_keys_per_file(void **state)
{
	struct place *p = *state;
	struct config want;

	config_defaults(&want);
	want.uid_count = 6;
	put(p, NULL, "[pool]\ncount = 4\n");
	put(p, "1.conf", "[pool]\ncount = 5\n");
	put(p, "2.conf", "[pool]\ncount = 6\n");
	assert_loads_to(p, &want);
	put(p, "2.conf", "[pool]\ncount = 6\n\ncount = 6\n");
	assert_not_loaded(p, "2.conf", -EINVAL, ":4: [pool] count: is set twice; keep one line");
}

static void refuses_drop_ins_that_it_cannot_read(void **state)
{
	struct place *p = *state;
	struct config want;
	char path[64];

	config_defaults(&want);
	snprintf(path, sizeof(path), "%s.d/a.conf", p->path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_not_loaded(p, "a.conf", -EIO, ": cannot be read");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("a.conf", path), 0);
	assert_not_loaded(p, "a.conf", -ELOOP,
			  ": cannot be opened: Too many levels of symbolic links");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s.d", p->path);
	assert_int_equal(rmdir(path), 0);
	assert_loads_to(p, &want); /* the directory need not be there */
	put(p, NULL, "");
	assert_int_equal(symlink("conf", path), 0);
	assert_not_loaded(p, NULL, -ENOTDIR, ".d: cannot be read: Not a directory");
}

static void bounds_the_number_of_files(void **state)
{
	struct place *p = *state;
	struct error e = ERROR_NULL;
	struct config c;
	int r = 0, n;

	for (n = 0; n < 200 && r == 0; n++) {
		char name[16];

		snprintf(name, sizeof(name), "%03d.conf", n);
		put(p, name, "[pool]\ncount = 5\n");
		r = config_load(p->path, &c, &e);
	}
	assert_int_equal(r, -E2BIG);
	assert_true(n > 40);
	assert_mentions(e.text, p->path, ".d/", "");
	assert_mentions(e.text, ": more than ", "", "");
}

/* ---- showing ---- */

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

static char *show(const struct place *p)
{
	struct error e = ERROR_NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	if (config_show(p->path, to, &e) < 0)
		fail_msg("%s", e.text);
	fclose(to);
	return text;
}

/* What it shows means the same when it is read. */
static void assert_shows_itself(const struct place *p)
{
	_cleanup_free_ char *text = show(p);
	struct error e = ERROR_NULL;
	struct config want, got;

	assert_int_equal(config_load(p->path, &want, NULL), 0);
	if (parse(text, &got, &e) < 0)
		fail_msg("%s\n%s", e.text, text);
	assert_memory_equal(&got.first_uid, &want.first_uid, offsetof(struct config, access));
	assert_int_equal(got.n_access, want.n_access);
	for (uint32_t i = 0; i < got.n_access; i++) {
		const struct access *a = &got.access[i], *b = &want.access[i];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->max_guests, b->max_guests);
		assert_int_equal(a->max_connections, b->max_connections);
		assert_memory_equal(&a->ceiling, &b->ceiling, sizeof(a->ceiling));
		assert_int_equal(a->users.n, b->users.n);
		assert_int_equal(a->groups.n, b->groups.n);
		assert_memory_equal(a->users.name, b->users.name, sizeof(a->users.name));
		assert_memory_equal(a->groups.name, b->groups.name, sizeof(a->groups.name));
	}
}

static void shows_the_defaults(void **state)
{
	_cleanup_free_ char *text = show(*state);

	assert_shows_itself(*state);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_mentions(text, "\n", keys[i].name, " = ");
	assert_mentions(text, "; built in\n", "net", " = isolated\n");
	assert_mentions(text, "; built in\n", "recycle", " = no\n");
	assert_int_equal(count_of(text, "; built in\n"), ARRAY_SIZE(keys) + 2);
	assert_int_equal(count_of(text, "\n["), 3);
	assert_ptr_equal(strstr(text, "[pool]\n; built in\nfirst-uid = 90000\n"), text);
}

/* Every key at once. */
static void shows_what_it_read(void **state)
{
	struct place *p = *state;
	char text[TEXT_SIZE] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[%s]\n%s = %s\n",
					 keys[i].section, keys[i].name, keys[i].text);
		put(p, NULL, text);
		assert_shows_itself(p);
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			"[access n%d]\nusers = root %d\n%s = %s\n", i, i, limit_table[i].name,
			limit_table[i].max == LIMIT_INFINITY ? "infinity" : "9999");
		put(p, NULL, text);
		assert_shows_itself(p);
	}
}

static void assert_origins(const struct config *c, uint32_t access, enum limit limit,
			   const char *by_default, const char *ceiling)
{
	char text[256];

	assert_string_equal(config_default_origin(c, limit, text, sizeof(text)), by_default);
	assert_string_equal(config_ceiling_origin(c, &c->access[access], limit, text, sizeof(text)),
			    ceiling);
}

/* The last file that says something, or nobody. */
static void knows_where_limits_come_from(void **state)
{
	struct place *p = *state;
	char main_file[160], drop_in[160];
	struct config c = {};
	struct error e;

	snprintf(main_file, sizeof(main_file), "%s:", p->path);
	snprintf(drop_in, sizeof(drop_in), "%s.d/10-a.conf:", p->path);
	put(p, NULL, "[defaults]\npids = 5\nio-read = 1M\n[access]\nmemory = 2G\n");
	put(p, "10-a.conf",
	    "\n[ceiling]\nmemory = 3G\n[access a]\nusers = 0\npids = 900\n"
	    "[defaults]\npids = 6\n");
	assert_int_equal(config_load(p->path, &c, &e), 0);
	assert_origins(&c, 0, LIMIT_CPU, "built in", "built in");
	assert_origins(&c, 0, LIMIT_PIDS, strcat(drop_in, "8"), "built in");
	assert_origins(&c, 0, LIMIT_IO_READ, strcat(main_file, "3"), "built in");
	main_file[strlen(main_file) - 1] = '5';
	assert_origins(&c, 0, LIMIT_MEMORY, "built in", main_file);
	drop_in[strlen(drop_in) - 1] = '3';
	assert_origins(&c, 1, LIMIT_MEMORY, "built in", drop_in);
	drop_in[strlen(drop_in) - 1] = '6';
	assert_int_equal(strcmp(config_ceiling_origin(&c, &c.access[1], LIMIT_PIDS, main_file,
						      sizeof(main_file)),
				drop_in),
			 0);
}

/* Values that people would round, and the longest line that can be read. */
static void shows_odd_values_exactly(void **state)
{
	struct place *p = *state;
	char text[512] = "[access a]\nusers =";

	put(p, NULL,
	    "[pool]\nmemory = 1500M\n[defaults]\nmemory = 8388609\ntime = 1h1s\n"
	    "cpu = 33.3333%\n[ceiling]\ncpu-time = infinity\ntime = 1d1us\n");
	assert_shows_itself(p);
	for (int i = 0; i < 24; i++)
		snprintf(text + strlen(text), 16, " 1000%02d", i);
	put(p, NULL, text);
	assert_shows_itself(p);
}

static void shows_where_it_comes_from(void **state)
{
	struct place *p = *state;
	_cleanup_free_ char *text = NULL;
	char line[160];

	put(p, NULL, "\n[pool]\ncount = 5\nmemory = 8G\n[access a]\nusers = root 7\n");
	put(p, "1.conf", "[pool]\ncount = 6\n");
	put(p, "2.conf", "#\n#\n[pool]\ncount = 7\n[access a]\nmemory = 1G\n");
	assert_shows_itself(p);
	text = show(p);
	assert_mentions(text, "[pool]\n; built in\nfirst-uid = 90000\n", "", "");
	snprintf(line, sizeof(line), "\n; %s.d/2.conf:4\ncount = 7\n", p->path);
	assert_mentions(text, line, "", "");
	snprintf(line, sizeof(line), "\n; %s:4\nmemory = 8G\n", p->path);
	assert_mentions(text, line, "", "");
	assert_mentions(text, "\n[access a]\n; built in\nmax-guests = 64\n", "", "");
	snprintf(line, sizeof(line), "\n; %s:6\nusers = root 7\n", p->path);
	assert_mentions(text, line, "", "");
	snprintf(line, sizeof(line), "\n; %s.d/2.conf:6\nmemory = 1G\n", p->path);
	assert_mentions(text, line, "", "");
	assert_null(strstr(text, "groups"));
}

static void shows_nothing_that_is_not_in_force(void **state)
{
	struct place *p = *state;
	struct error e = ERROR_NULL;
	char *text = NULL, wanted[160];
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	put(p, "1.conf", "[pool]\ncount = 6\nx = y\n");
	snprintf(wanted, sizeof(wanted),
		 "%s.d/1.conf:3: [pool] x: there is no such key; see harpe-gov.conf(5)", p->path);
	assert_int_equal(config_show(p->path, to, &e), -EINVAL);
	assert_string_equal(e.text, wanted);
	put(p, "1.conf", "[ceiling]\nmemory = 100M\n");
	assert_int_equal(config_show(p->path, to, &e), -EINVAL);
	assert_mentions(e.text, "[defaults] memory = 512M", " is above", "");
	fclose(to);
	assert_int_equal(size, 0);
	free(text);
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
	assert_mentions(access, "*profiles*=_", "", "");
	assert_mentions(page, "*ro*=_", "", "");
	assert_mentions(page, "*hide*=_", "", "");
	assert_mentions(page, "*net*=_", "", "");
	assert_mentions(page, "*recycle*=_", "", "");
	assert_int_equal(count_of(page, "*=_"), ARRAY_SIZE(keys) - LIMIT_COUNT + 12);
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_the_defaults),
		cmocka_unit_test(reads_every_key),
		cmocka_unit_test(takes_other_spellings),
		cmocka_unit_test(reads_paths),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_bad_limits),
		cmocka_unit_test(complains_of_the_first_line_only),
		cmocka_unit_test(bounds_access_sections),
		cmocka_unit_test(bounds_members),
		cmocka_unit_test(refuses_long_lines),
		cmocka_unit_test(reads_access_sections),
		file_test(knows_where_limits_come_from),
		file_test(loads_files),
		file_test(reads_profiles),
		cmocka_unit_test(bounds_profiles),
		file_test(bounds_allow_lines),
		file_test(reads_drop_ins_in_order),
		file_test(overrides_key_by_key),
		file_test(ignores_other_files),
		file_test(names_file_and_line),
		file_test(names_the_later_of_two_lines),
		file_test(refuses_doubled_keys_per_file),
		file_test(refuses_drop_ins_that_it_cannot_read),
		file_test(bounds_the_number_of_files),
		file_test(shows_the_defaults),
		file_test(shows_what_it_read),
		file_test(shows_odd_values_exactly),
		file_test(shows_where_it_comes_from),
		file_test(shows_nothing_that_is_not_in_force),
		cmocka_unit_test(refuses_files_that_it_cannot_open),
		cmocka_unit_test(ships_the_defaults),
		cmocka_unit_test(documents_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
