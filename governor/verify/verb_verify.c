/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov verify`: any member of the group may ask whether the boundaries hold. It starts guests
 * as everybody does, and aims at what is the caller's own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/client/verb.h"
#include "governor/verify/verify.h"

enum { VERIFY_NET, VERIFY_TARGET, VERIFY_JSON, VERIFY_LIST, VERIFY_OPTIONS };

static const struct option verify_options[VERIFY_OPTIONS] = {
	[VERIFY_NET] = { .name = "net",
			 .value = "PROFILE",
			 .help = "of guests with this network profile" },
	[VERIFY_TARGET] = { .name = "target",
			    .value = "ADDRESS",
			    .help = "aim packets at this host as well" },
	[VERIFY_JSON] = { .name = "json", .help = "print one JSON object instead" },
	[VERIFY_LIST] = { .name = "list", .help = "start nothing, print what would be tried" },
};

static int refuse(const char *sentence)
{
	complain(sentence);
	return VERDICT_EXIT_CANNOT;
}

static int refuse_value(const char *option, const char *value, const char *why)
{
	complain_of(option, value, why);
	return VERDICT_EXIT_CANNOT;
}

static bool is_address(const char *text)
{
	char buf[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, buf) == 1 || inet_pton(AF_INET6, text, buf) == 1;
}

static bool is_built_in(const char *net)
{
	static const char *const names[] = { "isolated", "drop", "reject" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(net, names[i]) == 0)
			return true;
	return false;
}

/* The guest's whole environment, as verify_guests.c makes it. */
static void note_environment(struct verify *v)
{
	snprintf(v->environment, sizeof(v->environment), "PATH=/usr/bin:/bin HARPE_GOV_VERIFY=%s",
		 v->prepared.nonce);
}

/* No guest said a word: why is what the client said. */
static int could_not_run(const struct verify *v)
{
	const struct guest_run *g = &v->runs[RUN_MAIN];
	char text[ERROR_TEXT_MAX] = "", sentence[ERROR_TEXT_MAX + 64];
	ssize_t n = pread(g->errors, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	snprintf(sentence, sizeof(sentence), "verify: no guest runs: %s",
		 text[0] ? text : "see harpe-gov run -- " HARPE_GOV_PROBE " --list");
	return refuse(sentence);
}

static int judge_and_print(struct verify *v, bool as_json)
{
	if (!v->net) /* the policy's */
		v->net = v->runs[RUN_MAIN].row.profile;
	v->has_allowances = !is_built_in(v->net);
	if (!v->runs[RUN_MAIN].ready)
		return could_not_run(v);
	verify_judge(v);
	if (as_json && verify_print_json(v, stdout) < 0)
		return refuse("verify: the result cannot be printed");
	if (!as_json)
		verify_print(v, stdout);
	return verify_status(v);
}

static int verify(struct verify *v, const char *target, bool as_json)
{
	struct error e = ERROR_NULL;
	int r = prepare(&v->prepared, target, &e);

	note_environment(v);
	verify_choose(v);
	if (r == 0)
		r = verify_run_all(v, &e);
	if (r == 0)
		r = judge_and_print(v, as_json);
	else
		r = refuse(e.text);
	prepare_undo(&v->prepared);
	return r;
}

static int list(const char *const values[])
{
	if (values[VERIFY_NET] || values[VERIFY_TARGET] || values[VERIFY_JSON])
		return refuse("--list goes alone: it is the same with every --net and --target, "
			      "and is no JSON");
	verify_list(stdout);
	return 0;
}

static int verify_main(const char *socket, const char *const values[], char **operands)
{
	_cleanup_free_ struct verify *v = calloc(1, sizeof(*v));

	if (operands[0])
		return refuse("verify takes no word: it tries everything");
	if (values[VERIFY_LIST])
		return list(values);
	if (values[VERIFY_TARGET] && !is_address(values[VERIFY_TARGET]))
		return refuse_value("--target", values[VERIFY_TARGET],
				    "is no IPv4 or IPv6 address, as in --target=192.0.2.1");
	if (values[VERIFY_NET] && !profile_name_valid(values[VERIFY_NET]))
		return refuse_value("--net", values[VERIFY_NET],
				    "is no network profile's name: 1 to 31 of a-z 0-9");
	if (!v)
		return refuse("verify: out of memory");
	v->socket = socket;
	v->net = values[VERIFY_NET];
	v->progress = isatty(STDERR_FILENO);
	return verify(v, values[VERIFY_TARGET], values[VERIFY_JSON] != NULL);
}

const struct verb verb_verify = {
	.name = "verify",
	.operands = "[--net=PROFILE] [--target=ADDRESS] [--json] | --list",
	.summary = "Try every boundary, from inside of guests that are started for it",
	.details = "Exit status: 0 all passed, 1 something failed, 2 something is not known,\n"
		   "3 it could not be tried.\n",
	.set = { verify_options, VERIFY_OPTIONS, 0 },
	.usage_status = VERDICT_EXIT_CANNOT,
	.main = verify_main,
};
