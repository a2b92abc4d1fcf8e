/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pure parts of the audit, and that its page has every check.
 */
#include "tests/unit/test.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "governor/audit/audit.h"

/* ---- results ---- */

static void nothing_said_is_unknown(void **state)
{
	struct finding f = { 0 };

	(void)state;
	assert_int_equal(finding_result(&f), VERDICT_UNKNOWN);
	assert_int_equal(audit_status(&f, 1), VERDICT_EXIT_UNKNOWN);
	assert_int_equal(audit_status(&f, 0), VERDICT_EXIT_UNKNOWN);
}

static void the_worst_counts(void **state)
{
	struct finding f[3] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		finding_add(&f[i], VERDICT_PASS, "fine");
	assert_int_equal(audit_status(f, 3), VERDICT_EXIT_PASS);
	finding_add(&f[1], VERDICT_UNKNOWN, "not seen");
	assert_int_equal(audit_status(f, 3), VERDICT_EXIT_UNKNOWN);
	finding_add(&f[0], VERDICT_FAIL, "bad");
	finding_add(&f[0], VERDICT_PASS, "fine");
	assert_int_equal(finding_result(&f[0]), VERDICT_FAIL);
	assert_int_equal(audit_status(f, 3), VERDICT_EXIT_FAIL);
}

static void many_sentences_are_counted(void **state)
{
	struct finding f = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		finding_add(&f, VERDICT_PASS, "fine");
	finding_add(&f, VERDICT_FAIL, "bad");
	assert_int_equal(f.n, 1001);
	assert_int_equal(finding_result(&f), VERDICT_FAIL);
	assert_string_equal(f.said[AUDIT_SAID_MAX - 1].text, "bad");
}

/* ---- text of the kernel's ---- */

static const char status[] = "Name:\tsleep\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\n"
			     "Ngid:\t0\nPid:\t4711\nPPid:\t1\nTracerPid:\t0\n"
			     "Uid:\t90000\t90001\t90002\t90003\nGid:\t1\t1\t1\t1\n"
			     "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
			     "CapEff:\t0000000000000000\nCapBnd:\t0000000000000400\n"
			     "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
			     "Seccomp_filters:\t1\n";

static void reads_a_status(void **state)
{
	struct audit_process p;

	(void)state;
	assert_int_equal(audit_parse_status(status, &p), 0);
	assert_string_equal(p.name, "sleep");
	assert_int_equal(p.pid, 4711);
	assert_int_equal(p.uid[0], 90000);
	assert_int_equal(p.uid[3], 90003);
	assert_true(p.no_new_privs);
	assert_true(p.filtered);
	assert_int_equal(p.capabilities, 0x400);
}

static void a_status_with_less_is_refused(void **state)
{
	static const char *const lines[] = { "Name:",	      "\nPid:",	   "\nUid:",	"\nCapInh:",
					     "\nCapPrm:",     "\nCapEff:", "\nCapBnd:", "\nCapAmb:",
					     "\nNoNewPrivs:", "\nSeccomp:" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_free_ char *text = strdup(status);
		struct audit_process p;

		*(strchr(strstr(text, lines[i]), ':')) = '.';
		assert_int_equal(audit_parse_status(text, &p), -EINVAL);
	}
}

static void knows_a_guests_cgroup(void **state)
{
	static const struct {
		const char *group, *id; /* NULL: it is none */
	} groups[] = {
		{ "/harpe.slice/harpe-drop.slice/harpe-0123456789abcdef.scope/guest",
		  "0123456789abcdef" },
		{ "/harpe.slice/harpe-web2.slice/harpe-01.scope/guest/below", "01" },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-1.slice/harpe-01.scope/guest", "01" },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-63.slice/harpe-01.scope/guest/below",
		  "01" },
		{ "/harpe.slice/harpe-web2.slice/harpe-drop-1.slice/harpe-01.scope/guest", NULL },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-0.slice/harpe-01.scope/guest", NULL },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-x.slice/harpe-01.scope/guest", NULL },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-1-2.slice/harpe-01.scope/guest", NULL },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-1.slice/harpe-01.scope/sup", NULL },
		{ "/harpe.slice/harpe-web2.slice/harpe-web2-1.slice/x/harpe-01.scope/guest", NULL },
		{ "/harpe.slice/harpe-drop.slice/harpe-01.scope/sup", NULL },
		{ "/harpe.slice/harpe-drop.slice/harpe-01.scope/guests", NULL },
		{ "/harpe.slice/harpe-drop.slice/harpe-01.scope", NULL },
		{ "/harpe.slice/harpe-drop.slice/harpe-pin-drop-1.scope/guest", NULL },
		{ "/harpe.slice/harpe-drop.slice/other.scope/guest", NULL },
		{ "/user.slice/harpe.slice/harpe-drop.slice/harpe-01.scope/guest", NULL },
		{ "/harpe.slice", NULL },
		{ "/", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		char id[AUDIT_ID_MAX] = "";

		assert_int_equal(audit_parse_group(groups[i].group, id), groups[i].id != NULL);
		if (groups[i].id)
			assert_string_equal(id, groups[i].id);
	}
}

static uint64_t inode_of(const char *text, uint32_t port)
{
	_cleanup_(close_file) FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

	assert_non_null(file);
	return audit_netlink_inode(file, port);
}

static void finds_the_owners_socket(void **state)
{
	static const char text[] = "sk               Eth Pid        Groups   Rmem     Wmem     "
				   "Dump  Locks    Drops    "
				   "Inode\n"
				   "00000000c6b0b0a5 0   812        00000550 0        0        0   "
				   "  2        0        "
				   "101\n"
				   "00000000c6b0b0a6 12  812        00000000 0        0        0   "
				   "  2        0        "
				   "102\n"
				   "00000000c6b0b0a7 12  4294963000 00000000 0        0        0   "
				   "  2        0        "
				   "103\n";

	(void)state;
	assert_int_equal(inode_of(text, 812), 102);
	assert_int_equal(inode_of(text, 4294963000), 103);
	assert_int_equal(inode_of(text, 4), 0);
}

static void reads_ipc(void **state)
{
	static const char *const lines[] = {
		"         0          3   600                 4096  1     1      0 90000     0 "
		"90001   "
		"  0 1 0 0 4096 0",
		"         0          3   600          1 90000     0 90001     0 0 1",
		"         0          3   600          0          0     0     0 90000     0 90001   "
		"  0 "
		"0 0 1",
	};
	uint32_t uid, creator;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_true(audit_ipc_uids(lines[i], i, &uid, &creator));
		assert_int_equal(uid, 90000);
		assert_int_equal(creator, 90001);
	}
	assert_false(
		audit_ipc_uids("       key      semid perms      nsems   uid   gid  cuid  cgid "
			       "     otime      ctime",
			       1, &uid, &creator));
	assert_false(audit_ipc_uids("1 2", 0, &uid, &creator));
	assert_false(audit_ipc_uids("", 0, &uid, &creator));
}

static void knows_abstract_sockets(void **state)
{
	static const struct {
		const char *line, *name;
	} lines[] = {
		{ "Num       RefCount Protocol Flags    Type St Inode Path\n", "" },
		{ "0000000000000000: 00000002 00000000 00010000 0001 01 1234 @helper\n",
		  "@helper" },
		{ "0000000000000000: 00000002 00000000 00000000 0002 01 1234 @log\n", "@log" },
		{ "0000000000000000: 00000003 00000000 00000000 0001 03 1234 @helper\n", "" },
		{ "0000000000000000: 00000002 00000000 00010000 0001 01 1234 /run/x\n", "" },
		{ "0000000000000000: 00000002 00000000 00000000 0002 01 1234 @0001a\n", "" },
		{ "0000000000000000: 00000002 00000000 00000000 0002 01 1234\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char name[AUDIT_SOCKET_MAX];

		audit_abstract_name(lines[i].line, name);
		assert_string_equal(name, lines[i].name);
	}
}

/* ---- printing ---- */

static char *printed(const struct audit_report *report, bool as_json)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	if (as_json)
		assert_int_equal(audit_print_json(report, to), 0);
	else
		audit_print(report, to);
	fclose(to);
	return text;
}

static struct finding *findings_with(enum verdict second)
{
	struct finding *f = calloc(audit_n_checks(audit_n_areas), sizeof(*f));

	assert_non_null(f);
	for (size_t i = 0; i < audit_n_checks(audit_n_areas); i++)
		finding_add(&f[i], VERDICT_PASS, "fine %zu", i);
	finding_add(&f[1], second, "a name with \033[31m in it");
	return f;
}

static void prints_json(void **state)
{
	_cleanup_free_ struct finding *f = findings_with(VERDICT_FAIL);
	struct audit_report report = { audit_n_areas, f, 7, true };
	_cleanup_free_ char *text = printed(&report, true);
	json_t *root = json_loads(text, 0, NULL), *check;

	(void)state;
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "schema")), AUDIT_SCHEMA);
	assert_int_equal(json_integer_value(json_object_get(root, "ruleset_generation")), 7);
	assert_string_equal(json_string_value(json_object_get(root, "result")), "FAIL");
	assert_int_equal(json_array_size(json_object_get(root, "checks")),
			 audit_n_checks(audit_n_areas));
	check = json_array_get(json_object_get(root, "checks"), 1);
	assert_string_equal(json_string_value(json_object_get(check, "result")), "FAIL");
	assert_int_equal(json_array_size(json_object_get(check, "found")), 2);
	assert_null(strchr(text, '\033'));
	json_decref(root);
}

static void prints_for_people(void **state)
{
	_cleanup_free_ struct finding *f = findings_with(VERDICT_UNKNOWN);
	struct audit_report report = { .n_areas = audit_n_areas, .findings = f };
	_cleanup_free_ char *text = NULL;

	(void)state;
	f[2].n = 0;
	text = printed(&report, false);
	assert_non_null(strstr(text, "UNKNOWN HG-FW-002 "));
	assert_non_null(strstr(text, audit_firewall_checks[1].mend));
	assert_non_null(strstr(text, "nothing was looked at"));
	assert_non_null(strstr(text, "PASS    HG-FW-001 "));
	assert_non_null(strstr(text, "0 FAIL, 2 UNKNOWN"));
	assert_null(strchr(text, '\033'));
}

/* ---- the table ---- */

static bool is_id(const char *id)
{
	size_t letters = strspn(id + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return strncmp(id, "HG-", 3) == 0 && letters > 0 && id[3 + letters] == '-' &&
	       strlen(id + 4 + letters) == 3 && strspn(id + 4 + letters, "0123456789") == 3;
}

static const struct audit_check *check_at(size_t at)
{
	for (size_t i = 0; i < audit_n_areas; i++)
		for (const struct audit_check *c = audit_areas[i]; c->id; c++)
			if (at-- == 0)
				return c;
	return audit_areas[0]; /* not reached */
}

static void ids_are_used_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < audit_n_checks(audit_n_areas); i++) {
		assert_true(is_id(check_at(i)->id));
		assert_non_null(check_at(i)->look);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(check_at(i)->id, check_at(j)->id);
	}
}

/* Without mark-up, and blanks as the page happens to break its lines. */
static char *plain(const char *text)
{
	char *to = malloc(strlen(text) + 1), *at = to;

	assert_non_null(to);
	for (; *text; text++) {
		if (*text == '\\' || *text == '*')
			continue;
		if (isspace((unsigned char)*text) && (at == to || at[-1] == ' '))
			continue;
		*at++ = isspace((unsigned char)*text) ? ' ' : *text;
	}
	*at = '\0';
	return to;
}

static void assert_has(const char *page, const char *before, const char *text)
{
	char *wanted = NULL;
	_cleanup_free_ char *bare = NULL;

	assert_true(asprintf(&wanted, "%s%s", before, text) > 0);
	bare = plain(wanted);
	free(wanted);
	if (!strstr(page, bare))
		fail_msg("harpe-gov-audit(7) does not say: %s", bare);
}

static void documents_every_check(void **state)
{
	_cleanup_free_ char *source = source_text("man/harpe-gov-audit.7.scd");
	_cleanup_free_ char *page = plain(source);
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < audit_n_checks(audit_n_areas); i++) {
		const struct audit_check *c = check_at(i);
		char before[32];

		snprintf(before, sizeof(before), "%s ", c->id);
		assert_has(page, before, c->title);
		assert_has(page, "Looked at: ", c->looks_at);
		assert_has(page, "Why: ", c->why);
		assert_has(page, "Mend: ", c->mend);
	}
	for (const char *at = source; (at = strstr(at, "\n*HG-")); at++)
		n++;
	assert_int_equal(n, audit_n_checks(audit_n_areas));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_is_unknown),
		cmocka_unit_test(the_worst_counts),
		cmocka_unit_test(many_sentences_are_counted),
		cmocka_unit_test(reads_a_status),
		cmocka_unit_test(a_status_with_less_is_refused),
		cmocka_unit_test(knows_a_guests_cgroup),
		cmocka_unit_test(finds_the_owners_socket),
		cmocka_unit_test(reads_ipc),
		cmocka_unit_test(knows_abstract_sockets),
		cmocka_unit_test(prints_json),
		cmocka_unit_test(prints_for_people),
		cmocka_unit_test(ids_are_used_once),
		cmocka_unit_test(documents_every_check),
	};

	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
