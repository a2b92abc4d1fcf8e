/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was found, for people and as JSON. */
#include <jansson.h>
#include <string.h>

#include "common/text.h"
#include "governor/verify/verify.h"

#define SHOWN_MAX (4 * sizeof(((struct judgement *)0)->seen))

static void print_check(const struct verify_check *c, const struct judgement *j, FILE *to)
{
	char shown[SHOWN_MAX];

	fprintf(to, "%-7s %-26s %s\n        %-26s %s\n", verdict_names[j->verdict], c->id, c->tried,
		"", text_escape(j->seen, shown, sizeof(shown)));
}

static bool area_has(const struct verify *v, const char *boundary, size_t i)
{
	return strcmp(verify_boundary(v->checks[i]), boundary) == 0;
}

static void print_area(const struct verify *v, const char *boundary, FILE *to)
{
	fprintf(to, "\n%s\n", boundary);
	for (size_t i = 0; i < v->n; i++)
		if (area_has(v, boundary, i))
			print_check(v->checks[i], &v->judgements[i], to);
}

/* Once more, where they are not missed. */
static void print_bad(const struct verify *v, FILE *to)
{
	bool any = false;

	for (size_t i = 0; i < v->n; i++) {
		if (v->judgements[i].verdict == VERDICT_PASS)
			continue;
		if (!any)
			fputs("\nNot passed\n", to);
		any = true;
		print_check(v->checks[i], &v->judgements[i], to);
	}
}

void verify_print(const struct verify *v, FILE *to)
{
	size_t n[VERDICTS] = { 0 };

	for (size_t i = 0; i < v->n; i++)
		n[v->judgements[i].verdict]++;
	fprintf(to, "Guests with network profile %s\n", v->net);
	for (size_t i = 0; i < verify_n_areas; i++)
		print_area(v, verify_areas[i].boundary, to);
	print_bad(v, to);
	fprintf(to, "\n%zu PASS, %zu FAIL, %zu UNKNOWN\n", n[VERDICT_PASS], n[VERDICT_FAIL],
		n[VERDICT_UNKNOWN]);
}

static json_t *check_json(const struct verify_check *c, const struct judgement *j)
{
	char shown[SHOWN_MAX];

	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", c->id, "boundary", verify_boundary(c),
			 "tried", c->tried, "seen", text_escape(j->seen, shown, sizeof(shown)),
			 "result", verdict_names[j->verdict]);
}

static json_t *checks_json(const struct verify *v)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < v->n; i++)
		failed |= json_array_append_new(list, check_json(v->checks[i], &v->judgements[i]));
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

int verify_print_json(const struct verify *v, FILE *to)
{
	json_t *target = v->prepared.target[0] ? json_string(v->prepared.target) : json_null();
	json_t *root = json_pack("{s:i, s:s, s:s, s:o, s:o}", "schema", VERIFY_SCHEMA, "result",
				 verdict_names[verify_worst(v)], "profile", v->net, "target",
				 target, "checks", checks_json(v));

	return verdict_print_json(root, to);
}

void verify_list(FILE *to)
{
	for (size_t i = 0; i < verify_n_areas; i++) {
		fprintf(to, "%s%s\n", i ? "\n" : "", verify_areas[i].boundary);
		for (const struct verify_check *c = verify_areas[i].checks; c->id; c++)
			fprintf(to, "  %-26s %s\n", c->id, c->tried);
	}
}
