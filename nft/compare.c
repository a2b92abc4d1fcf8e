/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/compare.h"

#include <errno.h>
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

int ruleset_compare(const struct ruleset *wanted, const struct ruleset *live, struct error *e)
{
	int r;

	if (!live->table)
		return error_set(e, -ESTALE, "there is no table inet %s", FIREWALL_TABLE);
	r = compare_objects(wanted, live, e);
	for (size_t i = 0; i < wanted->n_sets && r == 0; i++)
		r = compare_elements(&wanted->sets[i], &live->sets[i], e);
	return r;
}
