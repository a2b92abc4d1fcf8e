/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text of others made fit for a terminal, a journal line or a JSON string: printable characters in
 * valid UTF-8 are kept, every other byte becomes \xHH, and what does not fit ends in "...".
 * Printable is what can be seen and stays where it was written: no controls, nothing that reorders
 * the line, nothing invisible.
 */
#pragma once

#include <stddef.h>

/* The end of a word that is counted: "1 guest", "2 guests". */
#define PLURAL(n) ((n) == 1 ? "" : "s")

struct text {
	char *buf; /* always NUL-terminated */
	size_t size, used;
	size_t mark; /* how much may stay when "..." has to follow */
	int full;
};

/* Starts an empty text in @buf; @size is at least 8. */
void text_start(struct text *t, char *buf, size_t size);

/* Appends @s escaped; nothing happens once the text is full. */
void text_add(struct text *t, const char *s);

/* One string escaped into @buf, which it returns. */
const char *text_escape(const char *s, char *buf, size_t size);

/* The same for a terminal that knows no UTF-8, where the second byte of a character may be a
 * control: printable ASCII is kept. */
const char *text_escape_ascii(const char *s, char *buf, size_t size);

/* 1 when @s is printable throughout. */
int text_printable(const char *s);

/* 1 when @word is one of those in @text, which blanks and newlines part: a kernel file's. */
int text_has_word(const char *text, const char *word);
