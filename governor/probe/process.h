/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes, each in a process of its own, some at a time. */
#pragma once

#include "governor/probe/probe.h"

#define TELL_FD 3 /* in a probe's process: where it tells what it saw */

/* What goes through it. */
struct told {
	struct seen seen;
	bool held; /* the process stays, and tells no more */
};

struct asked {
	const struct probe *probe;
	const char *aim; /* NULL = the row's text */
};

/* Tries all of @asked and prints a line for each thing that one tells. */
void try_all(const struct asked *asked, size_t n);
