/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the text behind "key =" to the value; for config.c alone. */
#pragma once

#include "governor/daemon/config_keys.h"

/* Where the text stands, and where the sentence goes when it is not valid. */
struct value_place {
	const char *path;
	uint8_t file; /* in config->files */
	uint32_t line;
	struct error *error;
};

/* Writes what @value says to @to, which is of @key's kind. Negative errno: the sentence names the
 * text and what it should be, not the key. */
int config_set_value(const struct value_place *p, const struct key *key, void *to,
		     const char *value);
