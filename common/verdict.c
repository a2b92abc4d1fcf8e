/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/verdict.h"

#include <errno.h>

#include "common/fd.h"

const char *const verdict_names[VERDICTS] = {
	[VERDICT_PASS] = "PASS",
	[VERDICT_UNKNOWN] = "UNKNOWN",
	[VERDICT_FAIL] = "FAIL",
};

int verdict_exit_status(enum verdict worst)
{
	static const int statuses[VERDICTS] = {
		[VERDICT_PASS] = VERDICT_EXIT_PASS,
		[VERDICT_UNKNOWN] = VERDICT_EXIT_UNKNOWN,
		[VERDICT_FAIL] = VERDICT_EXIT_FAIL,
	};

	return statuses[worst];
}

int verdict_print_json(json_t *root, FILE *to)
{
	_cleanup_free_ char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;

	json_decref(root);
	if (!text)
		return -ENOMEM;
	return fprintf(to, "%s\n", text) < 0 ? -EIO : 0;
}
