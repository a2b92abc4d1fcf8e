/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "governor/daemon/journal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/fd.h"

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

#define FIELDS_MAX 128

struct entry {
	struct iovec field[FIELDS_MAX];
	int n;
};

static void entry_free(struct entry *entry)
{
	while (entry->n > 0)
		free(entry->field[--entry->n].iov_base);
}

/* A field for which there is no memory is left out. */
static void add(void *userdata, const char *name, const char *text)
{
	struct entry *entry = userdata;
	char *field;
	int n;

	if (entry->n == FIELDS_MAX)
		return;
	n = asprintf(&field, "%s%s=%s", entry->n > 2 ? "HARPE_" : "", name, text);
	if (n >= 0)
		entry->field[entry->n++] = (struct iovec){ field, (size_t)n };
}

void journal_run(const struct report *r)
{
	_cleanup_(entry_free) struct entry entry = { .n = 0 };
	char message[2 * ERROR_TEXT_MAX];

	snprintf(message, sizeof(message), "run %s of uid %" PRIi64 " ended: %s%s%s", r->id,
		 r->caller_uid == REPORT_UNKNOWN ? -1 : (int64_t)r->caller_uid,
		 ended_names[r->ended], r->error[0] ? ": " : "", r->error);
	add(&entry, "MESSAGE", message);
	add(&entry, "PRIORITY", "6"); /* LOG_INFO */
	add(&entry, "HARPE_RUN", r->id);
	report_flat(r, add, &entry);
	sd_journal_sendv(entry.field, entry.n);
}
