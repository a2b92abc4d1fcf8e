/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#include "common/text.h"
#include "governor/client/verb.h"

#define HELP_MAX   8192
#define HELP_WIDTH 80

static const struct option sample[] = {
	{ .limit = &limit_table[LIMIT_MEMORY] },
	{ .name = "name", .value = "NAME", .help = "a name" },
	{ .name = "all", .help = "a flag" },
};
static const struct option_set command_set = { sample, ARRAY_SIZE(sample), 1 };
static const struct option_set operand_set = { sample, ARRAY_SIZE(sample), 0 };

struct expected {
	const char *argv[8];
	const struct option_set *set;
	const char *values[ARRAY_SIZE(sample)];
	const char *operands[8];
};

static const struct expected good[] = {
	{ { NULL }, &command_set, { NULL }, { NULL } },
	{ { "cmd", "--all" }, &command_set, { NULL }, { "cmd", "--all" } },
	{ { "--all", "cmd" }, &command_set, { NULL, NULL, "" }, { "cmd" } },
	{ { "--memory", "64M", "cmd" }, &command_set, { "64M" }, { "cmd" } },
	{ { "--memory=64M", "cmd" }, &command_set, { "64M" }, { "cmd" } },
	{ { "--memory=", "cmd" }, &command_set, { "" }, { "cmd" } },
	{ { "--name=a=b" }, &command_set, { NULL, "a=b" }, { NULL } },
	{ { "--name", "--all" }, &command_set, { NULL, "--all" }, { NULL } },
	{ { "--", "--all" }, &command_set, { NULL }, { "--all" } },
	{ { "--all", "--", "--", "x" }, &command_set, { NULL, NULL, "" }, { "--", "x" } },
	{ { "-", "--all" }, &command_set, { NULL }, { "-", "--all" } },
	{ { "a", "--all", "b" }, &operand_set, { NULL, NULL, "" }, { "a", "b" } },
	{ { "a", "--", "--all" }, &operand_set, { NULL }, { "a", "--all" } },
	{ { "a", "--name", "n", "b" }, &operand_set, { NULL, "n" }, { "a", "b" } },
};

static void assert_same(const char *got, const char *want)
{
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void parses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const char *values[OPTIONS_MAX];
		const char *argv[8];
		struct error e;

		memcpy(argv, good[i].argv, sizeof(argv));
		assert_int_equal(options_parse(good[i].set, (char **)argv, values, &e), 0);
		for (size_t j = 0; j < ARRAY_SIZE(sample); j++)
			assert_same(values[j], good[i].values[j]);
		for (size_t j = 0; j == 0 || good[i].operands[j - 1]; j++)
			assert_same(argv[j], good[i].operands[j]);
	}
}

static const struct {
	const char *argv[4];
	const char *sentence;
} bad[] = {
	{ { "--mem=1" }, "there is no option \"--mem=1\": see --help" },
	{ { "--memoryx" }, "there is no option \"--memoryx\": see --help" },
	{ { "-m" }, "there is no option \"-m\": see --help" },
	{ { "-memory", "1" }, "there is no option \"-memory\": see --help" },
	{ { "--=1" }, "there is no option \"--=1\": see --help" },
	{ { "--a\x1b[2J" }, "there is no option \"--a\\x1b[2J\": see --help" },
	{ { "--memory" }, "--memory needs a value: write --memory=SIZE" },
	{ { "--all", "--name" }, "--name needs a value: write --name=NAME" },
	{ { "--all=yes" }, "--all takes no value: write --all alone" },
	{ { "--all", "--all" }, "--all is given twice: keep one" },
	{ { "--memory=1", "--memory=1" }, "--memory is given twice: keep one" },
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *values[OPTIONS_MAX];
		const char *argv[4];
		struct error e = ERROR_NULL;

		memcpy(argv, bad[i].argv, sizeof(argv));
		assert_int_equal(options_parse(&command_set, (char **)argv, values, &e), -EINVAL);
		assert_string_equal(e.text, bad[i].sentence);
	}
}

static void knows_help(void **state)
{
	static const char *const words[] = { "-h", "--help" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *values[OPTIONS_MAX];
		const char *argv[] = { "--all", words[i], "--nonsense", NULL };
		const char *behind[] = { "cmd", words[i], NULL };
		struct error e;

		assert_int_equal(options_parse(&command_set, (char **)argv, values, &e), 1);
		assert_int_equal(options_parse(&command_set, (char **)behind, values, &e), 0);
	}
}

/* ---- help and manual ---- */

static const struct verb *const verbs[] = {
	&verb_run, &verb_ps, &verb_show, &verb_kill, &verb_audit, &verb_verify,
};

static char *help_of(const struct verb *verb)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	verb_help(verb, out);
	fclose(out);
	return text;
}

static void assert_width(const char *text)
{
	for (; *text; text += strcspn(text, "\n") + 1) {
		assert_true(strcspn(text, "\n") <= HELP_WIDTH);
		assert_true(text[strcspn(text, "\n")] == '\n');
	}
}

static void helps_in_80_columns(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		_cleanup_free_ char *text = help_of(verbs[i]);

		assert_width(text);
		for (size_t j = 0; j < verbs[i]->set.n_options; j++)
			assert_mentions(text, "  --", option_name(&verbs[i]->set.options[j]), "");
	}
}

static void tells_what_is_built_in(void **state)
{
	_cleanup_free_ char *text = help_of(&verb_run);

	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		char standard[32], wanted[96];

		snprintf(wanted, sizeof(wanted), "%s (default %s)\n", limit_table[i].help,
			 unit_format(limit_table[i].unit, limit_table[i].standard, standard,
				     sizeof(standard)));
		assert_mentions(text, "", wanted, "");
	}
}

static void is_documented(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.1.scd");
	_cleanup_free_ char *conf = source_text("man/harpe-gov.conf.5.scd");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		assert_true(verbs[i]->set.n_options <= OPTIONS_MAX);
		assert_mentions(page, "*harpe-gov ", verbs[i]->name, "*");
		for (size_t j = 0; j < verbs[i]->set.n_options; j++)
			assert_mentions(page, "\n*--", option_name(&verbs[i]->set.options[j]), "*");
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		char min[32];

		unit_format(limit_table[i].unit, limit_table[i].min, min, sizeof(min));
		assert_mentions(conf, "\n*", limit_table[i].name, "*=_");
		if (limit_table[i].min > 1)
			assert_mentions(page, "At least ", min, ".");
	}
}

/* Blanks for all that is no letter; returns @text. */
static const char *words_of(char *text)
{
	for (char *p = text; *p; p++)
		if (!isalpha((unsigned char)*p))
			*p = ' ';
	return text;
}

/* All that common/units.c knows. */
static void documents_suffixes(void **state)
{
	static const char *const pages[] = { "man/harpe-gov.1.scd", "man/harpe-gov.conf.5.scd" };
	static const char *const suffixes[] = { "us",	"ms",	"s",   "min", "h", "d",
						"usec", "msec", "sec", "m",   "hr" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		_cleanup_free_ char *page = source_text(pages[i]);
		char *list = strstr(page, "Wall-clock time. Suffixes are ");

		assert_non_null(list);
		list[strcspn(list, ";")] = '\0';
		for (size_t j = 0; j < ARRAY_SIZE(suffixes); j++)
			if (!text_has_word(words_of(list), suffixes[j]))
				fail_msg("%s does not have %s", pages[i], suffixes[j]);
	}
}

/* Every option that the manual documents exists. */
static void documents_nothing_else(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.1.scd");

	(void)state;
	for (char *p = page; (p = strstr(p, "\n*--")) != NULL;) {
		char *name = p + strlen("\n*--");
		size_t len = strcspn(name, "*");
		int known = 0;

		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			for (size_t j = 0; j < verbs[i]->set.n_options; j++) {
				const char *option = option_name(&verbs[i]->set.options[j]);

				known |= strlen(option) == len && strncmp(option, name, len) == 0;
			}
		if (!known)
			fail_msg("there is no option --%.*s", (int)len, name);
		p = name;
	}
}

/* ---- the program ---- */

/* Runs harpe-gov with @args; what it printed on @stream (1 or 2) is left in @text. */
static int run_program(const char *args, int stream, char text[HELP_MAX])
{
	char command[256];
	size_t used;
	FILE *p;

	snprintf(command, sizeof(command), "exec \"$HARPE_GOV\" %s %s", args,
		 stream == 1 ? "2>/dev/null" : "2>&1 >/dev/null");
	p = popen(command, "re");
	assert_non_null(p);
	used = fread(text, 1, HELP_MAX - 1, p);
	text[used] = '\0';
	return WEXITSTATUS(pclose(p));
}

static void program_helps(void **state)
{
	static const char *const places[] = { "", "run", "ps", "show", "kill" };
	char args[64], text[HELP_MAX], short_text[HELP_MAX], other[HELP_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(args, sizeof(args), "%s --help", places[i]);
		assert_int_equal(run_program(args, 1, text), 0);
		assert_int_equal(run_program(args, 2, other), 0);
		assert_string_equal(other, "");
		snprintf(args, sizeof(args), "%s -h", places[i]);
		assert_int_equal(run_program(args, 1, short_text), 0);
		assert_string_equal(text, short_text);
		assert_width(text);
		assert_int_equal(strncmp(text, "Usage: harpe-gov ", 17), 0);
	}
}

#define FOUR "--ro=. --rw=. --pin=x --hide=/x "

/* harpe-govd(8) is the same page. */
static void documents_the_daemon(void **state)
{
	_cleanup_free_ char *page = source_text("man/harpe-gov.1.scd");
	char line[128], option[16];
	FILE *p = popen("exec \"$HARPE_GOVD\" --help", "re");
	int n = 0;

	(void)state;
	assert_non_null(p);
	for (; fgets(line, sizeof(line), p); n++)
		if (sscanf(line, " harpe-govd %15s", option) == 1 && option[0] == '-')
			assert_mentions(page, "\n*harpe-govd ", option, "*");
	assert_int_equal(pclose(p), 0);
	assert_true(n > 5);
}

static const struct {
	const char *args;
	int status;
	const char *error;
} programs[] = {
	{ "nonsense", 2, "harpe-gov: there is no verb \"nonsense\": see harpe-gov --help\n" },
	{ "--nonsense", 2, "harpe-gov: there is no option \"--nonsense\": see harpe-gov --help\n" },
	{ "ps --nonsense", 2, "harpe-gov: there is no option \"--nonsense\": see --help\n" },
	{ "ps x", 2, "harpe-gov: ps takes no arguments: see harpe-gov ps --help\n" },
	{ "show", 2, "harpe-gov: show needs names or ids of guests: see harpe-gov ps\n" },
	{ "kill", 2, "harpe-gov: kill needs either names and ids of guests, or --all\n" },
	{ "kill --all x", 2, "harpe-gov: kill needs either names and ids of guests, or --all\n" },
	{ "run", 125, "harpe-gov: no command to run: see harpe-gov run --help\n" },
	{ "run --nonsense x", 125, "harpe-gov: there is no option \"--nonsense\": see --help\n" },
	{ "run --memory=64Q x", 125, "harpe-gov: --memory: \"64Q\" is not a size such as 512M\n" },
	{ "run --cpu 20 x", 125, "harpe-gov: --cpu: \"20\" lacks the percent sign: write 20%\n" },
	{ "run --name=-x y", 125,
	  "harpe-gov: --name: \"-x\" is not 1 to 64 of A-Z a-z 0-9 . _ - starting with none of "
	  ". -\n" },
	{ "run --report=/no/\u00fc\u202e x", 125,
	  "harpe-gov: --report: cannot write /no/\u00fc\\xe2\\x80\\xae: No such file or "
	  "directory\n" },
	{ "run --report= x", 125,
	  "harpe-gov: --report: \"\" is no file: write a path, or fd:3 for a descriptor\n" },
	{ "run " FOUR FOUR FOUR FOUR "--hide=/x x", 125,
	  "harpe-gov: --hide: more than 16 of --ro, --rw, --pin and --hide together\n" },
	{ "config", 2, "harpe-gov: config needs one word: check or show\n" },
	{ "config foo", 2, "harpe-gov: config: \"foo\" is neither check nor show\n" },
	{ "firewall", 3,
	  "harpe-gov: firewall needs one word: show, export, apply, remove or explain\n" },
	{ "firewall foo", 3,
	  "harpe-gov: firewall: \"foo\" is not show, export, apply, remove or explain\n" },
	{ "verify --net=", 3,
	  "harpe-gov: --net: \"\" is no network profile's name: 1 to 31 of a-z 0-9\n" },
	{ "verify --target=foo", 3,
	  "harpe-gov: --target: \"foo\" is no IPv4 or IPv6 address, as in --target=192.0.2.1\n" },
	{ "verify --list --net=nope", 3,
	  "harpe-gov: --list goes alone: it is the same with every --net and --target, and is no "
	  "JSON\n" },
	{ "--help 2>&1 >/dev/full #", 1, "harpe-gov: cannot write to standard output\n" },
};

static void program_refuses(void **state)
{
	char text[HELP_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		assert_int_equal(run_program(programs[i].args, 2, text), programs[i].status);
		assert_string_equal(text, programs[i].error);
	}
}

static void program_without_arguments_helps_on_stderr(void **state)
{
	char text[HELP_MAX], help[HELP_MAX];

	(void)state;
	assert_int_equal(run_program("", 1, text), 2);
	assert_string_equal(text, "");
	assert_int_equal(run_program("", 2, text), 2);
	assert_int_equal(run_program("--help", 1, help), 0);
	assert_string_equal(text, help);
}

static void program_has_a_version(void **state)
{
	char text[HELP_MAX];

	(void)state;
	assert_int_equal(run_program("--version", 1, text), 0);
	assert_int_equal(strncmp(text, "harpe-gov ", 10), 0);
}

/* With all standard streams closed, the report must not land in one of them. */
static void program_survives_closed_streams(void **state)
{
	char path[] = "/tmp/harpe-gov-test-XXXXXX", text[HELP_MAX], args[128];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	snprintf(args, sizeof(args), "run --report=%s true <&- >&- 2>&- #", path);
	run_program(args, 1, text);
	assert_true(read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_int_equal(strncmp(text, "{\"schema\":1,", 12), 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(refuses),
		cmocka_unit_test(knows_help),
		cmocka_unit_test(helps_in_80_columns),
		cmocka_unit_test(tells_what_is_built_in),
		cmocka_unit_test(is_documented),
		cmocka_unit_test(documents_nothing_else),
		cmocka_unit_test(documents_the_daemon),
		cmocka_unit_test(documents_suffixes),
		cmocka_unit_test(program_helps),
		cmocka_unit_test(program_refuses),
		cmocka_unit_test(program_without_arguments_helps_on_stderr),
		cmocka_unit_test(program_has_a_version),
		cmocka_unit_test(program_survives_closed_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
