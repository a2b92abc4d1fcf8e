/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon says to the journal. */
#pragma once

#include "common/report.h"

void journal_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void journal_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One entry per run, with the members of its report that are known as fields, named by
 * report_flat() behind "HARPE_": journalctl HARPE_ENDED=memory */
void journal_run(const struct report *r);
