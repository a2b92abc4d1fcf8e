/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov audit`: the daemon's program knows what must be, so it is the one that looks.
 */
#include <stddef.h>
#include <unistd.h>

#include "common/verdict.h"
#include "governor/client/verb.h"

enum { AUDIT_JSON, AUDIT_CANARY, AUDIT_OPTIONS };

static const struct option audit_options[AUDIT_OPTIONS] = {
	[AUDIT_JSON] = { .name = "json", .help = "print one JSON object instead" },
	[AUDIT_CANARY] = { .name = "canary", .help = "send packets as well, by uid and by slice" },
};

static int audit_main(const char *socket, const char *const values[], char **operands)
{
	char *const argv[] = { (char *)HARPE_GOVD,
			       (char *)(values[AUDIT_CANARY] ? "--canary" : "--audit"),
			       (char *)(values[AUDIT_JSON] ? "json" : "text"), NULL };

	(void)socket;
	if (operands[0]) {
		complain("audit takes no word: it looks at everything");
		return VERDICT_EXIT_CANNOT;
	}
	if (geteuid() != 0) {
		complain("audit is for root: it reads what others may not see");
		return VERDICT_EXIT_CANNOT;
	}
	return exec_daemon(argv, VERDICT_EXIT_CANNOT);
}

const struct verb verb_audit = {
	.name = "audit",
	.operands = "[--json] [--canary]",
	.summary = "Check that everything that must be in force is (root)",
	.details = "Exit status: 0 all passed, 1 something failed, 2 something is not known,\n"
		   "3 the audit could not be made. See harpe-gov-audit(7).\n",
	.set = { audit_options, AUDIT_OPTIONS, 0 },
	.usage_status = VERDICT_EXIT_CANNOT,
	.main = audit_main,
};
