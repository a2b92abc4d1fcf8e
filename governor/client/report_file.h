/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where `harpe-gov run --report` goes.
 */
#pragma once

#include "common/report.h"

struct report_file {
	int fd;	   /* -1: no report is wanted */
	int owned; /* to be closed */
	const char *name;
};

#define REPORT_SHOWN_MAX 256 /* of its name, in a sentence that must have room for the reason */

#define REPORT_FILE_NULL ((struct report_file){ .fd = -1 })

/* Opens @text: "fd:N", an open descriptor that can be written to, or the path of a file, which is
 * emptied, so that no older report is taken for this run's. A last component that is a symbolic
 * link, a device or a FIFO is refused: the path may be in a directory that others write to. */
int report_file_open(struct report_file *f, const char *text, struct error *e);

/* Writes the whole report. */
int report_file_write(const struct report_file *f, const struct report *report, struct error *e);

void report_file_close(struct report_file *f);
