/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/audit/audit.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/fd.h"

const struct audit_check *const audit_areas[] = {
	audit_firewall_checks, audit_foreign_checks,  audit_bpf_checks,
	audit_guest_checks,    audit_leftover_checks, audit_pool_checks,
	audit_door_checks,     audit_system_checks,   audit_canary_checks,
};
const size_t audit_n_areas = ARRAY_SIZE(audit_areas);

size_t audit_n_checks(size_t n_areas)
{
	size_t n = 0;

	for (size_t i = 0; i < n_areas; i++)
		for (const struct audit_check *c = audit_areas[i]; c->id; c++)
			n++;
	return n;
}

/* ---- findings ---- */

void finding_add(struct finding *f, enum verdict result, const char *format, ...)
{
	struct error *kept;
	va_list ap;

	if (f->n == 0 || result > f->result)
		f->result = result;
	kept = f->n < AUDIT_SAID_MAX ? &f->said[f->n] : NULL;
	if (!kept && result > VERDICT_PASS) /* of many the bad ones are worth most */
		kept = &f->said[AUDIT_SAID_MAX - 1];
	f->n++;
	if (!kept)
		return;
	va_start(ap, format);
	vsnprintf(kept->text, sizeof(kept->text), format, ap);
	va_end(ap);
}

enum verdict finding_result(const struct finding *f)
{
	return f->n == 0 ? VERDICT_UNKNOWN : f->result;
}

enum verdict audit_worst(const struct finding *findings, size_t n)
{
	enum verdict worst = n == 0 ? VERDICT_UNKNOWN : VERDICT_PASS;

	for (size_t i = 0; i < n; i++)
		if (finding_result(&findings[i]) > worst)
			worst = finding_result(&findings[i]);
	return worst;
}

int audit_status(const struct finding *findings, size_t n)
{
	return verdict_exit_status(audit_worst(findings, n));
}

/* ---- live guests ---- */

static bool in_rows(const struct rows *rows, const struct guest_row *row)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].id, row->id) == 0 && rows->row[i].state == GUEST_RUNNING)
			return true;
	return false;
}

bool audit_guest_runs(const struct guest_row *row)
{
	_cleanup_(rows_free) struct rows now = ROWS_NULL;

	return rows_ask(WIRE_SOCKET, row->id, &now, NULL) == 0 && in_rows(&now, row);
}

size_t audit_guests(const struct audit *a, audit_each_guest each, struct finding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < a->before.n; i++) {
		const struct guest_row *row = &a->before.row[i];

		if (row->state != GUEST_RUNNING || !in_rows(&a->after, row))
			continue;
		each(a, row, f);
		n++;
	}
	return n;
}

void audit_say_guests(const struct audit *a, audit_each_guest each, struct finding *f)
{
	size_t n;

	if (a->rows.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "which guests there are is not known: %s",
			    a->rows.e.text);
		return;
	}
	n = audit_guests(a, each, f);
	if (n == 0)
		finding_add(f, VERDICT_PASS, "no guest runs");
	else if (f->n == 0)
		finding_add(f, VERDICT_PASS, "so it is for all guests: %zu", n);
}

/* ---- the whole ---- */

static void look(const struct audit *a, size_t n_areas, struct finding *findings)
{
	size_t at = 0;

	for (size_t i = 0; i < n_areas; i++)
		for (const struct audit_check *c = audit_areas[i]; c->id; c++)
			c->look(a, &findings[at++]);
}

int audit_main(bool as_json, bool canary, struct error *e)
{
	struct audit a = { 0 };
	_cleanup_free_ struct finding *findings = NULL;
	struct audit_report report = { .n_areas = audit_n_areas - !canary };
	size_t n = audit_n_checks(report.n_areas);
	int r = 0;

	if (geteuid() != 0)
		return error_set(e, -EPERM, "audit is for root: it reads what others may not see");
	report.findings = findings = calloc(n, sizeof(*findings));
	if (!findings)
		return error_errno(e, -ENOMEM, "the audit cannot be made");
	audit_gather(&a);
	look(&a, report.n_areas, findings);
	report.has_generation = a.firewall.r == 0;
	report.generation = a.survey.generation;
	audit_release(&a);
	if (as_json)
		r = audit_print_json(&report, stdout);
	else
		audit_print(&report, stdout);
	if (r < 0 || !file_written(stdout))
		return error_set(e, -EIO, "the audit cannot be printed");
	return audit_status(findings, n);
}
