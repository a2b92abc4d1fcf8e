/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line. It has no privilege and asks harpe-govd for everything.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "common/wire.h"
#include "governor/client/verb.h"

#define STATUS_USAGE 2

static const struct verb *const verbs[] = {
	&verb_run,    &verb_ps,	      &verb_show,  &verb_kill,
	&verb_config, &verb_firewall, &verb_audit, &verb_verify,
};

static void help(FILE *out)
{
	fputs("Usage: harpe-gov VERB [OPTION...] [ARGUMENT...]\n"
	      "\n"
	      "Run programs that nobody has read: each in its own systemd scope with memory\n"
	      "and CPU limits, under its own uid, without network.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n"
	      "  -h, --help     show this help; after a verb, that of the verb\n"
	      "  --version      show the version\n"
	      "\n"
	      "See harpe-gov(1).\n",
	      out);
}

static int show_help(void)
{
	help(stdout);
	return 0;
}

static int show_version(void)
{
	puts("harpe-gov " HARPE_GOV_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*main)(void);
} global_options[] = {
	{ "-h", show_help },
	{ "--help", show_help },
	{ "--version", show_version },
};

static int unknown_verb(const char *word)
{
	char shown[72], sentence[160];

	snprintf(sentence, sizeof(sentence), "there is no %s \"%s\": see harpe-gov --help",
		 word[0] == '-' ? "option" : "verb", text_escape(word, shown, sizeof(shown)));
	complain(sentence);
	return STATUS_USAGE;
}

/* What was printed must have arrived: a verb's answer that is lost is not its status. */
static int printed(int status, int unwritten)
{
	if (file_written(stdout))
		return status;
	complain("cannot write to standard output");
	return unwritten;
}

static int call(const struct verb *verb, char **args)
{
	int unwritten = verb->usage_status == STATUS_USAGE ? 1 : verb->usage_status;

	return printed(verb_call(verb, WIRE_SOCKET, args), unwritten);
}

static int dispatch(char **argv)
{
	if (!argv[0]) {
		help(stderr);
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(global_options); i++)
		if (strcmp(argv[0], global_options[i].name) == 0)
			return printed(global_options[i].main(), 1);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[0], verbs[i]->name) == 0)
			return call(verbs[i], argv + 1);
	return unknown_verb(argv[0]);
}

/* A standard stream that is closed must not become the report or the socket. */
static void fill_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			abort();
}

int main(int argc, char **argv)
{
	int status;

	fill_standard_streams();
	status = dispatch(argv + (argc > 0));
	return status < 0 ? die_of(-status) : status;
}
