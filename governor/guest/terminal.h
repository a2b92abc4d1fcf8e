/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's terminal, when the caller has one.
 *
 * The caller's own terminal is never passed: who has it can push characters into its input
 * (TIOCSTI), read what is typed later, and change its modes. The guest gets a pty, and the client,
 * which holds the other end, copies. Who makes that pty?
 *
 *  - The client could, and pass the slave. But nothing tells the slave of a fresh pty from the
 *    terminal that the caller sits at, which is a pty's slave too: the supervisor would have to
 * take any terminal, and every mistake of a client would hand out a real one.
 *  - So the supervisor makes it, and stdio_check() goes on refusing every terminal. The client only
 *    says which of 0, 1 and 2 are to be it, and gets the master when the command runs. Until then
 * ^C is a signal to the client, which waits for the command, and no key is lost.
 *  - In a devpts instance of its own, mounted in the guest's view only, with the guest's uid as
 *    owner. In the host's, /dev/pts/N would belong to a pool uid for as long as a client keeps the
 *    master open, and the next guest with that uid could open it.
 *
 * It is the guest's controlling terminal: ^C, ^\ and the size come through its line discipline, and
 * /dev/tty is this pty. TIOCSTI works and reaches nobody but the guest itself.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/request.h"

struct terminal {
	int mount;  /* the devpts, not mounted anywhere yet */
	int master; /* for the client */
	int slave;  /* for the guest */
};

#define TERMINAL_NULL ((struct terminal){ .mount = -1, .master = -1, .slave = -1 })

/* In the supervisor. Makes the pty with the modes and the size that the client asked for. */
int terminal_open(struct terminal *t, uint32_t uid, const struct terminal_look *look,
		  struct error *e);

/* In the child, where the descriptors have other numbers, after its view was built and it leads a
 * session. */
int terminal_enter(int mount, int slave, struct error *e);

/* In the supervisor, once the child has it. */
void terminal_close_slave(struct terminal *t);

/* Gives the master away. A client that is gone is no error: it is seen elsewhere. */
void terminal_send_master(struct terminal *t, int client);

void terminal_close(struct terminal *t);
