/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of cgroup files, in directories that are none. What the kernel does with them is for the
 * tests with a kernel (tests/vm).
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "governor/guest/cgroup_counters.h"
#include "governor/guest/cgroup_limits.h"

#define MIB (UINT64_C(1) << 20)

/* The scope of a guest two levels below a root that stands for /sys/fs/cgroup. */
struct tree {
	char root[40], slice[64], scope[96];
	struct cgroup cg;
};

static const struct limits asked = { { 64 * MIB, 0, 500000, 128, 1000000, LIMIT_INFINITY,
				       IO_WEIGHT_DEFAULT, LIMIT_INFINITY, LIMIT_INFINITY } };
static const struct limits unasked = { { LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET,
					 LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET, LIMIT_UNSET,
					 LIMIT_UNSET } };

/* Writes a file, or removes it when @text is NULL. */
static void put(const char *dir, const char *file, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!text) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void assert_content(const char *dir, const char *file, const char *text)
{
	char path[256], got[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_true(read_file_at(AT_FDCWD, path, got, sizeof(got)) >= 0);
	assert_string_equal(got, text);
}

/* Unlike a cgroup's, the file keeps the end of a longer text that stood there. */
static void assert_written(const char *dir, const char *file, const char *text)
{
	char path[256], got[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_true(read_file_at(AT_FDCWD, path, got, sizeof(got)) >= (ssize_t)strlen(text));
	got[strlen(text)] = '\0';
	assert_string_equal(got, text);
}

static int make_tree(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	char guest[120];

	*state = t;
	strcpy(t->root, "/tmp/harpe-gov-test-cgroup-XXXXXX");
	assert_non_null(mkdtemp(t->root));
	snprintf(t->slice, sizeof(t->slice), "%s/harpe.slice", t->root);
	snprintf(t->scope, sizeof(t->scope), "%s/harpe-1.scope", t->slice);
	snprintf(guest, sizeof(guest), "%s/guest", t->scope);
	assert_true(mkdir(t->slice, 0700) == 0 && mkdir(t->scope, 0700) == 0 &&
		    mkdir(guest, 0700) == 0);
	put(t->scope, "memory.max", "67108864\n");
	put(t->scope, "memory.swap.max", "0\n");
	put(t->scope, "cpu.max", "50000 100000\n");
	put(t->scope, "io.weight", "default 100\n");
	put(t->scope, "guest/pids.max", "128\n");
	put(t->scope, "guest/memory.oom.group", "1\n");
	t->cg = CGROUP_NULL;
	t->cg.path = t->scope;
	t->cg.untold = limits_untold(&unasked, &asked);
	t->cg.scope_fd = open(t->scope, O_PATH | O_DIRECTORY | O_CLOEXEC);
	t->cg.guest_fd = open(guest, O_PATH | O_DIRECTORY | O_CLOEXEC);
	strcpy(t->cg.cpu_max, "50000 100000");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int remove_tree(void **state)
{
	struct tree *t = *state;

	cgroup_close(&t->cg);
	nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

/* ---- reading back ---- */

static struct limit_origins origins; /* of what verified() returned last */

static struct limits verified(const struct tree *t, const struct limits *want)
{
	struct limits in_force = {};
	struct error e = ERROR_NULL;

	for (int i = 0; i < LIMIT_COUNT; i++)
		strcpy(origins.text[i], LIMIT_ASKED);

	if (cgroup_verify(&t->cg, want, &in_force, &origins, &e) < 0)
		fail_msg("%s", e.text);
	return in_force;
}

static void assert_stale(const struct tree *t, const struct limits *want, int r, const char *file,
			 const char *what)
{
	struct limits in_force = { { 4711 } }, before = in_force;
	struct error e = ERROR_NULL;

	assert_int_equal(cgroup_verify(&t->cg, want, &in_force, &origins, &e), r);
	assert_mentions(e.text, t->scope, "/", "");
	assert_mentions(e.text, file, ": ", what);
	assert_memory_equal(&in_force, &before, sizeof(in_force));
}

static void finds_everything_in_force(void **state)
{
	struct limits got = verified(*state, &asked);

	assert_memory_equal(&got, &asked, sizeof(got));
}

static const struct {
	const char *path, *text; /* NULL: the file is not there */
	int r;
	const char *file, *what;
} stale[] = {
	{ "memory.max", "67112960\n", -ESTALE, "memory.max", "is 67112960 where 67108864 was set" },
	{ "memory.max", "67104768\n", -ESTALE, "memory.max", "is 67104768 where 67108864 was set" },
	{ "memory.max", "max\n", -ESTALE, "memory.max",
	  "is max where 67108864 was set, as when the memory controller is not available" },
	{ "memory.max", "\n", -EINVAL, "memory.max", "cannot be read back: Invalid argument" },
	{ "memory.max", "67108864x\n", -EINVAL, "memory.max",
	  "cannot be read back: Invalid argument" },
	{ "memory.max", NULL, -ENOENT, "memory.max",
	  "cannot be read back: No such file or directory" },
	{ "memory.swap.max", "4096\n", -ESTALE, "memory.swap.max", "is 4096 where 0 was set" },
	{ "memory.swap.max", "max\n", -ESTALE, "memory.swap.max", "is max where 0 was set" },
	{ "memory.swap.max", NULL, -ENOENT, "memory.swap.max",
	  "cannot be read back: No such file or directory" },
	{ "cpu.max", "max 100000\n", -ESTALE, "cpu.max",
	  "is max where 500000 was set, as when the cpu controller is not available" },
	{ "cpu.max", "50001 100000\n", -ESTALE, "cpu.max", "is 500010 where 500000 was set" },
	{ "cpu.max", "50000 50000\n", -ESTALE, "cpu.max", "is 1000000 where 500000 was set" },
	{ "cpu.max", "50000\n", -EINVAL, "cpu.max", "cannot be read back: Invalid argument" },
	{ "cpu.max", "50000 0\n", -EINVAL, "cpu.max", "cannot be read back: Invalid argument" },
	{ "cpu.max", "50000 \n", -EINVAL, "cpu.max", "cannot be read back: Invalid argument" },
	{ "cpu.max", NULL, -ENOENT, "cpu.max", "cannot be read back: No such file or directory" },
	{ "io.weight", "default 99\n8:0 100\n", -ESTALE, "io.weight", "is 99 where 100 was set" },
	{ "io.weight", "default x\n", -EINVAL, "io.weight",
	  "cannot be read back: Invalid argument" },
	{ "guest/pids.max", "129\n", -ESTALE, "pids.max", "is 129 where 128 was set" },
	{ "guest/pids.max", "max\n", -ESTALE, "pids.max", "is max where 128 was set" },
	{ "guest/pids.max", NULL, -ENOENT, "pids.max",
	  "cannot be read back: No such file or directory" },
	{ "guest/memory.oom.group", "0\n", -ESTALE, "guest/memory.oom.group", "is not 1" },
	{ "guest/memory.oom.group", "10\n", -ESTALE, "guest/memory.oom.group", "is not 1" },
	{ "guest/memory.oom.group", NULL, -ESTALE, "guest/memory.oom.group", "is not 1" },
};

static void finds_what_is_not_as_asked(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(stale); i++) {
		struct tree *t;

		assert_int_equal(remove_tree(state), 0);
		assert_int_equal(make_tree(state), 0);
		t = *state;
		put(t->scope, stale[i].path, stale[i].text);
		assert_stale(t, &asked, stale[i].r, stale[i].file, stale[i].what);
	}
}

/* A limit that nobody asked for is not as asked either. */
static void finds_limits_where_there_should_be_none(void **state)
{
	struct limits none = asked;
	struct tree *t = *state;

	none.value[LIMIT_MEMORY] = LIMIT_INFINITY;
	assert_stale(t, &none, -ESTALE, "memory.max",
		     "is 67108864 where 18446744073709551615 was set");
	put(t->scope, "memory.max", "max\n");
	assert_true(verified(t, &none).value[LIMIT_MEMORY] == LIMIT_INFINITY);
	none.value[LIMIT_CPU] = LIMIT_INFINITY;
	assert_stale(t, &none, -ESTALE, "cpu.max", "is 500000 where 18446744073709551615 was set");
	put(t->scope, "cpu.max", "max 100000\n");
	assert_true(verified(t, &none).value[LIMIT_CPU] == LIMIT_INFINITY);
	none.value[LIMIT_PIDS] = LIMIT_INFINITY;
	put(t->scope, "guest/pids.max", "max\n");
	assert_true(verified(t, &none).value[LIMIT_PIDS] == LIMIT_INFINITY);
}

/* Quotas as systemd writes them: whole microseconds, at least one millisecond per period, which it
 * makes longer for small ones. */
static const struct {
	uint64_t asked;
	const char *cpu_max;
	uint64_t in_force;
} quotas[] = {
	{ 1000000, "100000 100000", 1000000 }, { 4000000, "400000 100000", 4000000 },
	{ 10000, "1000 100000", 10000 },       { 5000, "1000 200000", 5000 },
	{ 1000, "1000 1000000", 1000 },	       { 333333, "33333 100000", 333330 },
	{ 333, "1000 1000000", 1000 },	       { 12345, "1234 100000", 12340 },
};

static void knows_what_systemd_writes(void **state)
{
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(quotas); i++) {
		struct limits want = asked;

		want.value[LIMIT_CPU] = quotas[i].asked;
		strcpy(t->cg.cpu_max, quotas[i].cpu_max);
		put(t->scope, "cpu.max", quotas[i].cpu_max);
		assert_int_equal(verified(t, &want).value[LIMIT_CPU], quotas[i].in_force);
	}
}

/* Systemd's own value is no excuse: the quota must be the one that was asked for. */
static void does_not_believe_systemd(void **state)
{
	struct tree *t = *state;

	strcpy(t->cg.cpu_max, "max 100000");
	put(t->scope, "cpu.max", "max 100000\n");
	assert_stale(t, &asked, -ESTALE, "cpu.max",
		     "is max where 500000 was set, as when the cpu controller is not available");
	strcpy(t->cg.cpu_max, "60000 100000");
	put(t->scope, "cpu.max", "60000 100000\n");
	assert_stale(t, &asked, -ESTALE, "cpu.max", "is 600000 where 500000 was set");
}

static void tells_the_smallest_on_the_way_up(void **state)
{
	struct tree *t = *state;
	struct limits want = asked;

	put(t->slice, "memory.max", "33554432\n");
	put(t->root, "memory.max", "50331648\n");
	put(t->slice, "pids.max", "max\n");
	put(t->root, "pids.max", "100\n");
	put(t->slice, "cpu.max", "25000 100000\n");
	put(t->slice, "memory.swap.max", "4096\n");
	want.value[LIMIT_MEMORY] = 32 * MIB;
	want.value[LIMIT_PIDS] = 100;
	want.value[LIMIT_CPU] = 250000;
	put(t->slice, "io.max", "8:0 rbps=5000 wbps=max riops=max wiops=max\n");
	put(t->slice, "io.weight", "default 1\n"); /* says nothing of those below */
	want.value[LIMIT_IO_READ] = 5000;
	assert_memory_equal(verified(t, &asked).value, want.value, sizeof(want.value));
	assert_string_equal(origins.text[LIMIT_MEMORY], t->slice);
	assert_string_equal(origins.text[LIMIT_PIDS], t->root);
	assert_string_equal(origins.text[LIMIT_IO_READ], t->slice);
	assert_string_equal(origins.text[LIMIT_IO_WRITE], "request");
	assert_string_equal(origins.text[LIMIT_TIME], "request");
}

/* A quota that systemd had to round is still the one that was asked for. */
static void rounding_is_no_ancestors(void **state)
{
	struct tree *t = *state;
	struct limits want = asked;

	want.value[LIMIT_CPU] = 333333;
	strcpy(t->cg.cpu_max, "33333 100000");
	put(t->scope, "cpu.max", "33333 100000\n");
	assert_int_equal(verified(t, &want).value[LIMIT_CPU], 333330);
	assert_string_equal(origins.text[LIMIT_CPU], "request");
}

/* No io controller, or none with weights: an error for who asked, unknown for who did not. */
static void may_lack_a_weight(void **state)
{
	struct tree *t = *state;

	put(t->scope, "io.weight", NULL);
	assert_true(verified(t, &asked).value[LIMIT_IO_WEIGHT] == LIMIT_UNSET);
	assert_int_equal(verified(t, &asked).value[LIMIT_MEMORY], 64 * MIB);
	t->cg.untold &= ~(1u << LIMIT_IO_WEIGHT);
	assert_stale(t, &asked, -ENOENT, "io.weight",
		     "cannot be read back: No such file or directory, as when the io controller is "
		     "not available");
	t->cg.untold = 0; /* whoever forgets to say so gets no guest */
	assert_stale(t, &asked, -ENOENT, "io.weight", "cannot be read back");
}

static void knows_who_is_no_member(void **state)
{
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	assert_int_equal(cgroup_verify_member(&t->cg, getpid(), &e), -ESTALE);
	assert_mentions(e.text, "is not in ", t->scope, "/guest");
	assert_int_equal(cgroup_verify_member(&t->cg, 0, &e),
			 -ESTALE); /* there is no such process */
}

/* ---- a scope that was made before the request came, with more than that asks for ---- */

static const struct limits less = { { 32 * MIB, 0, 250000, 100, 1000000, LIMIT_INFINITY,
				      IO_WEIGHT_DEFAULT, LIMIT_INFINITY, LIMIT_INFINITY } };
static const struct limits made_with = { { 64 * MIB, 8 * MIB, 500000, 128, 1000000, LIMIT_INFINITY,
					   IO_WEIGHT_DEFAULT, LIMIT_INFINITY, LIMIT_INFINITY } };

static const char *const guest_files[] = { "guest/memory.max", "guest/memory.swap.max",
					   "guest/cpu.max" };

static void put_made(const struct tree *t)
{
	put(t->scope, "memory.swap.max", "8388608\n");
	for (size_t i = 0; i < ARRAY_SIZE(guest_files); i++)
		put(t->scope, guest_files[i], "");
}

static void bound(struct tree *t, const struct limits *limits)
{
	struct error e = ERROR_NULL;

	if (cgroup_bound(&t->cg, limits, &made_with, &e) < 0)
		fail_msg("%s", e.text);
}

/* The quota comes last: nothing of the set-up is slowed. */
static void gives_guest_less_than_the_scope(void **state)
{
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	put_made(t);
	bound(t, &less);
	assert_content(t->scope, "guest/memory.max", "33554432");
	assert_content(t->scope, "guest/memory.swap.max", "0");
	assert_content(t->scope, "guest/pids.max", "100");
	assert_content(t->scope, "guest/cpu.max", "");
	assert_written(t->scope, "cpu.max", "max");
	assert_content(t->scope, "memory.max", "67108864");
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0);
	assert_content(t->scope, "guest/cpu.max", "25000 100000");
	assert_content(t->scope, "cpu.max", "50000 100000");
	put(t->scope, "guest/cpu.max", NULL);
	t->cg.lifted = true;
	assert_int_equal(cgroup_throttle(&t->cg, &e), -ENOENT);
	assert_mentions(e.text, "/guest/cpu.max", ": cannot write \"25000 100000\"", "");
}

/* Where one process alone is not slowed, cpu.max of the scope stays in force. */
static void lifts_no_quota_of_a_whole_cpu(void **state)
{
	struct limits whole = made_with, limits;
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	put_made(t);
	put(t->scope, "cpu.max", "100000 100000");
	whole.value[LIMIT_CPU] = 1000000;
	assert_int_equal(cgroup_bound(&t->cg, &whole, &whole, &e), 0);
	assert_content(t->scope, "cpu.max", "100000 100000");
	assert_content(t->scope, "guest/cpu.max", "100000 100000");
	put(t->scope, "guest/cpu.max", "");
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0); /* nothing was lifted */
	assert_content(t->scope, "guest/cpu.max", "");
	limits = whole;
	limits.value[LIMIT_CPU] = 999990;
	assert_int_equal(cgroup_bound(&t->cg, &limits, &whole, &e), 0);
	assert_written(t->scope, "cpu.max", "max");
	assert_content(t->scope, "guest/cpu.max", "");
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0);
	assert_content(t->scope, "cpu.max", "100000 100000");
	assert_content(t->scope, "guest/cpu.max", "99999 100000");
}

/* What the scope was made for is not written again: these files are not even there. */
static void gives_guest_nothing_of_its_own(void **state)
{
	struct tree *t = *state;
	struct limits limits = made_with;
	struct error e = ERROR_NULL;

	limits.value[LIMIT_PIDS] = 7;
	put(t->scope, "guest/pids.max", "");
	assert_int_equal(cgroup_bound(&t->cg, &limits, NULL, &e), 0);
	assert_content(t->scope, "guest/pids.max", "7");
	assert_string_equal(t->cg.guest_cpu_max, "");
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0);
	put(t->scope, "guest/cgroup.kill", "");
	put(t->scope, "guest/cgroup.events", "populated 0\n");
	assert_int_equal(cgroup_kill(&t->cg, 1000, &e), 0);
}

static void names_what_cannot_be_bounded(void **state)
{
	static const struct {
		enum limit limit;
		const char *file;
	} cases[] = { { LIMIT_MEMORY, "/guest/memory.max" },
		      { LIMIT_SWAP, "/guest/memory.swap.max" } };
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limits limits = made_with;

		limits.value[cases[i].limit] = 0;
		assert_int_equal(cgroup_bound(&t->cg, &limits, &made_with, &e), -ENOENT);
		assert_mentions(e.text, cases[i].file, ": cannot write \"0\"", "");
		assert_content(t->scope, "cpu.max", "50000 100000"); /* nothing was lifted */
		put(t->scope, cases[i].file + 1, "");
	}
	put(t->scope, "guest/pids.max", NULL);
	assert_int_equal(cgroup_bound(&t->cg, &made_with, &made_with, &e), -ENOENT);
	put(t->scope, "guest/pids.max", "max");
	put(t->scope, "cpu.max", NULL);
	assert_int_equal(cgroup_bound(&t->cg, &made_with, &made_with, &e), -ENOENT);
	assert_mentions(e.text, t->scope, "/cpu.max: cannot be read", "");
}

static struct tree *make_bounded(void **state, const struct limits *limits)
{
	struct error e = ERROR_NULL;
	struct tree *t;

	assert_int_equal(remove_tree(state), 0);
	assert_int_equal(make_tree(state), 0);
	t = *state;
	put_made(t);
	bound(t, limits);
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0);
	return t;
}

static void finds_both_in_force(void **state)
{
	struct limits got = verified(make_bounded(state, &less), &less);

	assert_memory_equal(&got, &less, sizeof(got));
	assert_string_equal(origins.text[LIMIT_MEMORY], LIMIT_ASKED);
	got = verified(make_bounded(state, &made_with), &made_with);
	assert_memory_equal(&got, &made_with, sizeof(got));
}

/* Somebody had an hour to change any of it. */
static const struct {
	const char *path, *text; /* NULL: the file is not there */
	const char *file, *what;
} changed[] = {
	{ "memory.max", "67112960\n", "/memory.max", "is 67112960 where 67108864 was set" },
	{ "memory.max", "max\n", "/memory.max", "is max where 67108864 was set" },
	{ "memory.max", "33554432\n", "/memory.max", "is 33554432 where 67108864 was set" },
	{ "memory.swap.max", "max\n", "/memory.swap.max", "is max where 8388608 was set" },
	{ "memory.swap.max", "0\n", "/memory.swap.max", "is 0 where 8388608 was set" },
	{ "cpu.max", "max 100000\n", "/cpu.max", "is max where 500000 was set" },
	{ "cpu.max", "60000 100000\n", "/cpu.max", "is 600000 where 500000 was set" },
	{ "guest/memory.max", "67108864\n", "/guest/memory.max",
	  "is 67108864 where 33554432 was set" },
	{ "guest/memory.max", "max\n", "/guest/memory.max", "is max where 33554432 was set" },
	{ "guest/memory.max", "4096\n", "/guest/memory.max", "is 4096 where 33554432 was set" },
	{ "guest/memory.swap.max", "8388608\n", "/guest/memory.swap.max",
	  "is 8388608 where 0 was set" },
	{ "guest/memory.swap.max", "max\n", "/guest/memory.swap.max", "is max where 0 was set" },
	{ "guest/cpu.max", "50000 100000\n", "/guest/cpu.max", "is 500000 where 250000 was set" },
	{ "guest/cpu.max", "max 100000\n", "/guest/cpu.max", "is max where 250000 was set" },
	{ "guest/pids.max", "128\n", "/guest/pids.max", "is 128 where 100 was set" },
	{ "guest/memory.oom.group", "0\n", "/guest/memory.oom.group", "is not 1" },
	{ "guest/memory.max", NULL, "/guest/memory.max", "cannot be read back" },
	{ "guest/cpu.max", NULL, "/guest/cpu.max", "cannot be read back" },
	{ "memory.max", NULL, "/memory.max", "cannot be read back" },
};

static void finds_what_was_changed_meanwhile(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(changed); i++) {
		struct tree *t = make_bounded(state, &less);
		int r = changed[i].text ? -ESTALE : -ENOENT;

		put(t->scope, changed[i].path, changed[i].text);
		assert_stale(t, &less, r, changed[i].file, changed[i].what);
	}
}

static int recheck(const struct tree *t, const struct limits *own, struct error *e)
{
	return cgroup_recheck(t->scope, own, own, e);
}

/* As audit looks: what the two allow together. */
static void rechecks_both(void **state)
{
	static const struct {
		const char *scope, *none, *guest, *text, *what;
	} more[] = {
		{ "memory.max", "max\n", "guest/memory.max", "67108864\n",
		  "/memory.max: allows 67108864 where 33554432 was set" },
		{ "memory.swap.max", "max\n", "guest/memory.swap.max", "4096\n",
		  "/memory.swap.max: allows 4096 where 0 was set" },
		{ "cpu.max", "max 100000\n", "guest/cpu.max", "50000 100000\n",
		  "/cpu.max: allows 500000 where 250000 was set" },
	};
	struct error e = ERROR_NULL;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		struct tree *t = make_bounded(state, &less);

		assert_int_equal(recheck(t, &less, &e), 0);
		put(t->scope, more[i].scope, more[i].none); /* guest/ bounds it all the same */
		assert_int_equal(recheck(t, &less, &e), 0);
		put(t->scope, more[i].guest, more[i].text);
		assert_int_equal(recheck(t, &less, &e), -ESTALE);
		assert_mentions(e.text, t->scope, more[i].what, "");
	}
}

static void lifts_both_for_the_kill(void **state)
{
	struct tree *t = make_bounded(state, &less);
	struct error e = ERROR_NULL;

	put(t->scope, "guest/cgroup.kill", "");
	put(t->scope, "guest/cgroup.events", "populated 1\n");
	assert_int_equal(cgroup_kill(&t->cg, 20, &e), -ETIMEDOUT);
	assert_written(t->scope, "guest/cpu.max", "max");
	assert_written(t->scope, "cpu.max", "max");
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0); /* for the next guest */
	assert_written(t->scope, "guest/cpu.max", "25000 100000");
	assert_written(t->scope, "cpu.max", "50000 100000");
	t = make_bounded(state, &less);
	put(t->scope, "cgroup.kill", "");
	cgroup_kill_scope(t->cg.scope_fd);
	assert_content(t->scope, "cgroup.kill", "1");
	assert_written(t->scope, "guest/cpu.max", "max");
	assert_written(t->scope, "cpu.max", "max");
}

static void opens_what_was_made(void **state)
{
	struct tree *t = *state;
	struct cgroup cg = CGROUP_NULL;
	struct error e = ERROR_NULL;
	int before = open_fds();
	char guest[120];

	assert_int_equal(cgroup_open(&cg, t->scope, &e), -ENOENT);
	assert_mentions(e.text, t->scope, "/guest/cgroup.events: cannot be read", "");
	cgroup_close(&cg);
	put(t->scope, "guest/cgroup.events", "populated 0\nfrozen 0\n");
	put(t->scope, "memory.events.local", "max 9\noom 7\n");
	assert_int_equal(cgroup_open(&cg, t->scope, &e), 0);
	assert_int_equal(open_fds(), before + 2);
	assert_int_equal(cg.ooms_before, 7);
	cgroup_close(&cg);
	put(t->scope, "guest/cgroup.events", "populated 0\nfrozen 1\n");
	assert_int_equal(cgroup_open(&cg, t->scope, &e), -ESTALE);
	assert_mentions(e.text, t->scope, "/guest: is frozen", "");
	cgroup_close(&cg);
	assert_int_equal(cgroup_open(&cg, t->slice, &e), -ENOENT);
	assert_mentions(e.text, t->slice, "/guest: cannot be opened", "");
	cgroup_close(&cg);
	snprintf(guest, sizeof(guest), "%s/guest", t->slice);
	put(t->slice, "guest", "");
	assert_int_equal(cgroup_open(&cg, t->slice, &e), -ENOTDIR);
	cgroup_close(&cg);
	assert_int_equal(cgroup_open(&cg, "/nowhere/none.scope", &e), -ENOENT);
	cgroup_close(&cg);
	assert_int_equal(open_fds(), before);
}

/* ---- counters ---- */

static void counts(void **state)
{
	struct tree *t = *state;
	struct report r;
	uint64_t usec = 0;

	put(t->scope, "guest/cpu.stat", "usage_usec 300\nuser_usec 200\nsystem_usec 100\n");
	put(t->scope, "cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 77\nx 1\n");
	put(t->scope, "guest/memory.peak", "1048576\n");
	put(t->scope, "guest/memory.swap.peak", "4096\n");
	put(t->scope, "guest/io.stat", "8:0 rbytes=7 wbytes=8\n8:16 rbytes=1 wbytes=1\n");
	put(t->scope, "guest/memory.events", "low 0\noom 5\noom_kill 3\noom_group_kill 1\n");
	put(t->scope, "guest/pids.peak", "4\n");
	put(t->scope, "guest/pids.events", "max 6\n");
	put(t->scope, "guest/pids.current", "2\n");
	report_clear(&r);
	cgroup_counters(&t->cg, &r);
	assert_int_equal(r.cpu_usec, 300);
	assert_int_equal(r.cpu_user_usec, 200);
	assert_int_equal(r.cpu_system_usec, 100);
	assert_int_equal(r.throttled_usec, 77);
	assert_int_equal(r.memory_peak, 1048576);
	assert_int_equal(r.memory_oom_kills, 3);
	assert_int_equal(r.swap_peak, 4096);
	assert_true(r.io_read == 8 && r.io_written == 9);
	assert_int_equal(r.pids_peak, 4);
	assert_int_equal(r.pids_refused, 6);
	assert_int_equal(cgroup_tasks(&t->cg), 2);
	assert_int_equal(cgroup_cpu_usage(&t->cg, &usec), 0);
	assert_int_equal(usec, 300);
}

/* What stood in the way: guest/'s own limits, where it has some, since others count for the scope.
 */
static void counts_where_the_limits_stand(void **state)
{
	struct tree *t = *state;
	struct report r;

	put(t->scope, "cpu.stat", "usage_usec 9\nthrottled_usec 70\n");
	put(t->scope, "memory.events.local", "max 9\noom 2\n");
	put(t->scope, "guest/cpu.stat", "usage_usec 300\nthrottled_usec 7\n");
	put(t->scope, "guest/memory.events.local", "max 9\noom 3\n");
	report_clear(&r);
	cgroup_counters(&t->cg, &r);
	assert_true(r.throttled_usec == 70 && r.memory_limit_hits == 2);
	t->cg.made = &made_with;
	t->cg.ooms_before = 2;
	cgroup_counters(&t->cg, &r);
	assert_true(r.throttled_usec == 7 && r.memory_limit_hits == 3);
	t->cg.ooms_before = 1; /* the scope's was hit for this guest, too */
	cgroup_counters(&t->cg, &r);
	assert_int_equal(r.memory_limit_hits, 4);
	t->cg.ooms_before = REPORT_UNKNOWN;
	cgroup_counters(&t->cg, &r);
	assert_int_equal(r.memory_limit_hits, 3);
	put(t->scope, "guest/memory.max", "max\n");
	cgroup_counters_at(t->scope, &r);
	assert_true(r.throttled_usec == 70 && r.memory_limit_hits == 2);
	put(t->scope, "guest/memory.max", "4096\n");
	cgroup_counters_at(t->scope, &r);
	assert_true(r.throttled_usec == 7 && r.memory_limit_hits == 3);
}

/* A scope that served a guest: rmdir(2) fails as long as something is in there. */
static void does_not_renew_what_is_not_empty(void **state)
{
	struct tree *t = *state;
	struct cgroup cg = CGROUP_NULL;
	struct error e = ERROR_NULL;

	assert_int_equal(cgroup_renew(&cg, t->scope, &asked, &e), -EBUSY);
	assert_mentions(e.text, t->scope, "/guest: cannot be removed", "");
	cgroup_close(&cg);
}

static void does_not_renew_what_is_still_charged(void **state)
{
	static const struct {
		const char *memory, *swap;
	} left[] = {
		{ "4194305\n", "0\n" }, { "max\n", "0\n" },  { "x\n", "0\n" },
		{ "4096\n", "1\n" },	{ "4096\n", "x\n" }, { NULL, "0\n" },
	};
	struct tree *t = *state;

	put(t->scope, "guest/pids.max", NULL);
	put(t->scope, "guest/memory.oom.group", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		struct cgroup cg = CGROUP_NULL;
		struct error e = ERROR_NULL;
		char guest[120];

		snprintf(guest, sizeof(guest), "%s/guest", t->scope);
		put(t->scope, "memory.current", left[i].memory);
		put(t->scope, "memory.swap.current", left[i].swap);
		assert_int_equal(cgroup_renew(&cg, t->scope, &asked, &e), -EBUSY);
		assert_mentions(e.text, t->scope, ": memory of its last guest is left", "");
		cgroup_close(&cg);
		assert_int_equal(mkdir(guest, 0700), 0);
	}
}

/* Of a scope of somebody else's, or one that is gone. */
static void counts_elsewhere(void **state)
{
	struct tree *t = *state;
	struct report r, cleared;
	int before = open_fds();

	put(t->scope, "guest/pids.peak", "4\n");
	report_clear(&cleared);
	report_clear(&r);
	cgroup_counters_at(t->scope, &r);
	assert_int_equal(r.pids_peak, 4);
	report_clear(&r);
	cgroup_counters_at(t->slice, &r);
	cgroup_counters_at("/nowhere/none.scope", &r);
	assert_memory_equal(&r, &cleared, sizeof(r));
	assert_int_equal(open_fds(), before);
}

static void sample(const struct tree *t, struct report *r, const char *text)
{
	put(t->scope, "guest/memory.stat", text);
	cgroup_sample_memory(&t->cg, r);
}

/* The largest of each, whenever it was; of the dead only the cache is left. */
static void keeps_the_largest_of_each(void **state)
{
	struct tree *t = *state;
	struct cgroup none = CGROUP_NULL;
	struct report r, cleared;

	report_clear(&r);
	report_clear(&cleared);
	cgroup_sample_memory(&none, &r);
	cgroup_sample_memory(&t->cg, &r);
	sample(t, &r, "anon 1\nfile x\nshmem 0\n");
	sample(t, &r, "anon 1\nshmem 0\n");
	assert_memory_equal(&r, &cleared, sizeof(r));
	sample(t, &r, "anon 0\nfile 700\nkernel 5\nshmem 0\n");
	assert_true(r.memory_anon == REPORT_UNKNOWN && r.memory_shmem == REPORT_UNKNOWN);
	assert_int_equal(r.memory_cache, 700);
	sample(t, &r, "anon 100\nfile 50\nshmem 20\n");
	sample(t, &r, "anon 90\nfile 900\nshmem 60\n");
	sample(t, &r, "anon 0\nfile 0\nshmem 0\n");
	assert_int_equal(r.memory_anon, 100);
	assert_int_equal(r.memory_shmem, 60);
	assert_int_equal(r.memory_cache, 840);
}

static void assert_nothing_is_known(const struct cgroup *cg)
{
	struct report r, cleared;

	report_clear(&r);
	report_clear(&cleared);
	cgroup_counters(cg, &r);
	assert_memory_equal(&r, &cleared, sizeof(r));
}

/* Never 0 for what could not be read. */
static void knows_what_it_does_not_know(void **state)
{
	static const char *const files[] = {
		"cpu.stat",	     "guest/cpu.stat",	    "guest/memory.peak",
		"guest/pids.peak",   "guest/memory.events", "guest/pids.events",
		"guest/pids.current"
	};
	static const char *const texts[] = { "",
					     "\n",
					     "none of these 1\n",
					     "oom_kills 1\n",
					     "usage_usec\noom_kill\nmax\nuser_usec x\n",
					     "99999999999999999999999\n" };
	struct cgroup none = CGROUP_NULL;
	struct tree *t = *state;
	uint64_t usec;

	assert_nothing_is_known(&none);
	assert_nothing_is_known(&t->cg);
	assert_true(cgroup_tasks(&t->cg) == REPORT_UNKNOWN);
	assert_int_equal(cgroup_cpu_usage(&t->cg, &usec), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(files); j++)
			put(t->scope, files[j], texts[i]);
		assert_nothing_is_known(&t->cg);
		assert_true(cgroup_tasks(&t->cg) == REPORT_UNKNOWN);
		assert_true(cgroup_cpu_usage(&t->cg, &usec) < 0);
	}
}

/* ---- writing ---- */

static void puts_the_quota_back(void **state)
{
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	put(t->scope, "cpu.max", "max 100000\n");
	t->cg.lifted = true;
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0);
	assert_content(t->scope, "cpu.max", "50000 100000");
	put(t->scope, "cpu.max", NULL);
	assert_int_equal(cgroup_throttle(&t->cg, &e), 0); /* it is back already */
	t->cg.lifted = true;
	assert_int_equal(cgroup_throttle(&t->cg, &e), -ENOENT);
	assert_mentions(e.text, t->scope, "/cpu.max: cannot write \"50000 100000\"", ": ");
}

static void kills_and_waits(void **state)
{
	struct tree *t = *state;
	struct error e = ERROR_NULL;
	struct cgroup none = CGROUP_NULL;

	put(t->scope, "cpu.max", "");
	put(t->scope, "guest/cgroup.kill", "");
	put(t->scope, "guest/cgroup.events", "populated 0\nfrozen 0\n");
	assert_int_equal(cgroup_kill(&t->cg, 1000, &e), 0);
	assert_content(t->scope, "guest/cgroup.kill", ""); /* there is nobody */
	assert_content(t->scope, "cpu.max", "");
	put(t->scope, "guest/cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(cgroup_kill(&t->cg, 20, &e), -ETIMEDOUT);
	assert_content(t->scope, "guest/cgroup.kill", "1");
	assert_content(t->scope, "cpu.max", "max"); /* throttled processes die slowly */
	assert_int_equal(cgroup_kill(&none, 1000, &e), 0);
}

static void tells_what_it_cannot_kill(void **state)
{
	static const char *const texts[] = { "populated 1\nfrozen 0\n", "frozen 0\n", "",
					     "populated x\n" };
	struct tree *t = *state;

	put(t->scope, "guest/cgroup.kill", "");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error e = ERROR_NULL;

		put(t->scope, "guest/cgroup.events", texts[i]);
		assert_int_equal(cgroup_kill(&t->cg, 20, &e), -ETIMEDOUT);
		assert_mentions(e.text, t->scope, "/guest: is not empty after SIGKILL", "");
	}
}

/* Systemd may remove the directory at any time. */
static void takes_a_guest_that_is_gone_for_dead(void **state)
{
	struct tree *t = *state;
	struct error e = ERROR_NULL;

	assert_int_equal(cgroup_kill(&t->cg, 1000, &e), 0);
	put(t->scope, "guest/cgroup.kill", "");
	assert_int_equal(cgroup_kill(&t->cg, 1000, &e), 0);
}

static void assert_not_prepared(const char *scope, int r, const char *what)
{
	struct cgroup cg = CGROUP_NULL;
	struct error e = ERROR_NULL;
	int before = open_fds();

	assert_int_equal(cgroup_make(&cg, scope, 12, &e), r);
	assert_mentions(e.text, scope, what, "");
	cgroup_close(&cg);
	assert_int_equal(cg.scope_fd, -1);
	assert_int_equal(open_fds(), before);
}

static void does_not_start_where_there_is_no_cgroup(void **state)
{
	struct tree *t = *state;
	char link[80];

	assert_not_prepared("/nowhere/none.scope", -ENOENT, ": cannot be opened: ");
	snprintf(link, sizeof(link), "%s/link", t->root);
	assert_int_equal(symlink(t->slice, link), 0);
	assert_not_prepared(link, -ENOTDIR, ": cannot be opened: ");
	assert_not_prepared(t->slice, -ENOENT, "/sup/cgroup.procs: cannot write \"12\"");
	assert_not_prepared(t->slice, -EEXIST, "/sup: cannot be made"); /* not made by us */
}

#define tree_test(f) cmocka_unit_test_setup_teardown(f, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(finds_everything_in_force),
		tree_test(finds_what_is_not_as_asked),
		tree_test(finds_limits_where_there_should_be_none),
		tree_test(knows_what_systemd_writes),
		tree_test(does_not_believe_systemd),
		tree_test(tells_the_smallest_on_the_way_up),
		tree_test(knows_who_is_no_member),
		tree_test(rounding_is_no_ancestors),
		tree_test(may_lack_a_weight),
		tree_test(gives_guest_less_than_the_scope),
		tree_test(lifts_no_quota_of_a_whole_cpu),
		tree_test(gives_guest_nothing_of_its_own),
		tree_test(names_what_cannot_be_bounded),
		tree_test(finds_both_in_force),
		tree_test(finds_what_was_changed_meanwhile),
		tree_test(rechecks_both),
		tree_test(lifts_both_for_the_kill),
		tree_test(opens_what_was_made),
		tree_test(counts),
		tree_test(counts_where_the_limits_stand),
		tree_test(does_not_renew_what_is_not_empty),
		tree_test(does_not_renew_what_is_still_charged),
		tree_test(counts_elsewhere),
		tree_test(keeps_the_largest_of_each),
		tree_test(knows_what_it_does_not_know),
		tree_test(puts_the_quota_back),
		tree_test(kills_and_waits),
		tree_test(tells_what_it_cannot_kill),
		tree_test(takes_a_guest_that_is_gone_for_dead),
		tree_test(does_not_start_where_there_is_no_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
