/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of io.max, io.stat and io.weight. What the kernel does with it is for tests/vm. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "governor/guest/cgroup_io.h"

static const char io_max[] = "8:0 rbps=1048576 wbps=max riops=max wiops=max\n"
			     "8:16 rbps=4096 wbps=65536 riops=max wiops=10\n"
			     "254:0 rbps=max wbps=max riops=7 wiops=max\n";
static const char io_stat[] = "8:0 rbytes=100 wbytes=20 rios=3 wios=1 dbytes=0 dios=0\n"
			      "7:0 \n"
			      "8:16 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n";

static void finds_the_value_of_a_disk(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(io_value_of(io_max, "8:0", "rbps", &v), 0);
	assert_int_equal(v, 1048576);
	assert_int_equal(io_value_of(io_max, "8:16", "wbps", &v), 0);
	assert_int_equal(v, 65536);
	assert_int_equal(io_value_of(io_max, "254:0", "rbps", &v), 0);
	assert_true(v == LIMIT_INFINITY);
	v = 4711;
	assert_int_equal(io_value_of(io_max, "8:1", "rbps", &v), -ENOENT); /* not 8:16 */
	assert_int_equal(io_value_of(io_max, "8:0", "bps", &v), -ENOENT);  /* not rbps */
	assert_int_equal(io_value_of(io_max, "8:0", "wiop", &v), -ENOENT);
	assert_int_equal(io_value_of("", "8:0", "rbps", &v), -ENOENT);
	assert_int_equal(io_value_of("8:0 rbps=x\n", "8:0", "rbps", &v), -EINVAL);
	assert_int_equal(v, 4711);
}

/* A key of the next line is not this line's. */
static void does_not_read_on(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(io_value_of("7:0 \n8:0 rbps=5\n", "7:0", "rbps", &v), -ENOENT);
	assert_int_equal(io_value_of("8:0 wbps=5\n rbps=6\n", "8:0", "rbps", &v), -ENOENT);
}

static void knows_the_smallest(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(io_smallest(io_max, "rbps", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(io_smallest(io_max, "wbps", &v), 0);
	assert_int_equal(v, 65536);
	assert_int_equal(io_smallest("", "wbps", &v), 0);
	assert_true(v == LIMIT_INFINITY);
	assert_int_equal(io_smallest("8:0 wbps=1x\n", "wbps", &v), -EINVAL);
}

static void sums_up(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(io_sum(io_stat, "rbytes", &v), 0);
	assert_int_equal(v, 101);
	assert_int_equal(io_sum(io_stat, "wbytes", &v), 0);
	assert_int_equal(v, 20);
	assert_int_equal(io_sum("", "wbytes", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(io_sum("1:0 a=18446744073709551615\n1:1 a=1", "a", &v), -ERANGE);
	assert_int_equal(io_sum("1:0 a=-1\n", "a", &v), -EINVAL);
}

/* ---- files ---- */

static const struct limits unbounded = { { 0, 0, 0, 0, 0, 0, 100, LIMIT_INFINITY,
					   LIMIT_INFINITY } };

static void put(int dirfd, const char *file, const char *text)
{
	int fd = openat(dirfd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, text, strlen(text)), 0);
	close(fd);
}

static void reads_files(void **state)
{
	char dir[] = "/tmp/harpe-gov-test-io-XXXXXX";
	uint64_t in = 0, out = 0;
	int dirfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(cgroup_io_bytes(dirfd, &in, &out), -ENOENT);
	assert_int_equal(cgroup_io_weight(dirfd, LIMIT_IO_WEIGHT, &in), -ENOENT);
	assert_int_equal(cgroup_io_smallest(dirfd, &in, &out), -ENOENT);
	put(dirfd, "io.stat", io_stat);
	put(dirfd, "io.max", io_max);
	put(dirfd, "io.weight", "default 70\n8:0 500\n");
	assert_int_equal(cgroup_io_bytes(dirfd, &in, &out), 0);
	assert_true(in == 101 && out == 20);
	assert_int_equal(cgroup_io_weight(dirfd, LIMIT_IO_WEIGHT, &in), 0);
	assert_int_equal(in, 70);
	assert_int_equal(cgroup_io_smallest(dirfd, &in, &out), 0);
	assert_true(in == 4096 && out == 65536);
	assert_int_equal(unlinkat(dirfd, "io.stat", 0) + unlinkat(dirfd, "io.max", 0) +
				 unlinkat(dirfd, "io.weight", 0),
			 0);
	close(dirfd);
	assert_int_equal(rmdir(dir), 0);
}

/* Not even a file is looked for. */
static void leaves_the_unbounded_alone(void **state)
{
	(void)state;
	assert_int_equal(cgroup_io_bound(-1, "P", &unbounded, NULL), 0);
	assert_int_equal(cgroup_io_verify(-1, "P", &unbounded, NULL), 0);
}

static void tells_what_cannot_be_read_back(void **state)
{
	struct limits limits = unbounded;
	struct error e = ERROR_NULL;

	(void)state;
	limits.value[LIMIT_IO_WRITE] = 4096;
	assert_int_equal(cgroup_io_verify(-1, "P", &limits, &e), -EBADF);
	assert_mentions(e.text, "P/io.max: cannot be read back", "", "");
}

/* The last of the lines that were written to a file which is none of the kernel's. */
static void lifts_what_is_bounded(void **state)
{
	char dir[] = "/tmp/harpe-gov-test-io-XXXXXX", text[256];
	int dirfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cgroup_io_lift(dirfd);
	put(dirfd, "io.max", "");
	cgroup_io_lift(dirfd);
	assert_int_equal(read_file_at(dirfd, "io.max", text, sizeof(text)), 0);
	put(dirfd, "io.max", "8:0 rbps=1\n254:16 rbps=max wbps=5\n");
	cgroup_io_lift(dirfd);
	assert_true(read_file_at(dirfd, "io.max", text, sizeof(text)) > 0);
	assert_int_equal(strncmp(text, "254:16 rbps=max wbps=max", 24), 0);
	assert_int_equal(unlinkat(dirfd, "io.max", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(dir), 0);
}

/* Every disk that this host has must be in the text; there may be none. */
static void finds_disks_that_are_not_bounded(void **state)
{
	char dir[] = "/tmp/harpe-gov-test-io-XXXXXX";
	struct limits limits = unbounded;
	struct error e = ERROR_NULL;
	int dirfd, r;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	limits.value[LIMIT_IO_WRITE] = 65536;
	put(dirfd, "io.max", "999:999 rbps=max wbps=65536 riops=max wiops=max\n");
	r = cgroup_io_verify(dirfd, "P", &limits, &e);
	assert_int_equal(unlinkat(dirfd, "io.max", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(dir), 0);
	if (r == 0)
		skip(); /* a host without disks */
	assert_int_equal(r, -ESTALE);
	assert_mentions(e.text, "P/io.max: disk ", "", "");
	assert_mentions(e.text, ": wbps is max where 65536 was set", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_value_of_a_disk),
		cmocka_unit_test(does_not_read_on),
		cmocka_unit_test(knows_the_smallest),
		cmocka_unit_test(sums_up),
		cmocka_unit_test(reads_files),
		cmocka_unit_test(leaves_the_unbounded_alone),
		cmocka_unit_test(tells_what_cannot_be_read_back),
		cmocka_unit_test(lifts_what_is_bounded),
		cmocka_unit_test(finds_disks_that_are_not_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
