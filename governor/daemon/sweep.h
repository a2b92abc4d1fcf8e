/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier daemon may have left behind. */
#pragma once

#include "common/report.h"

/* Calls @found for each run in the ledger whose end nobody told, with those counters that can still
 * be read in its scope's cgroup directory below that of harpe.slice, @slice. Before sweep_slices().
 */
typedef void (*sweep_found)(const struct report *r);
int sweep_ledger(const char *slice, const char *ledger, sweep_found found, struct error *e);

/* Kills everything in the scopes below all profiles' slices, which are below @slice, and waits
 * until systemd has taken them away. -EBUSY names a scope that stays when for ten seconds none
 * went. Empty ones, which systemd may have forgotten, are removed after five. */
int sweep_slices(const char *slice, struct error *e);
