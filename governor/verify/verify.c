/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/verify/verify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/verify/verify_judge.h"

static void choose(struct verify *v, const struct verify_check *c)
{
	if (v->n == VERIFY_CHECKS_MAX)
		abort(); /* a row too many in the table: the unit tests see it */
	v->checks[v->n] = c;
	v->ids[v->n++] = c->id;
}

/* There is something to aim at. */
static bool applies(const struct verify *v, const struct verify_check *c)
{
	return c->aim < AIM_TARGET || v->prepared.aim[c->aim][0];
}

void verify_choose(struct verify *v)
{
	for (size_t i = 0; i < verify_n_areas; i++)
		for (const struct verify_check *c = verify_areas[i].checks; c->id; c++)
			if (applies(v, c))
				choose(v, c);
}

const char *verify_boundary(const struct verify_check *c)
{
	for (size_t i = 0; i < verify_n_areas; i++)
		for (const struct verify_check *at = verify_areas[i].checks; at->id; at++)
			if (at == c)
				return verify_areas[i].boundary;
	return "";
}

/* What is known of a guest whose probe has said nothing: the client's own sentence, or how it
 * ended.
 */
static void explain_silence(const struct guest_run *g, struct judgement *j)
{
	char text[VERIFY_REASON_MAX] = "", shown[4 * VERIFY_REASON_MAX];
	ssize_t n = g->errors >= 0 ? pread(g->errors, text, sizeof(text) - 1, 0) : 0;

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	judge_set(j, VERDICT_UNKNOWN, "the probe did not report; %s",
		  text[0]    ? text_escape(text, shown, sizeof(shown))
		  : g->ended ? "its guest has ended"
			     : "its guest did not end");
}

static void judge(const struct verify *v, size_t i, struct judgement *j)
{
	const struct verify_check *c = v->checks[i];
	const struct said *s = &v->said[i];

	if (c->aim != AIM_NONE && v->prepared.why_not[c->aim][0])
		judge_set(j, VERDICT_UNKNOWN, "%s", v->prepared.why_not[c->aim]);
	else if (!c->no_probe && s->n == 0)
		explain_silence(&v->runs[c->run], j);
	else if (!c->no_probe && s->n > 1 && strcmp(s->outcome, "begun") != 0)
		judge_set(j, VERDICT_UNKNOWN, "the probe reported more than once");
	else
		c->judge(v, c, s, j);
}

void verify_judge(struct verify *v)
{
	for (size_t i = 0; i < v->n; i++)
		judge(v, i, &v->judgements[i]);
}

enum verdict verify_worst(const struct verify *v)
{
	enum verdict worst = v->n == 0 ? VERDICT_UNKNOWN : VERDICT_PASS;

	for (size_t i = 0; i < v->n; i++)
		if (v->judgements[i].verdict > worst)
			worst = v->judgements[i].verdict;
	return worst;
}

int verify_status(const struct verify *v)
{
	return verdict_exit_status(verify_worst(v));
}
