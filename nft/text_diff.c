/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/text_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

#define AHEAD_MAX 2000 /* lines in which the next common one is looked for */
#define RUN_MIN	  4    /* elements that are worth to be printed as one line */

struct line {
	const char *text, *note; /* note: empty if there is none */
	int text_len, note_len;
};

struct lines {
	struct line *line;
	size_t n;
};

static struct line cut(const char *text, size_t len)
{
	const char *tab = text;

	while (*tab == '\t') /* indentation */
		tab++;
	tab = memchr(tab, '\t', len - (size_t)(tab - text));
	if (!tab)
		return (struct line){ text, "", (int)len, 0 };
	return (struct line){ text, tab + 1, (int)(tab - text), (int)(text + len - tab - 1) };
}

static int split(const char *text, struct lines *ret)
{
	size_t n = 1, at = 0;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	ret->line = calloc(n, sizeof(*ret->line));
	if (!ret->line)
		return -ENOMEM;
	while (*text) {
		size_t len = strcspn(text, "\n");

		ret->line[at++] = cut(text, len);
		text += len + (text[len] == '\n');
	}
	ret->n = at;
	return 0;
}

static bool is_same(const struct line *a, const struct line *b)
{
	return a->text_len == b->text_len && memcmp(a->text, b->text, (size_t)a->text_len) == 0;
}

/* ---- printing ---- */

static void print_line(FILE *out, const char *mark, const struct line *l)
{
	fprintf(out, "%s%.*s", mark, l->text_len, l->text);
	if (l->note_len)
		fprintf(out, " # %.*s", l->note_len, l->note);
	fputc('\n', out);
}

static bool is_element(const struct line *l)
{
	return l->text_len > 3 && memcmp(l->text, "\t\t\t", 3) == 0;
}

static bool is_like(const struct line *a, const struct line *b)
{
	return is_element(b) && a->note_len == b->note_len &&
	       memcmp(a->note, b->note, (size_t)a->note_len) == 0;
}

/* How many lines from @at on, of @n that are in both, can be one line. */
static size_t run_length(const struct lines *live, size_t at, size_t n)
{
	size_t same = 1;

	if (!is_element(&live->line[at]))
		return 1;
	while (same < n && is_like(&live->line[at], &live->line[at + same]))
		same++;
	return same;
}

static void print_run(FILE *out, const struct line *first, const struct line *last, size_t n)
{
	fprintf(out, "  %.*s ... %.*s # %zu elements", first->text_len, first->text,
		last->text_len - 3, last->text + 3, n);
	if (first->note_len)
		fprintf(out, ", %.*s each", first->note_len, first->note);
	fputc('\n', out);
}

static void print_common(FILE *out, const struct lines *live, size_t at, size_t n)
{
	size_t run;

	for (; n > 0; at += run, n -= run) {
		run = run_length(live, at, n);
		if (run >= RUN_MIN) {
			print_run(out, &live->line[at], &live->line[at + run - 1], run);
			continue;
		}
		run = 1;
		print_line(out, "  ", &live->line[at]);
	}
}

/* ---- comparing ---- */

/* The nearest lines that are the same: *i and *j move there. */
static void find_common(const struct lines *a, size_t *i, const struct lines *b, size_t *j)
{
	for (size_t far = 1; far <= AHEAD_MAX; far++)
		for (size_t x = 0; x <= far; x++)
			if (*i + x < a->n && *j + far - x < b->n &&
			    is_same(&a->line[*i + x], &b->line[*j + far - x])) {
				*i += x;
				*j += far - x;
				return;
			}
	*i = a->n;
	*j = b->n;
}

static bool compare(const struct lines *wanted, const struct lines *live, FILE *out)
{
	size_t i = 0, j = 0;
	bool same = true;

	while (i < wanted->n || j < live->n) {
		size_t from_i = i, from_j = j;

		while (i < wanted->n && j < live->n && is_same(&wanted->line[i], &live->line[j])) {
			i++;
			j++;
		}
		print_common(out, live, from_j, j - from_j);
		if (i >= wanted->n && j >= live->n)
			break;
		same = false;
		from_i = i;
		from_j = j;
		find_common(wanted, &i, live, &j);
		for (; from_i < i; from_i++)
			print_line(out, "- ", &wanted->line[from_i]);
		for (; from_j < j; from_j++)
			print_line(out, "+ ", &live->line[from_j]);
	}
	return same;
}

int text_diff(const char *wanted, const char *live, FILE *out, bool *ret_same)
{
	struct lines a = { NULL, 0 }, b = { NULL, 0 };
	int r = split(wanted, &a);

	if (r == 0)
		r = split(live, &b);
	if (r == 0)
		*ret_same = compare(&a, &b, out);
	free(a.line);
	free(b.line);
	return r;
}
