/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A supervisor that is played by the test, and a client in a process of its own.
 */
#pragma once

#include <sys/types.h>

#include "common/report.h"
#include "common/request.h"
#include "common/wire.h"
#include "governor/client/verb.h"

struct fake {
	char dir[32], socket[64], report[64]; /* paths; the report is not there yet */
	int listener;
};

/* cmocka set-up and tear-down; the state is the struct fake. */
int fake_setup(void **state);
int fake_teardown(void **state);

#define ARGS(...) ((const char *[]){ __VA_ARGS__, NULL })

struct client {
	pid_t pid;
	int out, err; /* read ends, -1 when @stdio was given */
	char out_text[4096], err_text[4096];
};

/* Starts `harpe-gov VERB ARGS...` against the fake. @stdio NULL: /dev/null and two pipes. */
void client_start(struct client *c, const struct fake *f, const struct verb *verb,
		  const char *const args[], const int stdio[3]);

/* Waits for its end and reads what it printed. Returns the status of waitpid(2). */
int client_wait(struct client *c);

/* Waits until it exits with @status. */
void client_expect(struct client *c, int status);

struct call {
	int sock;
	int type;
	struct request request;
	int fds[WIRE_FDS_MAX];
	size_t n_fds;
};

/* Accepts a connection and reads the request. */
void fake_take(const struct fake *f, struct call *call);

/* Closes the connection and the descriptors that came. */
void fake_drop(struct call *call);

void fake_report(int sock, const struct report *r);
void fake_answer(int sock, enum wire_type type, uint64_t count, const char *text);
