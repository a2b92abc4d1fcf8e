/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier daemon may have left behind. */
#pragma once

#include "common/report.h"

/* Kills everything in the scopes below the slice directory @path and waits until systemd has taken
 * them away. -EBUSY names a scope that stays. Before that @found is called for each run in the
 * ledger whose end nobody told, with those counters that can still be read. */
typedef void (*sweep_found)(const struct report *r);
int sweep_slice(const char *path, const char *ledger, sweep_found found, struct error *e);
