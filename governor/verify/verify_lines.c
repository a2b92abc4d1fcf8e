/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/verify/verify.h"

#include <string.h>

static bool fit_to_show(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != '\t' && (line[i] < ' ' || line[i] > '~'))
			return false;
	return true;
}

static void end_line(struct said_lines *l, said_take take, void *userdata)
{
	l->buf[l->used] = '\0';
	if (!l->skipping && fit_to_show(l->buf, l->used))
		take(userdata, l->buf);
	l->used = 0;
	l->skipping = false;
}

void said_feed(struct said_lines *l, const char *data, size_t size, said_take take, void *userdata)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\n')
			end_line(l, take, userdata);
		else if (l->used + 1 < sizeof(l->buf))
			l->buf[l->used++] = data[i];
		else
			l->skipping = true;
	}
}

bool said_split(char *line, const char **ret_id, const char **ret_outcome, const char **ret_detail)
{
	char *outcome = strchr(line, '\t'), *detail = outcome ? strchr(outcome + 1, '\t') : NULL;

	if (!detail || strchr(detail + 1, '\t'))
		return false;
	*outcome++ = '\0';
	*detail++ = '\0';
	if (strlen(outcome) >= SAID_OUTCOME_MAX || strlen(detail) >= SAID_DETAIL_MAX)
		return false;
	*ret_id = line;
	*ret_outcome = outcome;
	*ret_detail = detail;
	return true;
}

int said_add(char *line, const char *const *ids, size_t n, struct said *said)
{
	const char *id, *outcome, *detail;

	if (!said_split(line, &id, &outcome, &detail))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(ids[i], id) != 0)
			continue;
		if (said[i].n < 2) /* the second says no more than that there is one */
			said[i].n++;
		if (said[i].n == 1) {
			strcpy(said[i].outcome, outcome);
			strcpy(said[i].detail, detail);
		}
		return (int)i;
	}
	return -1;
}
