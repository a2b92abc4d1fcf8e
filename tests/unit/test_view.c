/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of --ro, --rw, --pin and --hide, up to where root is needed. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "governor/client/view_request.h"
#include "governor/guest/handed.h"
#include "governor/guest/mounts.h"
#include "governor/guest/view_base.h"

/* ---- paths ---- */

static void knows_plain_paths(void **state)
{
	static const char *const good[] = {
		"/a", "/a/b", "/...", "/a/..b", "/.a", "/a b/\xc3\xa9"
	};
	static const char *const bad[] = {
		"",   "/",   "a",     "a/b",  "//a",  "/a//b", "/a/",
		"/.", "/..", "/a/..", "/a/.", "/./a", "/../a", "/a/../b"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(path_is_plain(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(path_is_plain(bad[i]));
}

static void knows_entries(void **state)
{
	static const char *const bad[] = { "", ".", "..", "/", "a/b", "a/", "/a" };

	(void)state;
	assert_true(entry_name_valid("out.py") && entry_name_valid("...") &&
		    entry_name_valid("a:b"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(entry_name_valid(bad[i]));
}

static void knows_what_is_below(void **state)
{
	(void)state;
	assert_string_equal(view_path_below("/a/b", "/a"), "/b");
	assert_string_equal(view_path_below("/a", "/a"), "");
	assert_null(view_path_below("/ab", "/a"));
	assert_null(view_path_below("/", "/a"));
}

static void keeps_what_is_the_guests_own(void **state)
{
	static const char *const own[][2] = {
		{ "/", "/" },
		{ "/tmp", "/tmp" },
		{ "/run", "/run" },
		{ "/var/tmp", "/var/tmp" },
		{ "/dev/shm", "/dev/shm" },
		{ "/dev", "/dev" },
		{ "/dev/null", "/dev" },
		{ "/proc/1/root", "/proc" },
		{ "/proc", "/proc" },
	};
	static const char *const others[] = { "/tmp/a",	 "/run/a/b", "/var/tmp/a", "/dev/shm/a",
					      "/device", "/procs",   "/var",	   "/etc/a" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		assert_string_equal(view_own_place(own[i][0]), own[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_null(view_own_place(others[i]));
}

/* ---- mountinfo ---- */

static const char mountinfo[] = "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
				"22 21 0:5 / /dev rw shared:2 - devtmpfs dev rw\n"
				"30 21 0:40 / /srv/a\\040b/c rw - tmpfs tmpfs rw\n"
				"31 30 0:41 / /srv/a\\040b/c/d rw - tmpfs tmpfs rw\n"
				"32 21 0:42 / /srv/back\\134slash rw - tmpfs tmpfs rw\n"
				"33 21 0:43 / /srvx/y rw - tmpfs tmpfs rw\n"
				"garbage\n"
				"34 21\n"
				"35 21 0:44 / /last rw";

static const char *find(uint64_t id, const char *path)
{
	static char buf[64];
	FILE *file = fmemopen((void *)mountinfo, sizeof(mountinfo) - 1, "re");
	const char *found;

	assert_non_null(file);
	found = mounts_find_below(file, id, path, buf, sizeof(buf));
	fclose(file);
	return found;
}

static void finds_mounts_below(void **state)
{
	(void)state;
	assert_string_equal(find(21, "/srv"), "/srv/a b/c");
	assert_string_equal(find(21, "/srv/a b"), "/srv/a b/c");
	assert_string_equal(find(21, "/srv/a b/c"), "/srv/a b/c"); /* on it, since it was opened */
	assert_string_equal(find(30, "/srv/a b"), "/srv/a b/c/d");
	assert_string_equal(find(21, "/srv/back\\slash"), "/srv/back\\slash");
	assert_string_equal(find(21, "/last"), "/last");
	assert_null(find(21, "/srv/a b/c/d"));
	assert_null(find(30, "/srv/a b/c/e"));
	assert_null(find(22, "/dev"));
	assert_null(find(1, "/srv"));
}

static uint64_t fingerprint(const char *more)
{
	static const struct view_base base = { .n_places = 4,
					       .n_built_in = 3,
					       .places = { { .path = "/usr" },
							   { .path = "/bin", .link = "usr/bin" },
							   { .path = "/etc" },
							   { .path = "/srv/a" } } };
	char text[1024];
	uint64_t n;
	FILE *file;

	snprintf(text, sizeof(text), "%s\n%s", mountinfo, more);
	file = fmemopen(text, strlen(text), "re");
	assert_non_null(file);
	n = mounts_fingerprint(file, &base);
	fclose(file);
	return n;
}

/* Of what a slot has a copy of, and of nothing else. */
static void sees_changes_of_what_all_views_show(void **state)
{
	static const char *const no_matter[] = { "40 21 0:50 / /srv/a rw - tmpfs tmpfs rw",
						 "40 21 0:50 / /usrx rw - tmpfs tmpfs rw",
						 "40 21 0:50 / /bin rw - tmpfs tmpfs rw", "garbage",
						 "40 21" };
	static const char *const changes[] = {
		"40 21 0:50 / /usr rw - tmpfs tmpfs rw",
		"40 21 0:50 / /usr/local rw - tmpfs tmpfs rw",
		"40 21 0:51 / /usr/local rw - tmpfs tmpfs rw",
		"40 21 0:50 /a /etc/a\\040b rw - tmpfs tmpfs rw",
		"40 21 0:50 / /usr/local rw - tmpfs tmpfs rw\n41 40 0:51 / /usr/local rw - a a rw",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(no_matter); i++)
		assert_int_equal(fingerprint(no_matter[i]), fingerprint(""));
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		assert_int_not_equal(fingerprint(changes[i]), fingerprint(""));
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(fingerprint(changes[i]), fingerprint(changes[j]));
	}
}

/* ---- the request ---- */

static void checks_items(void **state)
{
	static const struct {
		struct view_item items[3];
		int r;
	} cases[] = {
		{ { { VIEW_NONE, "" } }, 0 },
		{ { { VIEW_RO, "" }, { VIEW_RW, "/a" }, { VIEW_PIN, "b" } }, 0 },
		{ { { VIEW_RW, "" }, { VIEW_HIDE, "/a" }, { VIEW_PIN_RO, "b" } }, 0 },
		{ { { VIEW_KIND_COUNT, "" } }, -EINVAL },
		{ { { VIEW_NONE, "/a" } }, -EINVAL },
		{ { { VIEW_RO, "" }, { VIEW_NONE, "" }, { VIEW_RO, "" } }, -EINVAL },
		{ { { VIEW_RO, "a" } }, -EINVAL },
		{ { { VIEW_RO, "/a/../b" } }, -EINVAL },
		{ { { VIEW_HIDE, "" } }, -EINVAL },
		{ { { VIEW_HIDE, "/" } }, -EINVAL },
		{ { { VIEW_PIN, "b" } }, -EINVAL },
		{ { { VIEW_RO, "" }, { VIEW_PIN, "b" } }, -EINVAL },
		{ { { VIEW_PIN, "b" }, { VIEW_RW, "" } }, -EINVAL },
		{ { { VIEW_RW, "" }, { VIEW_PIN, "../b" } }, -EINVAL },
		{ { { VIEW_RW, "" }, { VIEW_PIN, "" } }, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request q;
		struct error e;

		request_clear(&q);
		memcpy(q.view, cases[i].items, sizeof(cases[i].items));
		assert_int_equal(request_check(&q, &e), cases[i].r);
	}
}

/* Where guests may make user namespaces, mounts in what they can write to can be taken away. */
static void refuses_what_would_not_hold(void **state)
{
	static char top[] = "/srv/job", below[] = "/srv/job/data", beside[] = "/srv/jobs";
	static const struct {
		struct view_item item;
		char *path;
		enum view_kind top;
		const char *says; /* "" = nothing is wrong */
	} cases[] = {
		{ { VIEW_RO, "" }, beside, VIEW_RW, "" },
		{ { VIEW_RO, "" }, below, VIEW_RO, "" },
		{ { VIEW_RW, "" }, below, VIEW_NONE, "" },
		{ { VIEW_RO, "" }, below, VIEW_RW, "--ro /srv/job/data: would not hold with" },
		{ { VIEW_RO, "" }, below, VIEW_NONE, "--ro /srv/job/data: would not hold with" },
		{ { VIEW_PIN, "log" },
		  beside,
		  VIEW_RW,
		  "--pin log: would not hold with profile p," },
		{ { VIEW_PIN_RO, "log" }, beside, VIEW_RW, "--pin log: would not hold with" },
		{ { VIEW_HIDE, "/etc/x" }, beside, VIEW_RW, "--hide /etc/x: would not hold with" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request q = { .view = { cases[i].item } };
		const struct handed h = {
			.n_trees = 2,
			.trees = { { .kind = cases[i].top, .path = top },
				   { .kind = (enum view_kind)cases[i].item.kind,
				     .path = cases[i].path } },
		};
		struct error e = ERROR_NULL;
		int r = handed_check_lasting(&h, &q, "p", &e);

		assert_int_equal(r, cases[i].says[0] ? -EPERM : 0);
		assert_memory_equal(e.text, cases[i].says, strlen(cases[i].says));
	}
}

static void counts_descriptors(void **state)
{
	struct request q;

	(void)state;
	request_clear(&q);
	assert_int_equal(request_n_fds(&q), RUN_FD_COUNT);
	q.with_parent = 1;
	q.view[0].kind = VIEW_RW;
	q.view[1].kind = VIEW_PIN;
	q.view[2].kind = VIEW_RO;
	assert_int_equal(request_n_fds(&q), RUN_FD_COUNT + 3);
}

/* A full request is the longest message that there is. */
static void fits_into_a_message(void **state)
{
	WIRE_BUFFER(buf);
	struct request q, back;
	ssize_t n;

	(void)state;
	request_clear(&q);
	memset(q.name, 'n', GUEST_NAME_MAX);
	memset(q.command, 'c', COMMAND_TEXT_MAX);
	memset(q.net, 'n', PROFILE_NAME_MAX);
	for (size_t i = 0; i < VIEW_ITEMS_MAX; i++) {
		q.view[i].kind = VIEW_HIDE;
		memset(q.view[i].text, 'a' + (int)i, VIEW_TEXT_MAX);
	}
	n = wire_encode(WIRE_RUN, request_fields, request_n_fields, &q, buf, sizeof(buf));
	assert_true(n > 0);
	request_clear(&back);
	assert_int_equal(wire_decode(request_fields, request_n_fields, buf, (size_t)n, &back, NULL),
			 0);
	assert_memory_equal(q.view, back.view, sizeof(q.view));
}

/* ---- the command line ---- */

static const struct option ro = { .name = "ro" }, rw = { .name = "rw" }, pin = { .name = "pin" },
			   hide = { .name = "hide" };

static void parses_options(void **state)
{
	const struct option_list list = { 5,
					  { { &rw, "d" },
					    { &pin, "out.py:ro" },
					    { &pin, ":ro" },
					    { &hide, "/usr/src" },
					    { &ro, "/" } } };
	struct view_item view[VIEW_ITEMS_MAX] = { 0 };
	struct error e;

	(void)state;
	assert_int_equal(view_request_parse(&list, view, &e), 0);
	assert_int_equal(view[0].kind, VIEW_RW);
	assert_int_equal(view[1].kind, VIEW_PIN_RO);
	assert_string_equal(view[1].text, "out.py");
	assert_int_equal(view[2].kind, VIEW_PIN);
	assert_string_equal(view[2].text, ":ro");
	assert_int_equal(view[3].kind, VIEW_HIDE);
	assert_int_equal(view[4].kind, VIEW_RO);
	assert_int_equal(view[5].kind, VIEW_NONE);
}

static void refuses_options(void **state)
{
	static char long_path[5001];
	static const struct {
		struct option_list list;
		const char *sentence;
	} bad[] = {
		{ { 1, { { &pin, "a" } } }, "--pin: \"a\" needs --rw DIR in front of it" },
		{ { 2, { { &rw, "d" }, { &pin, "a/b" } } },
		  "--pin: \"a/b\" is no name of an entry of the --rw directory, without \"/\"" },
		{ { 2, { { &rw, "d" }, { &pin, "..:ro" } } },
		  "--pin: \"..:ro\" is no name of an entry of the --rw directory, without \"/\"" },
		{ { 1, { { &hide, "etc\x1b" } } },
		  "--hide: \"etc\\x1b\" is no absolute path such as /srv/x, without \"//\", \".\" "
		  "and \"..\"" },
		{ { 1, { { &hide, "/etc/../root" } } },
		  "--hide: \"/etc/../root\" is no absolute path such as /srv/x, without \"//\", "
		  "\".\" and \"..\"" },
		{ { 1, { { &ro, "" } } }, "--ro: \"\" is no path" },
		{ { 1, { { &rw, long_path } } },
		  "--rw: \"////////////////////////////////////////////////////////////////////"
		  "...\" is longer than 255 bytes" },
	};

	(void)state;
	memset(long_path, '/', sizeof(long_path) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct view_item view[VIEW_ITEMS_MAX] = { 0 };
		struct error e = ERROR_NULL;

		assert_int_equal(view_request_parse(&bad[i].list, view, &e), -EINVAL);
		assert_string_equal(e.text, bad[i].sentence);
	}
}

/* ---- in a directory of their own: DIR/d/e, DIR/link -> d ---- */

static int make_place(void **state)
{
	char *dir = strdup("/tmp/harpe-view-XXXXXX");

	if (!dir || !mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	*state = dir;
	return mkdir("d", 0755) + mkdir("d/e", 0755) + symlink("d", "link");
}

static int remove_place(void **state)
{
	unlink("link");
	rmdir("d/e");
	rmdir("d");
	rmdir(*state);
	free(*state);
	return chdir("/");
}

static void opens_what_it_hands_over(void **state)
{
	struct view_item view[VIEW_ITEMS_MAX] = {
		{ VIEW_RW, "d/" }, { VIEW_PIN, "e" }, { VIEW_RO, "link" }, { VIEW_RO, "./d/../d" }
	};
	int fds[3] = { -1, -1, -1 };
	char want[128];
	struct error e;

	assert_int_equal(view_request_open(view, fds, &e), 0);
	snprintf(want, sizeof(want), "%s/d", (const char *)*state);
	assert_string_equal(view[0].text, want);
	snprintf(want, sizeof(want), "%s/link", (const char *)*state);
	assert_string_equal(view[2].text, want);
	assert_string_equal(view[3].text, ""); /* ".." is the kernel's to understand */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_true(fcntl(fds[i], F_GETFL) & O_PATH);
		close(fds[i]);
	}
}

static void refuses_what_is_not_there(void **state)
{
	struct view_item view[VIEW_ITEMS_MAX] = { { VIEW_RW, "nothing" } };
	struct error e;
	int fd = -1;

	(void)state;
	assert_int_equal(view_request_open(view, &fd, &e), -ENOENT);
	assert_string_equal(e.text, "--rw: nothing: No such file or directory");
	assert_int_equal(fd, -1);
}

static void keeps_the_report_out(void **state)
{
	static const struct {
		const char *path;
		int r;
	} reports[] = {
		{ "r", 0 },	 { "d/r", -EINVAL }, { "d/e/r", -EINVAL }, { "link/e/r", -EINVAL },
		{ "d/../r", 0 }, { "/tmp/r", 0 },    { "fd:3", 0 },	   { "/r", 0 },
		{ "d/no/r", 0 }, /* whoever opens it says so */
	};
	struct view_item view[VIEW_ITEMS_MAX] = { { VIEW_RO, "." }, { VIEW_RW, "d" } };
	int fds[2] = { -1, -1 };
	char deep[700];
	struct error e;

	(void)state;
	assert_int_equal(view_request_open(view, fds, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++)
		assert_int_equal(view_request_check_report(view, fds, reports[i].path, &e),
				 reports[i].r);
	strcpy(deep, "d");
	while (strlen(deep) < 600)
		strcat(deep, "/e/..");
	strcat(deep, "/r");
	assert_int_equal(view_request_check_report(view, fds, deep, &e), -EINVAL);
	assert_mentions(e.text, "--report: d/e/../e", "", "");
	assert_mentions(e.text, "... lies in the", "", "");
	assert_mentions(e.text, "; write it elsewhere", "", "");
	close(fds[0]);
	close(fds[1]);
}

#define in_place(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_plain_paths),
		cmocka_unit_test(knows_entries),
		cmocka_unit_test(knows_what_is_below),
		cmocka_unit_test(keeps_what_is_the_guests_own),
		cmocka_unit_test(finds_mounts_below),
		cmocka_unit_test(sees_changes_of_what_all_views_show),
		cmocka_unit_test(checks_items),
		cmocka_unit_test(refuses_what_would_not_hold),
		cmocka_unit_test(counts_descriptors),
		cmocka_unit_test(fits_into_a_message),
		cmocka_unit_test(parses_options),
		cmocka_unit_test(refuses_options),
		in_place(opens_what_it_hands_over),
		in_place(refuses_what_is_not_there),
		in_place(keeps_the_report_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
