/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/daemon/access.h"

#define NOBODY_ELSE 4711u
#define MIB	    (UINT64_C(1) << 20)

static void read_config(struct config *c, const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "re");
	struct error e = ERROR_NULL;

	assert_non_null(file);
	config_defaults(c);
	if (config_read(file, "F", c, &e) < 0 || config_check(c, &e) < 0)
		fail_msg("%s", e.text);
	fclose(file);
}

/* Read and looked up, as the daemon does it. */
static void configure(struct config *c, const char *text)
{
	struct error e = ERROR_NULL;

	read_config(c, text);
	if (access_resolve(c, &e) < 0)
		fail_msg("%s", e.text);
}

/* ---- whose section ---- */

static const char sample[] = "[access first]\nusers = 10 11\n"
			     "[access second]\ngroups = 20 21\n"
			     "[access third]\nusers = 12 11\ngroups = 22 20\n"
			     "[access last]\nusers = 12 4294967294\n"
			     "[access]\nmax-guests = 1\n";

/* "" = everybody else's. */
static const struct {
	const char *section;
	struct caller caller;
} callers[] = {
	{ "first", { .uid = 10, .gid = NOBODY_ELSE } },
	{ "first", { .uid = 11, .gid = NOBODY_ELSE } }, /* is in the third as well */
	{ "first", { .uid = 10, .gid = 20, .n_groups = 1, .groups = { 22 } } },
	{ "second", { .uid = NOBODY_ELSE, .gid = 20 } },
	{ "second", { .uid = NOBODY_ELSE, .gid = 21 } },
	{ "second", { .uid = NOBODY_ELSE, .gid = 22, .n_groups = 1, .groups = { 21 } } },
	{ "second", { .uid = 12, .gid = 0, .n_groups = 3, .groups = { 1, 22, 20 } } },
	{ "third", { .uid = 12, .gid = NOBODY_ELSE } }, /* is in the last as well */
	{ "third", { .uid = NOBODY_ELSE, .gid = 22 } },
	{ "third", { .uid = NOBODY_ELSE, .gid = 0, .n_groups = 2, .groups = { 1, 22 } } },
	{ "last", { .uid = 4294967294, .gid = NOBODY_ELSE } },
	{ "", { .uid = NOBODY_ELSE, .gid = NOBODY_ELSE } },
	{ "", { .uid = 0, .gid = 0 } },
	{ "", { .uid = 20, .gid = 10 } }, /* a uid is no gid */
	{ "", { .uid = 22, .gid = 12, .n_groups = 2, .groups = { 10, 11 } } },
	{ "", { .uid = NOBODY_ELSE, .gid = 0, .n_groups = 1, .groups = { 1, 22 } } },
};

static void finds_the_first_that_fits(void **state)
{
	struct config c;

	(void)state;
	configure(&c, sample);
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		assert_string_equal(access_find(&c, &callers[i].caller)->name, callers[i].section);
	assert_int_equal(access_find(&c, &callers[11].caller)->max_guests, 1);
}

static void looks_at_all_groups(void **state)
{
	struct caller caller = { .uid = NOBODY_ELSE, .gid = NOBODY_ELSE };
	struct config c;

	(void)state;
	configure(&c, sample);
	caller.n_groups = CALLER_GROUPS_MAX;
	assert_string_equal(access_find(&c, &caller)->name, "");
	caller.groups[CALLER_GROUPS_MAX - 1] = 22;
	assert_string_equal(access_find(&c, &caller)->name, "third");
}

static void has_one_section_for_all_when_there_is_none(void **state)
{
	struct caller caller = { .uid = 0, .gid = 0, .n_groups = CALLER_GROUPS_MAX };
	struct config c;

	(void)state;
	configure(&c, "\n");
	assert_ptr_equal(access_find(&c, &caller), &c.access[0]);
}

/* ---- names ---- */

static void looks_names_up(void **state)
{
	struct config c;

	(void)state;
	configure(&c, "[access a]\nusers = 7 root 0 0010 4294967294\ngroups = 8 root 4294967294\n"
		      "[access b]\ngroups = root\n");
	assert_int_equal(c.access[1].users.n, 5);
	assert_int_equal(c.access[1].users.id[0], 7);
	assert_int_equal(c.access[1].users.id[1], 0);
	assert_int_equal(c.access[1].users.id[2], 0);
	assert_int_equal(c.access[1].users.id[3], 10);
	assert_int_equal(c.access[1].users.id[4], 4294967294);
	assert_int_equal(c.access[1].groups.n, 3);
	assert_int_equal(c.access[1].groups.id[0], 8);
	assert_int_equal(c.access[1].groups.id[1], 0);
	assert_int_equal(c.access[1].groups.id[2], 4294967294);
	assert_int_equal(c.access[2].users.n, 0);
	assert_int_equal(c.access[2].groups.id[0], 0);
}

/* The last uid is what the kernel calls "none"; a name must not be cut or wrapped into one. */
static const char *const unknown[] = {
	"no-such-name", "4294967295", "4294967296", "18446744073709551616",
	"-1",		"+0",	      "0x0",	    "root,",
	"Root",		"root:",      "max",	    "1.5",
};

static void refuses_unknown_names(void **state)
{
	static const char *const kinds[] = { "user", "group" };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(unknown); i++) {
		const char *kind = kinds[i % 2], *name = unknown[i / 2];
		struct config c = { .n_access = 3,
				    .access = { [1].name = "fine", [2].name = "x" } };
		struct members *m = i % 2 ? &c.access[2].groups : &c.access[2].users;
		struct error e = ERROR_NULL;
		char sentence[128];

		c.access[1].users = (struct members){ .n = 1, .name = { "root" } };
		*m = (struct members){ .n = 2, .name = { "root" }, .from = "F:7" };
		strcpy(m->name[1], name);
		snprintf(sentence, sizeof(sentence),
			 "F:7: [access x] %ss: there is no %s \"%s\" on this host", kind, kind,
			 name);
		assert_int_equal(access_resolve(&c, &e), -ENOENT);
		assert_string_equal(e.text, sentence);
		assert_int_equal(access_resolve(&c, NULL), -ENOENT);
	}
}

static void blames_the_line_of_unknown_names(void **state)
{
	struct error e = ERROR_NULL;
	struct config c;

	(void)state;
	read_config(&c, "[access x]\ngroups = 1\n\nusers = root no\x1b\n");
	assert_int_equal(access_resolve(&c, &e), -ENOENT);
	assert_string_equal(e.text,
			    "F:4: [access x] users: there is no user \"no\\x1b\" on this host");
}

/* ---- limits ---- */

static void allows_what_the_section_says_or_the_ceiling(void **state)
{
	struct config c;

	(void)state;
	configure(&c, "[ceiling]\nswap = 1M\n"
		      "[access more]\nusers = 1\nmemory = infinity\nswap = 0\n"
		      "[access less]\nusers = 2\nmemory = 1G\ncpu = 100%\n"
		      "[access]\npids = 200\n");
	assert_int_equal(access_ceiling(&c, &c.access[1], LIMIT_MEMORY), LIMIT_INFINITY);
	assert_int_equal(access_ceiling(&c, &c.access[1], LIMIT_SWAP), 0);
	assert_int_equal(access_ceiling(&c, &c.access[1], LIMIT_PIDS), 1024);
	assert_int_equal(access_ceiling(&c, &c.access[2], LIMIT_MEMORY), 1024 * MIB);
	assert_int_equal(access_ceiling(&c, &c.access[2], LIMIT_SWAP), MIB);
	assert_int_equal(access_ceiling(&c, &c.access[2], LIMIT_CPU), USEC_PER_SEC);
	assert_int_equal(access_ceiling(&c, &c.access[0], LIMIT_MEMORY), 4096 * MIB);
	assert_int_equal(access_ceiling(&c, &c.access[0], LIMIT_PIDS), 200);
}

/* ---- the kernel's word ---- */

static void asks_who_is_at_the_other_end(void **state)
{
	struct caller got;
	gid_t own[CALLER_GROUPS_MAX];
	int pair[2], n = getgroups(CALLER_GROUPS_MAX, own);

	(void)state;
	assert_true(n >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(caller_of(pair[0], &got), 0);
	assert_int_equal(got.uid, geteuid());
	assert_int_equal(got.gid, getegid());
	assert_int_equal(got.n_groups, n);
	assert_memory_equal(got.groups, own, (size_t)n * sizeof(gid_t));
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(caller_of(STDIN_FILENO, &got), -ENOTSOCK);
	assert_int_equal(caller_of(-1, &got), -EBADF);
}

/* What caller_of() makes of a process with groups 1 to @n. */
static int with_groups(int n)
{
	gid_t groups[CALLER_GROUPS_MAX + 1];
	struct caller got = { .uid = NOBODY_ELSE };
	int pair[2], r;

	for (int i = 0; i < n; i++)
		groups[i] = (gid_t)i + 1;
	if (setgroups((size_t)n, groups) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 1;
	r = caller_of(pair[0], &got);
	if (r < 0)
		return got.uid == geteuid() && got.n_groups == 0 ? -r : 2;
	return got.n_groups != (uint32_t)n ||
	       memcmp(got.groups, groups, sizeof(gid_t) * (size_t)n) != 0;
}

static void overlooks_no_group(void **state)
{
	static const struct {
		int n, r;
	} rows[] = {
		{ 0, 0 }, { 1, 0 }, { CALLER_GROUPS_MAX, 0 }, { CALLER_GROUPS_MAX + 1, ERANGE }
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(with_groups(rows[i].n));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), rows[i].r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_first_that_fits),
		cmocka_unit_test(looks_at_all_groups),
		cmocka_unit_test(has_one_section_for_all_when_there_is_none),
		cmocka_unit_test(looks_names_up),
		cmocka_unit_test(refuses_unknown_names),
		cmocka_unit_test(blames_the_line_of_unknown_names),
		cmocka_unit_test(allows_what_the_section_says_or_the_ceiling),
		cmocka_unit_test(asks_who_is_at_the_other_end),
		cmocka_unit_test(overlooks_no_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
