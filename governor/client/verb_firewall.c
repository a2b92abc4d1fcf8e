/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov firewall`: the daemon's program has the configuration and speaks netlink, so it does
 * the work; governor/daemon/firewall_mode.c.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/client/verb.h"

enum { FIREWALL_PROFILE, FIREWALL_UID, FIREWALL_JSON, FIREWALL_OPTIONS };

#define STATUS_FAILED 3 /* 0, 1 and 2 are answers */
#define ENTRY_MAX     160

static const struct option firewall_options[FIREWALL_OPTIONS] = {
	[FIREWALL_PROFILE] = { .name = "profile",
			       .value = "NAME",
			       .help = "explain: a guest with this network profile" },
	[FIREWALL_UID] = { .name = "uid", .value = "N", .help = "explain: a program of this user" },
	[FIREWALL_JSON] = { .name = "json", .help = "explain: print one JSON object instead" },
};

static int refuse(const char *sentence)
{
	complain(sentence);
	return STATUS_FAILED;
}

static int call_explain(const char *const values[], char **operands)
{
	char entry[ENTRY_MAX];
	char *argv[] = { (char *)HARPE_GOVD,
			 (char *)"--firewall",
			 operands[0],
			 (char *)(values[FIREWALL_PROFILE] ?: ""),
			 (char *)(values[FIREWALL_UID] ?: ""),
			 (char *)(values[FIREWALL_JSON] ? "json" : "text"),
			 entry,
			 NULL };

	if (!values[FIREWALL_PROFILE] && !values[FIREWALL_UID])
		return refuse("firewall explain needs --profile NAME or --uid N: whose packet?");
	if ((values[FIREWALL_PROFILE] && !values[FIREWALL_PROFILE][0]) ||
	    (values[FIREWALL_UID] && !values[FIREWALL_UID][0]))
		return refuse(
			"firewall explain: --profile and --uid need a value that is not empty");
	if (!operands[1] || !operands[2] || operands[3])
		return refuse("firewall explain needs a protocol and where to, as in \"tcp "
			      "192.0.2.10:443\"");
	if (snprintf(entry, sizeof(entry), "%s %s", operands[1], operands[2]) >= ENTRY_MAX)
		return refuse("firewall explain: where to? That is too long for an address");
	return exec_daemon(argv, STATUS_FAILED);
}

static int call_plain(const char *const values[], char **operands)
{
	char *const argv[] = { (char *)HARPE_GOVD, (char *)"--firewall", operands[0], NULL };

	for (int i = 0; i < FIREWALL_OPTIONS; i++)
		if (values[i])
			return refuse("firewall: options are for explain only");
	return operands[1] ? refuse("firewall show, export, apply and remove take no argument")
			   : exec_daemon(argv, STATUS_FAILED);
}

static int firewall_main(const char *socket, const char *const values[], char **operands)
{
	static const struct {
		const char *word;
		int (*call)(const char *const values[], char **operands);
	} words[] = {
		{ "show", call_plain },	  { "export", call_plain },    { "apply", call_plain },
		{ "remove", call_plain }, { "explain", call_explain },
	};

	(void)socket;
	for (size_t i = 0; operands[0] && i < ARRAY_SIZE(words); i++) {
		if (strcmp(operands[0], words[i].word) != 0)
			continue;
		if (geteuid() != 0)
			return refuse("firewall: only root can look at the firewall; try it with "
				      "sudo");
		return words[i].call(values, operands);
	}
	if (!operands[0])
		return refuse("firewall needs one word: show, export, apply, remove or explain");
	complain_of("firewall", operands[0], "is not show, export, apply, remove or explain");
	return STATUS_FAILED;
}

const struct verb verb_firewall = {
	.name = "firewall",
	.operands = "show | export | apply | remove | explain [OPTION...] PROTOCOL ADDRESS:PORT",
	.summary = "Show, export or explain the firewall of the guests (root)",
	.details = "show: the table as it is in force, beside what is wanted.\n"
		   "export: what is wanted, as a file for nft -f.\n"
		   "apply, remove: load or remove the table, on hosts without the daemon.\n"
		   "explain: would a packet pass, and which rule of which table decides?\n"
		   "Exit status: 0 as wanted, or it would pass; 1 not as wanted, or it would be\n"
		   "dropped; 2 it cannot be said; 3 could not run.\n",
	.set = { firewall_options, FIREWALL_OPTIONS, 0 },
	.usage_status = STATUS_FAILED,
	.main = firewall_main,
};
