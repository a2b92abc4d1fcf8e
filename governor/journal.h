/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon says to the journal. */
#pragma once

#include "common/report.h"

void journal_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void journal_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One entry per run, with the report's members as fields: journalctl HARPE_ENDED=memory */
void journal_run(const struct report *r);
