/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * harpe-gov.conf: taken whole and without a contradiction, or refused with one sentence.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "governor/config.h"
#include "governor/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct config *c)
{
	struct limits asked, got;

	if (c->first_uid < 1000 || c->uid_count == 0 ||
	    c->first_uid + c->uid_count < c->first_uid || c->max_guests == 0 ||
	    c->max_connections == 0)
		abort();
	limits_clear(&asked);
	if (policy_limits(c, &asked, &got, NULL) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *file = size ? fmemopen((void *)data, size, "re") : NULL;
	struct config c, before;
	struct error e = ERROR_NULL;

	if (!file)
		return 0;
	memset(&c, 0xa5, sizeof(c));
	before = c;
	if (config_parse(file, "F", &c, &e) == 0)
		check(&c);
	else if (strncmp(e.text, "F:", 2) != 0 || memcmp(&c, &before, sizeof(c)) != 0)
		abort();
	fclose(file);
	return 0;
}
