/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every cmocka test includes, in the order that cmocka wants.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/fd.h"

/* The number of open descriptors of this process. */
int open_fds(void);

/* A file of the source tree; to be freed. */
char *source_text(const char *path);

/* Fails when @page does not have @name between @before and @after. */
void assert_mentions(const char *page, const char *before, const char *name, const char *after);
