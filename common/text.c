/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"

#include <stdio.h>
#include <string.h>

#define ELLIPSIS "..."

static int printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

void text_start(struct text *t, char *buf, size_t size)
{
	*t = (struct text){ .buf = buf, .size = size };
	buf[0] = '\0';
}

static void add_byte(struct text *t, char c)
{
	char piece[5] = { c };

	if (!printable(c))
		snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)c);
	if (t->used + strlen(piece) >= t->size) {
		memcpy(t->buf + t->mark, ELLIPSIS, sizeof(ELLIPSIS));
		t->full = 1;
		return;
	}
	memcpy(t->buf + t->used, piece, strlen(piece) + 1);
	t->used += strlen(piece);
	if (t->used + sizeof(ELLIPSIS) <= t->size)
		t->mark = t->used;
}

void text_add(struct text *t, const char *s)
{
	for (; *s && !t->full; s++)
		add_byte(t, *s);
}

const char *text_escape(const char *s, char *buf, size_t size)
{
	struct text t;

	text_start(&t, buf, size);
	text_add(&t, s);
	return buf;
}

int text_printable(const char *s)
{
	while (printable(*s))
		s++;
	return *s == '\0';
}
