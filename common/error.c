/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int r, const char *format, ...)
{
	va_list args;

	if (!e)
		return r;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	return r;
}

int error_errno(struct error *e, int r, const char *format, ...)
{
	va_list args;
	size_t used;

	if (!e)
		return r;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof(e->text) - used, ": %s", strerror(-r));
	return r;
}

int error_wrap(struct error *e, int r, const char *format, ...)
{
	char context[ERROR_TEXT_MAX], whole[2 * ERROR_TEXT_MAX + 2];
	va_list args;

	if (!e)
		return r;
	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);
	snprintf(whole, sizeof(whole), "%s: %s", context, e->text);
	memcpy(e->text, whole, sizeof(e->text) - 1);
	e->text[sizeof(e->text) - 1] = '\0';
	return r;
}
