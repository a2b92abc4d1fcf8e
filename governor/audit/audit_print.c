/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the checks found, for people and as JSON. */
#include <jansson.h>

#include "common/text.h"
#include "governor/audit/audit.h"

#define SHOWN_MAX (4 * ERROR_TEXT_MAX)

/* ---- for people ---- */

static void print_said(const struct finding *f, FILE *to)
{
	char shown[SHOWN_MAX];

	if (f->n == 0)
		fputs("    found:     nothing was looked at\n", to);
	for (size_t i = 0; i < f->n && i < AUDIT_SAID_MAX; i++)
		fprintf(to, "    found:     %s\n",
			text_escape(f->said[i].text, shown, sizeof(shown)));
	if (f->n > AUDIT_SAID_MAX)
		fprintf(to, "               and %zu more\n", f->n - AUDIT_SAID_MAX);
}

static void print_check(const struct audit_check *c, const struct finding *f, FILE *to)
{
	enum verdict result = finding_result(f);
	char shown[SHOWN_MAX];

	fprintf(to, "%-7s %s %s\n", verdict_names[result], c->id, c->title);
	if (result == VERDICT_PASS) {
		fprintf(to, "    %s\n", text_escape(f->said[0].text, shown, sizeof(shown)));
		return;
	}
	fprintf(to, "    looked at: %s\n", c->looks_at);
	print_said(f, to);
	fprintf(to, "    why:       %s\n    mend:      %s\n", c->why, c->mend);
}

void audit_print(const struct audit_report *report, FILE *to)
{
	size_t at = 0, n[VERDICTS] = { 0 };

	for (size_t i = 0; i < report->n_areas; i++)
		for (const struct audit_check *c = audit_areas[i]; c->id; c++, at++) {
			n[finding_result(&report->findings[at])]++;
			print_check(c, &report->findings[at], to);
		}
	fprintf(to, "%zu PASS, %zu FAIL, %zu UNKNOWN\n", n[VERDICT_PASS], n[VERDICT_FAIL],
		n[VERDICT_UNKNOWN]);
}

/* ---- JSON ---- */

static json_t *said_json(const struct finding *f)
{
	json_t *list = json_array();
	char shown[SHOWN_MAX];
	int failed = 0;

	for (size_t i = 0; i < f->n && i < AUDIT_SAID_MAX; i++)
		failed |= json_array_append_new(
			list, json_string(text_escape(f->said[i].text, shown, sizeof(shown))));
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *check_json(const struct audit_check *c, const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:s, s:s}", "id", c->id, "title", c->title,
			 "result", verdict_names[finding_result(f)], "looked_at", c->looks_at,
			 "found", said_json(f), "found_count", (json_int_t)f->n, "why", c->why,
			 "mend", c->mend);
}

static json_t *checks_json(const struct audit_report *report)
{
	json_t *list = json_array();
	size_t at = 0;
	int failed = 0;

	for (size_t i = 0; i < report->n_areas; i++)
		for (const struct audit_check *c = audit_areas[i]; c->id; c++, at++)
			failed |= json_array_append_new(list, check_json(c, &report->findings[at]));
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

int audit_print_json(const struct audit_report *report, FILE *to)
{
	json_t *generation =
		report->has_generation ? json_integer(report->generation) : json_null();
	json_t *root = json_pack(
		"{s:i, s:s, s:o, s:o}", "schema", AUDIT_SCHEMA, "result",
		verdict_names[audit_worst(report->findings, audit_n_checks(report->n_areas))],
		"ruleset_generation", generation, "checks", checks_json(report));

	return verdict_print_json(root, to);
}
