/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"

#define ELLIPSIS "..."

/* ---- what is printable ---- */

/* Characters that steer a terminal, reorder a line, are not seen or mean something to nobody:
 * controls (Cc), surrogates (Cs), private use (Co), line and paragraph separators (Zl, Zp),
 * noncharacters, the bidirectional controls of UAX #9, and the Default_Ignorable_Code_Points of
 * Unicode's DerivedCoreProperties.txt. The last two of every plane are noncharacters too. */
static const struct range {
	uint32_t first, last;
} hidden[] = {
	{ 0x0000, 0x001f },	 { 0x007f, 0x009f }, { 0x00ad, 0x00ad },   { 0x034f, 0x034f },
	{ 0x061c, 0x061c },	 { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
	{ 0x200b, 0x200f },	 { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0x3164, 0x3164 },
	{ 0xd800, 0xf8ff },	 { 0xfdd0, 0xfdef }, { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 },	 { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, UINT32_MAX },
};

static int is_hidden(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return 1;
	return (c & 0xfffe) == 0xfffe;
}

/* The character at @s, and its length; 0 when it is no UTF-8: cut, or longer than it has to be
 * (RFC 3629). */
static size_t decode(const char *s, uint32_t *ret)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t min;
	} forms[] = {
		{ 0x80, 0, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
	};
	unsigned char lead = (unsigned char)*s;
	size_t more = 0;
	uint32_t c;

	while (more < ARRAY_SIZE(forms) && (lead & forms[more].mask) != forms[more].lead)
		more++;
	if (more == ARRAY_SIZE(forms))
		return 0;
	c = lead & (unsigned char)~forms[more].mask;
	for (size_t i = 1; i <= more; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	*ret = c;
	return c >= forms[more].min ? more + 1 : 0;
}

/* The length of the printable character at @s; 0 when there is none. */
static size_t printable(const char *s)
{
	uint32_t c;
	size_t len = decode(s, &c);

	return len > 0 && !is_hidden(c) ? len : 0;
}

int text_printable(const char *s)
{
	size_t len;

	while ((len = printable(s)) > 0)
		s += len;
	return *s == '\0';
}

/* ---- words ---- */

int text_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text + strspn(text, " \n"); *at; at += strspn(at, " \n")) {
		size_t n = strcspn(at, " \n");

		if (n == len && memcmp(at, word, n) == 0)
			return 1;
		at += n;
	}
	return 0;
}

/* ---- escaping ---- */

void text_start(struct text *t, char *buf, size_t size)
{
	*t = (struct text){ .buf = buf, .size = size };
	buf[0] = '\0';
}

/* One character or one escape: whole, or not at all. */
static void add_piece(struct text *t, const char *piece, size_t len)
{
	if (t->used + len >= t->size) {
		memcpy(t->buf + t->mark, ELLIPSIS, sizeof(ELLIPSIS));
		t->full = 1;
		return;
	}
	memcpy(t->buf + t->used, piece, len);
	t->used += len;
	t->buf[t->used] = '\0';
	if (t->used + sizeof(ELLIPSIS) <= t->size)
		t->mark = t->used;
}

/* Characters of more than @longest bytes are escaped as well. */
static void add(struct text *t, const char *s, size_t longest)
{
	while (*s && !t->full) {
		size_t len = printable(s);
		char escape[5];

		if (len > 0 && len <= longest) {
			add_piece(t, s, len);
			s += len;
			continue;
		}
		snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*s++);
		add_piece(t, escape, strlen(escape));
	}
}

void text_add(struct text *t, const char *s)
{
	add(t, s, SIZE_MAX);
}

const char *text_escape(const char *s, char *buf, size_t size)
{
	struct text t;

	text_start(&t, buf, size);
	add(&t, s, SIZE_MAX);
	return buf;
}

const char *text_escape_ascii(const char *s, char *buf, size_t size)
{
	struct text t;

	text_start(&t, buf, size);
	add(&t, s, 1);
	return buf;
}
