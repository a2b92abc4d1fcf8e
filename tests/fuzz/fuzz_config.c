/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * harpe-gov.conf: taken whole and without a contradiction, or refused with one sentence.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "governor/daemon/config.h"
#include "governor/daemon/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every value has an origin that the file explains. */
static void check_origins(const struct config *c, const struct access *a,
			  const struct limit_origins *origins)
{
	char most[ORIGIN_TEXT_MAX];

	for (int i = 0; i < LIMIT_COUNT; i++) {
		config_ceiling_origin(c, a, (enum limit)i, most, sizeof(most));
		if ((strncmp(most, "F:", 2) != 0 && strcmp(most, LIMIT_BUILT_IN) != 0) ||
		    (strncmp(origins->text[i], "F:", 2) != 0 &&
		     strcmp(origins->text[i], LIMIT_BUILT_IN) != 0))
			abort();
	}
}

static void check(const struct config *c)
{
	struct limits asked, got;
	struct limit_origins origins;

	if (c->first_uid < 65536 || c->uid_count == 0 ||
	    c->first_uid + c->uid_count < c->first_uid || c->n_access == 0 ||
	    c->n_access > ACCESS_SECTIONS_MAX)
		abort();
	limits_clear(&asked);
	for (uint32_t i = 0; i < c->n_access; i++) {
		if (c->access[i].max_connections == 0 ||
		    policy_limits(c, &c->access[i], &asked, &got, &origins, NULL) < 0)
			abort();
		check_origins(c, &c->access[i], &origins);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *file = size ? fmemopen((void *)data, size, "re") : NULL;
	static struct config c;
	struct error e = ERROR_NULL;

	if (!file)
		return 0;
	config_defaults(&c);
	if (config_read(file, "F", &c, &e) < 0) {
		if (strncmp(e.text, "F:", 2) != 0)
			abort();
	} else if (config_check_profiles(&c, &e) < 0) {
		if (strncmp(e.text, "F:", 2) != 0)
			abort();
	} else if (config_check(&c, &e) == 0) {
		check(&c);
	} else if (strncmp(e.text, "F:", 2) != 0) {
		abort();
	}
	config_free(&c);
	fclose(file);
	return 0;
}
