/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verbs of harpe-gov, and what all of them need.
 */
#pragma once

#include "governor/client/options.h"

struct verb {
	const char *name;
	const char *operands; /* of the usage line */
	const char *summary;  /* one line, without full stop */
	const char *details;  /* the end of --help */
	struct option_set set;
	int usage_status; /* exit status of a wrong command line */
	/* Talks to the daemon at @socket. @values are the options', @operands end with NULL.
	 * Prints its own errors. Returns an exit status, or -signal: die of that. */
	int (*main)(const char *socket, const char *const values[], char **operands);
};

extern const struct verb verb_run, verb_ps, verb_show, verb_kill, verb_config, verb_firewall,
	verb_audit, verb_verify;

void verb_help(const struct verb *verb, FILE *out);

/* @text escaped into @buf, which it returns, for whoever reads @fd: a terminal may know no UTF-8.
 */
const char *escape_for(int fd, const char *text, char *buf, size_t size);

/* Prints "harpe-gov: @sentence" on stderr in one write, unprintable bytes escaped. */
void complain(const char *sentence);

/* Prints "harpe-gov: @where: "@text" @why". */
void complain_of(const char *where, const char *text, const char *why);

/* Becomes the daemon's program with @argv, which knows the configuration and the rules. Returns
 * @status only when that cannot be run, and has said so. */
int exec_daemon(char *const argv[], int status);

/* The whole of main() after the verb's name: options, help, the verb. */
int verb_call(const struct verb *verb, const char *socket, char **argv);

/* Dies of signal @number, as the guest did, without a core dump: it would be the client's. Returns
 * an exit status when the kernel does not let it (PID 1 of a namespace). */
int die_of(int number);
