/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the firewall has dropped of a run: its counters of the uid and of the scope only grow, so
 * that a run's own are what was added since it began. */
#pragma once

#include "governor/run.h"

/* Notes where the counters stand, before the release. A new scope has none yet. */
void drops_begin(struct run *r);

/* Once, when nothing of the guest is left that could send: the report's drops_uid and drops_slice
 * from there on, which stay REPORT_UNKNOWN where they cannot be read. */
void drops_count(struct run *r);

/* The table is about to be replaced, and its counters begin anew: what they say so far counts
 * for the runs there are. */
void drops_keep(struct daemon *d);
