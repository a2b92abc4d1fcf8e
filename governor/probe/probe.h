/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * harpe-gov-probe: what `harpe-gov verify` runs as a guest. It tries things and writes what it saw,
 * a line for each: the probe's id, the outcome and a detail, parted by tabs. It never judges, and
 * links the C library only, so that it runs in every view.
 *
 * A probe is a row of a table and runs in a process of its own, with a limit on its time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PROBE_WAIT_MS  1000 /* for what may never come */
#define PROBE_LIMIT_MS 5000 /* of a probe */
#define PROBE_TOKEN    "harpe-gov-verify"

#define SEEN_OUTCOME_MAX 24
#define SEEN_DETAIL_MAX	 200

/* What was seen. An outcome is "done", "nothing" (it did not come to pass within its time), the
 * name of an errno, or a word of the probe's own. */
struct seen {
	char outcome[SEEN_OUTCOME_MAX];
	char detail[SEEN_DETAIL_MAX];
};

struct probe {
	const char *id;
	/* @aim: what verify has prepared, or the row's own text; it may be changed. */
	void (*try)(const struct probe *p, char *aim, struct seen *s);
	long arg[3];
	const char *text;
	bool endless; /* what ends it is what is probed */
};

/* Each table ends with an id of NULL. */
extern const struct probe network_probes[], socket_probes[], file_probes[], door_probes[],
	process_probes[], ipc_probes[], key_probes[], identity_probes[], syscall_probes[],
	limit_probes[];

/* One of several attempts that are one probe. The most telling is kept: one that was done, then an
 * error other than EPERM, and its @what becomes the detail. @result: -1 with errno, or what is not
 * negative. Returns whether it was done. */
bool seen_attempt(struct seen *s, const char *what, long result);

/* The same for what did not come to pass within its time. */
void seen_nothing(struct seen *s, const char *what);

void seen_set(struct seen *s, const char *outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a word to the detail, which is cut when it is full. */
void seen_word(struct seen *s, const char *word);

/* A line now, before what may be the end. */
void seen_tell(const struct seen *s);

/* The same, and stays alive until verify has looked: what was made goes with its process. */
void seen_hold(const struct seen *s) __attribute__((noreturn));

/* The next of the words in @aim, which are parted by commas; NULL at the end. Starts with @aim and
 * goes on with the same variable. */
char *next_word(char **aim);

/* How it was when the program started: its first process, before it did anything. */
struct beginning {
	char status[8192]; /* /proc/self/status */
	char descriptors[256];
	size_t n_descriptors; /* above 2 */
};
extern struct beginning beginning;
