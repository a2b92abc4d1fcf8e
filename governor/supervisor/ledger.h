/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a later daemon needs to know of the runs of this one, should this one die: a file per run,
 * below /run, from the lease of its uid until its end stands in the journal. Its content is a
 * report as on the wire, as far as it is known.
 */
#pragma once

#include "common/report.h"

#define LEDGER_PATH "/run/harpe-gov/runs"

/* Makes the directory @path, for root alone. */
int ledger_open(const char *path, struct error *e);

/* Writes the entry of @r->id, in place of an earlier one. */
int ledger_note(const char *path, const struct report *r, struct error *e);

/* Takes the entry of @id away; it may not be there. */
void ledger_forget(const char *path, const char *id);

/* Calls @found for every entry, then takes it away. Of one that cannot be read only the id is
 * known.
 */
typedef void (*ledger_found)(void *userdata, struct report *r);
int ledger_settle(const char *path, ledger_found found, void *userdata, struct error *e);
