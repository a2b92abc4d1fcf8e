/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/request.h"
#include "common/text.h"

#define MAX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
/* A vector of literals, as main() gets one. */
#define STRINGS(...) ((char **)(const char *[]){ __VA_ARGS__, NULL })

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void knows_names(void **state)
{
	static const char *const good[] = { "a", "run-1", "A.b_c", "0", "_", MAX64 };
	static const char *const bad[] = { "",	  "-a",	      ".a",	 "a b", "a/b",
					   "a\n", "\xc3\xa9", MAX64 "x", "a@b", ".." };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(name_valid(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(name_valid(bad[i]));
}

static void assert_command(char *const argv[], const char *expected)
{
	char text[COMMAND_TEXT_MAX + 1];

	command_text(argv, text);
	assert_string_equal(text, expected);
}

static void shows_commands(void **state)
{
	(void)state;
	assert_command((char *[]){ NULL }, "");
	assert_command(STRINGS("python3", "/tmp/out.py"), "python3 /tmp/out.py");
	assert_command(STRINGS("a\nb", "\x1b[2J", "\xc3\xa9", "\xc3", "\x7f", "", "z"),
		       "a\\x0ab \\x1b[2J \xc3\xa9 \\xc3 \\x7f  z");
}

static void cuts_long_commands(void **state)
{
	char arg[2 * COMMAND_TEXT_MAX], text[COMMAND_TEXT_MAX + 1];

	(void)state;
	for (size_t len = COMMAND_TEXT_MAX - 8; len < COMMAND_TEXT_MAX + 8; len++) {
		memset(arg, 'x', len);
		arg[len] = '\0';
		command_text(STRINGS(arg), text);
		if (len <= COMMAND_TEXT_MAX) {
			assert_string_equal(text, arg);
			continue;
		}
		assert_int_equal(strlen(text), COMMAND_TEXT_MAX);
		assert_string_equal(text + COMMAND_TEXT_MAX - 4, "x...");
	}
	memset(arg, '\n', sizeof(arg));
	arg[sizeof(arg) - 1] = '\0';
	command_text(STRINGS("abc", arg), text);
	assert_true(strlen(text) <= COMMAND_TEXT_MAX && text_printable(text));
	assert_string_equal(text + strlen(text) - 7, "\\x0a...");
}

static void checks_content(void **state)
{
	struct request q;
	struct error e = ERROR_NULL;

	(void)state;
	request_clear(&q);
	assert_int_equal(request_check(&q, &e), 0);
	strcpy(q.name, "a b");
	assert_int_equal(request_check(&q, &e), -EINVAL);
	strcpy(q.name, "a-b");
	strcpy(q.target, "../x");
	assert_int_equal(request_check(&q, &e), -EINVAL);
	strcpy(q.target, "0123456789abcdef");
	strcpy(q.command, "a\x1b[2J");
	assert_int_equal(request_check(&q, &e), -EINVAL);
	strcpy(q.command, "a\xc2\x9b");
	assert_int_equal(request_check(&q, &e), -EINVAL);
	strcpy(q.command, "a b \u00fc");
	q.umask = 01000;
	assert_int_equal(request_check(&q, &e), -EINVAL);
	q.umask = 0777;
	assert_int_equal(request_check(&q, &e), 0);
}

static void goes_over_the_wire(void **state)
{
	WIRE_BUFFER(buf);
	struct request q, back;
	ssize_t n;

	(void)state;
	request_clear(&q);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_true(q.limits.value[i] == LIMIT_UNSET);
	q.limits.value[LIMIT_CPU] = 12;
	q.umask = 022;
	q.rlimits[3] = (struct rlimit){ 1, 2 };
	strcpy(q.name, "n");
	strcpy(q.command, "c");
	strcpy(q.target, "t");
	n = wire_encode(WIRE_RUN, request_fields, request_n_fields, &q, buf, sizeof(buf));
	assert_true(n > 0);
	request_clear(&back);
	assert_int_equal(wire_decode(request_fields, request_n_fields, buf, (size_t)n, &back, NULL),
			 0);
	assert_memory_equal(&q.limits, &back.limits, sizeof(q.limits));
	assert_memory_equal(q.rlimits, back.rlimits, sizeof(q.rlimits));
	assert_int_equal(back.umask, 022);
	assert_string_equal(back.name, "n");
	assert_string_equal(back.command, "c");
	assert_string_equal(back.target, "t");
}

/* ---- strings ---- */

static void assert_vector(char **got, char *const want[])
{
	for (; *want; want++, got++)
		assert_string_equal(*got, *want);
	assert_null(*got);
}

static void packs_and_unpacks(void **state)
{
	char **argv = STRINGS("prog", "", "a\nb", "\xff\xfe");
	char **envp = STRINGS("A=1", "no equals sign", "", "B=\x01");
	char **got_argv, **got_envp;
	int before = open_fds(), fd;
	struct error e;

	(void)state;
	fd = strings_pack(argv, envp, &e);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & ALL_SEALS, ALL_SEALS);
	assert_int_equal(strings_check(fd, &e), 0);
	assert_int_equal(strings_unpack(fd, &got_argv, &got_envp), 0);
	assert_vector(got_argv, argv);
	assert_vector(got_envp, envp);
	free(got_argv);
	free(got_envp);
	close(fd);
	assert_int_equal(open_fds(), before);
}

static void refuses_too_many_bytes(void **state)
{
	_cleanup_free_ char *big = malloc(GUEST_STRINGS_MAX + 1);
	char **argv = STRINGS("x"), **envp = STRINGS(big);
	struct error e = ERROR_NULL;
	int before = open_fds(), fd;

	(void)state;
	memset(big, 'y', GUEST_STRINGS_MAX);
	big[GUEST_STRINGS_MAX] = '\0';
	assert_int_equal(strings_pack(argv, envp, &e), -E2BIG);
	assert_non_null(strstr(e.text, "8388608"));
	big[GUEST_STRINGS_MAX - 3] = '\0'; /* with "x" and two NULs just right */
	fd = strings_pack(argv, envp, &e);
	assert_true(fd >= 0);
	assert_int_equal(strings_check(fd, &e), 0);
	close(fd);
	assert_int_equal(open_fds(), before);
}

static int memfd(const void *data, size_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, data, len), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void assert_check_fails(int fd)
{
	struct error e = ERROR_NULL;

	assert_int_equal(strings_check(fd, &e), -EINVAL);
	assert_true(e.text[0]);
	close(fd);
}

static void refuses_what_is_no_sealed_memfd(void **state)
{
	static const int seals[] = { F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE };
	char data[16] = {};
	FILE *file = tmpfile();
	int pipe_ends[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seals); i++)
		assert_check_fails(memfd(data, sizeof(data), ALL_SEALS & ~seals[i]));
	assert_check_fails(memfd(data, sizeof(data), 0));
	assert_check_fails(memfd(data, 7, ALL_SEALS));
	assert_check_fails(open("/dev/null", O_RDONLY));
	assert_check_fails(open("/", O_PATH));
	assert_check_fails(dup(fileno(file)));
	fclose(file);
	assert_int_equal(pipe(pipe_ends), 0);
	assert_check_fails(pipe_ends[0]);
	close(pipe_ends[1]);
	assert_check_fails(-1);
}

static const struct {
	const char *what;
	uint32_t n_args, n_env;
	size_t len;
	const char *strings;
} malformed[] = {
	{ "no argument", 0, 1, 2, "a" },
	{ "nothing at all", 0, 0, 0, "" },
	{ "too few strings", 2, 1, 4, "a\0b" },
	{ "too many strings", 1, 1, 6, "a\0b\0c" },
	{ "no NUL at the end", 1, 1, 3, "a\0b" },
	{ "empty, strings promised", 1, 0, 0, "" },
	{ "huge number of arguments", UINT32_MAX, 0, 2, "a" },
	{ "sum does not fit 32 bits", UINT32_MAX, 2, 2, "a" },
};

static void refuses_malformed_strings(void **state)
{
	char data[64], **argv = (void *)data, **envp = (void *)data;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		int fd;

		print_message("# %s\n", malformed[i].what);
		memcpy(data, &malformed[i].n_args, 4);
		memcpy(data + 4, &malformed[i].n_env, 4);
		memcpy(data + 8, malformed[i].strings, malformed[i].len);
		fd = memfd(data, 8 + malformed[i].len, ALL_SEALS);
		assert_int_equal(strings_unpack(fd, &argv, &envp), -EINVAL);
		assert_ptr_equal(argv, data);
		close(fd);
	}
	assert_int_equal(strings_unpack(-1, &argv, &envp), -EBADF);
}

static void names_all_states(void **state)
{
	(void)state;
	for (int i = 0; i < GUEST_STATE_COUNT; i++)
		assert_true(guest_state_names[i][0]);
}

static void knows_signals(void **state)
{
	static const int passed[] = { SIGINT,  SIGTERM,	 SIGHUP,  SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
	size_t n = 0;

	(void)state;
	for (uint32_t number = 0; number < 70; number++)
		n += (size_t)signal_is_passed(number);
	assert_int_equal(n, ARRAY_SIZE(passed));
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		assert_true(signal_is_passed((uint32_t)passed[i]));
	assert_false(signal_is_passed(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_names),
		cmocka_unit_test(shows_commands),
		cmocka_unit_test(knows_signals),
		cmocka_unit_test(cuts_long_commands),
		cmocka_unit_test(checks_content),
		cmocka_unit_test(goes_over_the_wire),
		cmocka_unit_test(packs_and_unpacks),
		cmocka_unit_test(refuses_too_many_bytes),
		cmocka_unit_test(refuses_what_is_no_sealed_memfd),
		cmocka_unit_test(refuses_malformed_strings),
		cmocka_unit_test(names_all_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
