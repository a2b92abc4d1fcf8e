/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of an allow-list: each is refused with a sentence or reads back as itself; together they
 * make boxes of which no two have anything in common.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/text.h"
#include "nft/cover.h"

#define ENTRIES_MAX 64
#define BOXES_MAX   2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_line(const char *line, struct allow *ret)
{
	char text[ALLOW_FORMAT_MAX];
	struct error e = ERROR_NULL;
	struct allow back;

	if (allow_parse(line, ret, &e) < 0) {
		if (!e.text[0] || !text_printable(e.text))
			abort();
		return -1;
	}
	if (ret->first_port > ret->last_port || ret->prefix > (ret->family == AF_INET ? 32 : 128) ||
	    allow_parse(allow_format(ret, text), &back, NULL) < 0 ||
	    memcmp(&back, ret, sizeof(back)) != 0)
		abort();
	return 0;
}

static int apart(const struct box *a, const struct box *b)
{
	return a->family != b->family || a->protocol != b->protocol ||
	       a->first_port > b->last_port || b->first_port > a->last_port ||
	       memcmp(a->first, b->last, sizeof(a->first)) > 0 ||
	       memcmp(b->first, a->last, sizeof(b->first)) > 0;
}

static void cover_all(const struct allow *entries, size_t n)
{
	struct box *boxes;
	size_t n_boxes;

	if (cover(entries, n, BOXES_MAX, &boxes, &n_boxes) < 0)
		return;
	for (size_t i = 0; i < n_boxes; i++) {
		if (boxes[i].first_port > boxes[i].last_port ||
		    memcmp(boxes[i].first, boxes[i].last, sizeof(boxes[i].first)) > 0)
			abort();
		for (size_t j = 0; j < i; j++)
			if (!apart(&boxes[i], &boxes[j]))
				abort();
	}
	if (n > 0 && n_boxes == 0)
		abort();
	free(boxes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct allow entries[ENTRIES_MAX];
	char *text = malloc(size + 1), *line, *rest;
	size_t n = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (rest = text; n < ENTRIES_MAX && (line = strsep(&rest, "\n"));)
		if (read_line(line, &entries[n]) == 0)
			n++;
	cover_all(entries, n);
	free(text);
	return 0;
}
