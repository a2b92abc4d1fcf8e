/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/compare.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

#define LINE_MAX_SHOWN 160

/* The line at the front of *@text, which moves behind it. */
static int take_line(const char **text, const char **ret)
{
	size_t len = strcspn(*text, "\n");

	*ret = *text;
	*text += len + ((*text)[len] == '\n');
	return len < LINE_MAX_SHOWN ? (int)len : LINE_MAX_SHOWN;
}

static int differ(const char *wanted, const char *live, struct error *e)
{
	size_t same = 0, line = 0;
	const char *w, *l;
	int w_len, l_len;

	for (; wanted[same] && wanted[same] == live[same]; same++)
		if (wanted[same] == '\n')
			line = same + 1;
	if (wanted[same] == live[same])
		return 0;
	wanted += line;
	live += line;
	w_len = take_line(&wanted, &w);
	l_len = take_line(&live, &l);
	return error_set(e, -ESTALE,
			 "table inet %s is not as loaded: it has \"%.*s\" instead of \"%.*s\"",
			 FIREWALL_TABLE, l_len, l, w_len, w);
}

static int compare_objects(const struct ruleset *wanted, const struct ruleset *live,
			   struct error *e)
{
	_cleanup_free_ char *w = ruleset_describe(wanted), *l = ruleset_describe(live);

	if (!w || !l)
		return error_errno(e, -ENOMEM, "cannot compare the firewall");
	return differ(w, l, e);
}

static int differ_element(const struct ruleset_set *s, const uint8_t *element, bool missing,
			  struct error *e)
{
	char text[ELEMENT_TEXT_MAX];

	return error_set(e, -ESTALE, "table inet %s is not as loaded: %s is %s set %s%s",
			 FIREWALL_TABLE, element_text(s->elements.kind, element, text),
			 missing ? "missing in" : "in", s->name,
			 missing ? "" : " and should not be");
}

/* Both ascend. */
static int compare_elements(const struct ruleset_set *wanted, const struct ruleset_set *live,
			    struct error *e)
{
	const struct elements *w = &wanted->elements, *l = &live->elements;
	size_t size = element_size(w->kind), i = 0;

	if (w->foreign || l->foreign)
		return error_set(e, -ESTALE,
				 "table inet %s is not as loaded: set %s has an element of a kind "
				 "that is not ours",
				 FIREWALL_TABLE, wanted->name);
	while (i < w->n && i < l->n &&
	       element_compare(w->kind, w->data + i * size, l->data + i * size) == 0)
		i++;
	if (i == w->n && i == l->n)
		return 0;
	if (i < w->n &&
	    (i == l->n || element_compare(w->kind, l->data + i * size, w->data + i * size) > 0))
		return differ_element(wanted, w->data + i * size, true, e);
	return differ_element(wanted, l->data + i * size, false, e);
}

static int no_table(struct error *e)
{
	return error_set(e, -ESTALE, "there is no table inet %s", FIREWALL_TABLE);
}

static bool is_pool(const struct ruleset_set *s)
{
	return strcmp(s->name, SET_POOL) == 0;
}

/* The first difference of the sets' elements: of those of the pool, of the others, or of both. */
static int compare_sets(const struct ruleset *wanted, const struct ruleset *live, bool pool,
			bool others, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < wanted->n_sets && r == 0; i++)
		if (is_pool(&wanted->sets[i]) ? pool : others)
			r = compare_elements(&wanted->sets[i], &live->sets[i], e);
	return r;
}

int ruleset_compare(const struct ruleset *wanted, const struct ruleset *live, struct error *e)
{
	int r = live->table ? compare_objects(wanted, live, e) : no_table(e);

	return r == 0 ? compare_sets(wanted, live, true, true, e) : r;
}

/* ---- part by part ---- */

/* @rs without what @part does not mean: that is as in @wanted, or left out. Borrowed but for the
 * chains. */
static int show_part(const struct ruleset *rs, const struct ruleset *wanted,
		     enum firewall_part part, struct ruleset *ret)
{
	bool chains = part == FIREWALL_PART_CHAINS || part == FIREWALL_PART_RULES;
	struct ruleset_chain *copies = chains ? calloc(rs->n_chains, sizeof(*copies)) : NULL;

	if (chains && !copies)
		return -ENOMEM;
	*ret = (struct ruleset){ .table = part == FIREWALL_PART_TABLE ? rs->table : wanted->table };
	if (part == FIREWALL_PART_SETS) {
		ret->sets = rs->sets;
		ret->n_sets = rs->n_sets;
	}
	for (size_t i = 0; chains && i < rs->n_chains; i++) {
		copies[i] = rs->chains[i];
		if (part == FIREWALL_PART_RULES)
			copies[i].chain = wanted->chains[i].chain;
		else
			copies[i].n_rules = 0;
	}
	ret->chains = copies;
	ret->n_chains = chains ? rs->n_chains : 0;
	return 0;
}

static int compare_shown(const struct ruleset *wanted, const struct ruleset *live,
			 enum firewall_part part, struct error *e)
{
	struct ruleset w = RULESET_NULL, l = RULESET_NULL;
	int r = show_part(wanted, wanted, part, &w);

	if (r == 0)
		r = show_part(live, wanted, part, &l);
	if (r == 0)
		r = compare_objects(&w, &l, e);
	free(w.chains);
	free(l.chains);
	return r;
}

int ruleset_compare_part(const struct ruleset *wanted, const struct ruleset *live,
			 enum firewall_part part, struct error *e)
{
	bool pool = part == FIREWALL_PART_UIDS, profiles = part == FIREWALL_PART_PROFILES;

	if (!live->table)
		return no_table(e);
	return pool || profiles ? compare_sets(wanted, live, pool, profiles, e)
				: compare_shown(wanted, live, part, e);
}
