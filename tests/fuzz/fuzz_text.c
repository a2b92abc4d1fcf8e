/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text of others on its way to a terminal, judged by the C library's decoder: the first byte is the
 * size of the buffer, the rest the text.
 */
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "common/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is all of it UTF-8, without controls? */
static void judge(const char *shown)
{
	mbstate_t state = {};
	wchar_t c;
	size_t n;

	while ((n = mbrtowc(&c, shown, strlen(shown) + 1, &state)) > 0) {
		if (n > 4 || iswcntrl((wint_t)c) || (c >= 0x7f && c < 0xa0))
			abort();
		shown += n;
	}
}

static void escape(const char *text, size_t size,
		   const char *(*by)(const char *text, char *buf, size_t size))
{
	char *shown = malloc(size);

	if (!shown)
		return;
	by(text, shown, size);
	judge(shown);
	if (!text_printable(shown) || strlen(shown) >= size)
		abort();
	if (by == text_escape && strlen(text) < size &&
	    text_printable(text) != (strcmp(text, shown) == 0))
		abort();
	free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size ? malloc(size) : NULL;

	if (!text)
		return 0;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	escape(text, 8u + data[0], text_escape);
	escape(text, 8u + data[0], text_escape_ascii);
	free(text);
	return 0;
}
