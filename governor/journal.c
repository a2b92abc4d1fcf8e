/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "governor/journal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

void journal_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	sd_journal_printv(LOG_INFO, format, args);
	va_end(args);
}

void journal_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	sd_journal_printv(LOG_ERR, format, args);
	va_end(args);
}

void journal_run(const struct report *r)
{
	sd_journal_send("MESSAGE=run %s of uid %" PRIu64 " ended: %s%s%s", r->id, r->caller_uid,
			ended_names[r->ended], r->error[0] ? ": " : "", r->error, "PRIORITY=%i",
			LOG_INFO, "HARPE_RUN=%s", r->id, "HARPE_NAME=%s", r->name,
			"HARPE_COMMAND=%s", r->command, "HARPE_ENDED=%s", ended_names[r->ended],
			"HARPE_UID=%" PRIu64, r->uid, "HARPE_CALLER_UID=%" PRIu64, r->caller_uid,
			"HARPE_PROFILE=%s", r->profile, "HARPE_ERROR=%s", r->error, NULL);
}
