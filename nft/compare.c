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

static int compare_uids(const struct ruleset *wanted, const struct ruleset *live, struct error *e)
{
	size_t i = 0;

	while (i < wanted->n_uids && i < live->n_uids && wanted->uids[i] == live->uids[i])
		i++;
	if (i == wanted->n_uids && i == live->n_uids)
		return 0;
	if (i < wanted->n_uids && (i == live->n_uids || live->uids[i] > wanted->uids[i]))
		return error_set(e, -ESTALE,
				 "table inet %s is not as loaded: uid %u is missing in set %s",
				 FIREWALL_TABLE, wanted->uids[i], SET_POOL);
	return error_set(e, -ESTALE,
			 "table inet %s is not as loaded: uid %u is in set %s and should not be",
			 FIREWALL_TABLE, live->uids[i], SET_POOL);
}

int ruleset_compare(const struct ruleset *wanted, const struct ruleset *live, struct error *e)
{
	int r;

	if (!live->table)
		return error_set(e, -ESTALE, "there is no table inet %s", FIREWALL_TABLE);
	r = compare_objects(wanted, live, e);
	return r < 0 ? r : compare_uids(wanted, live, e);
}
