/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/verb.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"

#define COMPLAINT_MAX 2048

/* As locale(7) says, without the cost of setlocale(3). */
static int locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *locale = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && (!locale || !locale[0]); i++)
		locale = getenv(names[i]);
	return locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

const char *escape_for(int fd, const char *text, char *buf, size_t size)
{
	return isatty(fd) && !locale_is_utf8() ? text_escape_ascii(text, buf, size)
					       : text_escape(text, buf, size);
}

void complain(const char *sentence)
{
	char line[COMPLAINT_MAX] = "harpe-gov: ";
	size_t used = strlen(line);

	escape_for(STDERR_FILENO, sentence, line + used, sizeof(line) - used - 1);
	strcat(line, "\n");
	write_whole(STDERR_FILENO, line, strlen(line));
}

void complain_of(const char *where, const char *text, const char *why)
{
	char shown[72], sentence[256];

	snprintf(sentence, sizeof(sentence), "%s: \"%s\" %s", where,
		 text_escape(text, shown, sizeof(shown)), why);
	complain(sentence);
}

void verb_help(const struct verb *verb, FILE *out)
{
	fprintf(out, "Usage: harpe-gov %s %s\n\n%s.\n\n", verb->name, verb->operands,
		verb->summary);
	options_help(&verb->set, out);
	fprintf(out, "\n%s", verb->details);
}

int exec_daemon(char *const argv[], int status)
{
	struct error e;

	execv(HARPE_GOVD, argv);
	error_errno(&e, -errno, "%s cannot be run", HARPE_GOVD);
	complain(e.text);
	return status;
}

int verb_call(const struct verb *verb, const char *socket, char **argv)
{
	const char *values[OPTIONS_MAX];
	struct error e;
	int r;

	signal(SIGXFSZ,
	       SIG_IGN); /* what "ulimit -f" forbids to write is an error with a sentence */
	r = options_parse(&verb->set, argv, values, &e);
	if (r < 0) {
		complain(e.text);
		return verb->usage_status;
	}
	if (r == 0)
		return verb->main(socket, values, argv);
	verb_help(verb, stdout);
	return 0;
}

int die_of(int number)
{
	sigset_t all;

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	signal(number, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(number);
	return 128 + number;
}
