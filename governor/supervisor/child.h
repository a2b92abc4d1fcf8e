/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens between clone and execve: a copy of the supervisor becomes the guest, waits for the
 * release, and runs the command. child.c reads like the list of steps.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/request.h"
#include "governor/guest/spaces.h"
#include "governor/guest/terminal.h"
#include "governor/guest/view.h"

enum child_event {
	CHILD_READY,	   /* everything is in place; waits for CHILD_GO */
	CHILD_FAILED,	   /* a step failed: error */
	CHILD_EXEC_FAILED, /* execve(2) failed: error, and 126 or 127 as exit_code */
};

/* Child -> supervisor. execve(2) closes the socket: end of file after CHILD_GO is success. */
struct child_message {
	uint32_t event;
	uint32_t exit_code;
	struct error error;
};

#define CHILD_GO 'G' /* supervisor -> child, one byte; end of file means: exit */

struct child_plan {
	uint32_t uid;
	uint32_t umask_bits;
	const struct rlimit *rlimits;
	const struct sock_fprog *filter;
	struct view_plan view; /* its descriptors included */
	uint64_t file_bytes;   /* the size of one file, when the caller has no limit of its own */
	int strings_fd;
	int stdio[3];
	struct terminal *terminal; /* TERMINAL_NULL: none */
	uint32_t terminals;	   /* bit N: stream N is it */
	bool own_network;	   /* it is in a network namespace of its own */
	struct spaces spaces;	   /* enters those first; SPACES_NULL: it is there already */
	int control;		   /* the child's end of the control socket */
};

/* Never returns. Descriptors get new numbers, in what @plan points to as well. */
void child_main(struct child_plan *plan) __attribute__((noreturn));
