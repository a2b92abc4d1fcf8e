/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caller's terminal and the guest's, which is a pty that the supervisor makes (terminal.h): the
 * client copies between them.
 *
 * When the caller's standard input is a terminal, and the client in its foreground, it is raw as
 * long as the guest runs: every key goes to the guest's pty, which has the modes that the caller's
 * had, so ^C is SIGINT for the guest's foreground. Only the key for SIGTSTP is kept, when the
 * guest's pty would make a signal of it and the guest has no job control of its own: then client
 * and guest are to be stopped, see relay_wait().
 *
 * In the background the caller's terminal is neither read nor changed, so nothing stops the client
 * there; what the guest writes is shown.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <termios.h>

#include "common/error.h"
#include "common/request.h"

#define RELAY_BUFFER 4096

struct flow {
	size_t used, done;
	char buf[RELAY_BUFFER];
};

struct relay {
	int in, out;  /* of the caller's terminal; descriptions of our own where that is possible */
	int master;   /* of the guest's pty; -1 before it came and when the terminal is gone */
	int raw;      /* the caller's terminal is, by us */
	int no_slave; /* the guest has closed its terminal, for now */
	struct termios saved; /* of the caller's terminal */
	struct flow to_guest, to_caller;
};

#define RELAY_NULL ((struct relay){ .in = -1, .out = -1, .master = -1 })

/* Which of 0, 1 and 2 are terminals, and what they are like, goes into @q. All of them become one.
 */
void relay_open(struct relay *r, struct request *q);

/* The command runs, @master has come: copy from now on. */
void relay_start(struct relay *r, int master);

enum relay_event {
	RELAY_MESSAGE, /* @sock is readable or closed */
	RELAY_SIGNAL,  /* one came that @waiting lets through */
	RELAY_STOP,    /* the key for SIGTSTP was pressed */
};

/* Copies until something else is to be done. */
enum relay_event relay_wait(struct relay *r, int sock, const sigset_t *waiting);

/* The guest is gone: copies what it has left, or less if @waiting lets a deadly signal through. */
void relay_drain(struct relay *r, const sigset_t *waiting);

/* The size of the caller's terminal becomes that of the guest's. 0 when there is none. */
int relay_resize(struct relay *r);

/* Around a stop of the client: the caller's terminal is as it was, is raw again. */
void relay_leave(struct relay *r);
void relay_enter(struct relay *r);

void relay_close(struct relay *r);
