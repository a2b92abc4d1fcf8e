/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's entry point: started by harpe-gov.service and harpe-gov-firewall.service. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "common/fd.h"
#include "common/state.h"
#include "common/text.h"
#include "governor/audit/audit.h"
#include "governor/daemon/access.h"
#include "governor/daemon/daemon.h"
#include "governor/daemon/firewall_mode.h"
#include "governor/daemon/overlap.h"
#include "governor/daemon/preflight.h"
#include "governor/daemon/slices.h"

/* Whoever wants to run a guest meanwhile is told what the service manager is told. */
static int serve(struct error *e)
{
	int r = preflight_check(false, e);

	if (r == 0)
		r = daemon_serve(e);
	if (r < 0 && getenv("NOTIFY_SOCKET"))
		state_refuse(STATE_FILE, e->text);
	return r;
}

static int load_firewall(struct error *e)
{
	int r = preflight_check(true, e);

	return r < 0 ? r : daemon_load_firewall_once(e);
}

static int check_config(struct error *e)
{
	static struct config config;
	static struct view_base view;
	int r = config_load(CONFIG_PATH, &config, e);

	if (r == 0)
		r = access_resolve(&config, e);
	if (r == 0)
		r = overlap_check(config.first_uid, config.uid_count, e);
	return r < 0 ? r : view_base_load(&config.view_ro, &config.view_hide, &view, e);
}

static int show_config(struct error *e)
{
	int r = config_show(CONFIG_PATH, stdout, e);

	if (r == 0 && !file_written(stdout))
		r = error_set(e, -EIO, "cannot write to standard output");
	return r;
}

static int make_slices(struct error *e)
{
	static struct config config;
	int r = config_load(CONFIG_PATH, &config, e);

	if (r == 0)
		r = slices_make(&config, e);
	if (r == 0) /* a reload stops here; a daemon that starts looks itself */
		r = slices_check(&config, e);
	config_free(&config);
	return r;
}

static int audit_as_text(struct error *e)
{
	return audit_main(false, false, e);
}

static int audit_as_json(struct error *e)
{
	return audit_main(true, false, e);
}

static int canary_as_text(struct error *e)
{
	return audit_main(false, true, e);
}

static int canary_as_json(struct error *e)
{
	return audit_main(true, true, e);
}

static const struct mode {
	const char *option, *operand; /* NULL = none */
	int (*run)(struct error *e);  /* an exit status, or a negative errno with a sentence: */
	int failed;		      /* then this is the exit status */
	const char *help;
} modes[] = {
	{ NULL, NULL, serve, 1, "serve (started by harpe-gov.service)" },
	{ "--firewall", NULL, load_firewall, 1, "load the firewall and leave" },
	{ "--slices", NULL, make_slices, 1, "make the slices of the profiles and leave" },
	{ "--config", "check", check_config, 1, "is the configuration good?" },
	{ "--config", "show", show_config, 1, "what the files say, and where" },
	{ "--audit", "text", audit_as_text, VERDICT_EXIT_CANNOT, "is everything in force?" },
	{ "--audit", "json", audit_as_json, VERDICT_EXIT_CANNOT, "the same as JSON" },
	{ "--canary", "text", canary_as_text, VERDICT_EXIT_CANNOT, "the same, sending packets" },
	{ "--canary", "json", canary_as_json, VERDICT_EXIT_CANNOT, "the same as JSON" },
};

static int usage(FILE *to, int status)
{
	fputs("usage:\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		fprintf(to, "  harpe-govd %-10s %-6s %s\n", modes[i].option ?: "",
			modes[i].operand ?: "", modes[i].help);
	return status;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int main(int argc, char **argv)
{
	struct error e = ERROR_NULL;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	if (argc > 2 && strcmp(argv[1], "--firewall") == 0)
		return firewall_mode(argv + 2);
	for (size_t i = 0; argc <= 3 && i < ARRAY_SIZE(modes); i++) {
		char shown[4 * ERROR_TEXT_MAX];
		int r;

		if (!same(modes[i].option, argv[1]) ||
		    !same(modes[i].operand, argc > 1 ? argv[2] : NULL))
			continue;
		r = modes[i].run(&e);
		if (r < 0)
			fprintf(stderr, "%sharpe-govd: %s\n",
				getenv("JOURNAL_STREAM") ? SD_ERR : "",
				text_escape(e.text, shown, sizeof(shown)));
		return r < 0 ? modes[i].failed : r;
	}
	return usage(stderr, 2);
}
