/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov config`: the daemon's program knows the configuration, so it is the one that looks,
 * and this command line does not pay for a parser at every run.
 */
#include <stddef.h>
#include <string.h>

#include "governor/client/verb.h"

static int config_main(const char *socket, const char *const values[], char **operands)
{
	char *const argv[] = { (char *)HARPE_GOVD, (char *)"--config", operands[0], NULL };

	(void)socket;
	(void)values;
	if (!operands[0] || operands[1]) {
		complain("config needs one word: check or show");
		return verb_config.usage_status;
	}
	if (strcmp(operands[0], "check") != 0 && strcmp(operands[0], "show") != 0) {
		complain_of("config", operands[0], "is neither check nor show");
		return verb_config.usage_status;
	}
	return exec_daemon(argv, 1);
}

const struct verb verb_config = {
	.name = "config",
	.operands = "check | show",
	.summary = "Check the configuration files, or show what they say",
	.details = "check: one sentence and exit status 1 when harpe-govd would not take it.\n"
		   "show: every value, with the file and line that it comes from. The daemon has\n"
		   "it after \"systemctl reload harpe-gov\".\n",
	.set = { NULL, 0, 0 },
	.usage_status = 2,
	.main = config_main,
};
