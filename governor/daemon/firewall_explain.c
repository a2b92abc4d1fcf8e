/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov firewall explain`: the way of one packet through the tables of the host, twice: as
 * they are, and with ours as it should be.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "common/units.h"
#include "governor/daemon/firewall_mode.h"
#include "nft/walk.h"

#define JSON_SCHEMA    1
#define WHO_MAX	       160
#define LEGACY_MAX     512
#define PLAIN_PREFIX_4 32
#define PLAIN_PREFIX_6 128

/* What is asked, worked out. */
struct query {
	struct packet packet;
	struct allow entry;
	char who[WHO_MAX]; /* "uid 90000 in harpe.slice/harpe-web.slice" */
	struct text_names names;
	bool json;
};

/* ---- the question ---- */

static int read_entry(const char *text, struct query *q, struct error *e)
{
	struct allow *a = &q->entry;
	int r = allow_parse(text, a, e);

	if (r < 0)
		return r;
	if (a->prefix != (a->family == AF_INET ? PLAIN_PREFIX_4 : PLAIN_PREFIX_6) ||
	    (a->first_port != a->last_port && strncmp(text, "icmp", 4) != 0))
		return error_set(e, -EINVAL,
				 "\"%s\": one packet goes to one address and one port, as in "
				 "\"tcp 192.0.2.10:443\"",
				 text);
	q->packet.family = a->family;
	q->packet.protocol = a->protocol;
	q->packet.port = a->first_port;
	memcpy(q->packet.address, a->address, sizeof(q->packet.address));
	return 0;
}

static int read_uid(const char *text, struct query *q, struct error *e)
{
	uint64_t uid = 0;

	if (strcmp(text, "0") != 0 && (unit_parse(UNIT_COUNT, text, &uid) < 0 || uid >= UINT32_MAX))
		return error_set(e, -EINVAL, "--uid: \"%s\" is no number of a user", text);
	q->packet.uid = (uint32_t)uid;
	return 0;
}

static void place_outside(const struct daemon *d, struct query *q)
{
	q->packet.not_in = d->policy.slice_id;
	q->packet.not_in_level = d->policy.slice_level;
	snprintf(q->who, sizeof(q->who), "uid %" PRIu32 " outside of %s", q->packet.uid, SLICE);
}

static void place_in_profile(const struct daemon *d, const struct profile_slice *slice,
			     struct query *q)
{
	q->packet.cgroup[d->policy.slice_level] = d->policy.slice_id;
	q->packet.cgroup[d->policy.profile_level] = slice->id;
	snprintf(q->who, sizeof(q->who), "uid %" PRIu32 " in %s/%s", q->packet.uid, SLICE,
		 slice->unit);
}

static int read_question(const struct daemon *d, const struct firewall_question *asked,
			 const struct profile_slice *slice, struct query *q, struct error *e)
{
	int r = read_entry(asked->entry, q, e);

	q->json = asked->json;
	q->packet.uid = d->policy.first_uid;
	if (r == 0 && asked->uid)
		r = read_uid(asked->uid, q, e);
	if (r < 0)
		return r;
	if (slice)
		place_in_profile(d, slice, q);
	else
		place_outside(d, q);
	return 0;
}

/* ---- what is not to be seen in nf_tables ---- */

/* The tables of iptables-legacy; empty when there are none. They can drop, too. */
static void read_legacy(uint8_t family, char ret[LEGACY_MAX])
{
	const char *path = family == AF_INET ? "/proc/self/net/ip_tables_names"
					     : "/proc/self/net/ip6_tables_names";

	if (read_file_at(-1, path, ret, LEGACY_MAX) < 0)
		ret[0] = '\0';
	for (char *p = ret; *p; p++)
		if (*p == '\n')
			*p = ' ';
}

/* ---- text ---- */

static const char *const outcome_words[] = {
	[WALK_ACCEPT] = "passes",
	[WALK_DROP] = "is dropped",
	[WALK_UNKNOWN] = "UNKNOWN",
};

/* To be freed. */
static char *rule_text(struct foreign *f, const struct query *q, const struct walk_place *place)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (place->rule)
		text_rule(out, f, place->chain, place->rule, &q->names, false);
	else if (place->chain)
		fprintf(out, "policy %s", place->chain->policy ? "accept" : "drop");
	fclose(out);
	return text;
}

/* To be freed. "table ip nat, chain OUTPUT, type nat hook output priority -100" */
static char *base_text(const struct foreign *f, const struct walk_step *step)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	text_table_name(out, &f->tables[step->base->table]);
	fputs(", chain ", out);
	print_name(out, step->base->name);
	fputs(", ", out);
	text_hook(out, f, step->base);
	fclose(out);
	return text;
}

static void print_place(struct foreign *f, const struct query *q, const char *what,
			const struct walk_place *place)
{
	_cleanup_free_ char *text = rule_text(f, q, place);

	if (place->chain)
		printf("      %schain %s: %s\n", what, place->chain->name, text ?: "?");
}

static void print_step(struct foreign *f, const struct query *q, const struct walk_step *step)
{
	_cleanup_free_ char *base = base_text(f, step);

	printf("  %s: %s%s\n", base ?: "?",
	       step->skipped ? "not asked, its translation is settled"
			     : outcome_words[step->outcome],
	       step->rewritten ? ", and may go elsewhere now" : "");
	if (step->outcome == WALK_UNKNOWN)
		print_place(f, q, "may or may not match: ", &step->doubt);
	else
		print_place(f, q, "", &step->decided);
}

static void print_walk(struct foreign *f, const struct query *q, const struct walk *w,
		       const char *title, enum walk_outcome outcome)
{
	printf("%s: %s\n", title, outcome_words[outcome]);
	if (w->n_steps == 0)
		puts("  no table is on its way");
	for (size_t i = 0; i < w->n_steps; i++)
		print_step(f, q, &w->steps[i]);
	if (w->too_long)
		puts("  more rules than are looked at");
}

/* ---- JSON ---- */

static const char *const outcome_names[] = {
	[WALK_ACCEPT] = "accept",
	[WALK_DROP] = "drop",
	[WALK_UNKNOWN] = "unknown",
};

/* jansson wants UTF-8, the names of others may be anything. */
static json_t *json_text(const char *text)
{
	char shown[1024];

	return text ? json_string(text_escape(text, shown, sizeof(shown))) : json_null();
}

static json_t *json_place(struct foreign *f, const struct query *q, const struct walk_place *place)
{
	_cleanup_free_ char *text = rule_text(f, q, place);

	if (!place->chain)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "chain", json_text(place->chain->name), "handle",
			 place->rule ? json_integer((json_int_t)place->rule->handle) : json_null(),
			 "rule", json_text(text));
}

static json_t *json_step(struct foreign *f, const struct query *q, const struct walk_step *step)
{
	const struct foreign_table *t = &f->tables[step->base->table];
	char family[16];

	return json_pack("{s:s, s:o, s:o, s:o, s:i, s:s, s:b, s:b, s:o, s:o}", "family",
			 foreign_family(t->family, family), "table", json_text(t->name), "chain",
			 json_text(step->base->name), "type", json_text(step->base->type),
			 "priority", step->base->priority, "outcome", outcome_names[step->outcome],
			 "skipped", step->skipped, "rewritten", step->rewritten, "decided",
			 json_place(f, q, &step->decided), "doubt", json_place(f, q, &step->doubt));
}

static json_t *json_walk(struct foreign *f, const struct query *q, const struct walk *w,
			 enum walk_outcome outcome)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < w->n_steps; i++)
		json_array_append_new(steps, json_step(f, q, &w->steps[i]));
	return json_pack("{s:s, s:o}", "outcome", outcome_names[outcome], "steps", steps);
}

static void print_json(const struct query *q, const char *legacy, json_t *live, json_t *wanted)
{
	char entry[ALLOW_FORMAT_MAX];
	json_t *all = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o}", "schema", JSON_SCHEMA, "packet",
				allow_format(&q->entry, entry), "from", q->who, "legacy",
				json_text(legacy), "live", live, "wanted", wanted);

	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

/* ---- the answer ---- */

/* One walk: printed, or put into *ret_json. */
static int answer(struct foreign *f, const struct query *q, const char *title, bool legacy,
		  enum walk_outcome *ret, json_t **ret_json, struct error *e)
{
	_cleanup_(walk_free) struct walk w = WALK_NULL;

	if (walk(f, &q->packet, &w) < 0)
		return error_errno(e, -ENOMEM, "cannot walk through the ruleset");
	*ret = legacy && w.outcome == WALK_ACCEPT ? WALK_UNKNOWN : w.outcome;
	if (q->json)
		*ret_json = json_walk(f, q, &w, *ret);
	else
		print_walk(f, q, &w, title, *ret);
	return 0;
}

static int answer_both(const struct daemon *d, const struct query *q, enum walk_outcome *ret,
		       struct error *e)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	char legacy[LEGACY_MAX], entry[ALLOW_FORMAT_MAX];
	json_t *live = NULL, *wanted = NULL;
	enum walk_outcome as_wanted = WALK_UNKNOWN;
	int r = foreign_read(&f, e);

	read_legacy(q->packet.family, legacy);
	if (r == 0 && !q->json)
		printf("%s of %s\n", allow_format(&q->entry, entry), q->who);
	if (r == 0 && !q->json && legacy[0])
		printf("iptables-legacy has tables that cannot be seen here: %s\n", legacy);
	if (r == 0)
		r = answer(&f, q, "in force", legacy[0], ret, &live, e);
	if (r == 0)
		r = foreign_put_wanted(&f, &d->policy, e);
	if (r == 0)
		r = answer(&f, q, "wanted", legacy[0], &as_wanted, &wanted, e);
	if (r == 0 && q->json) {
		print_json(q, legacy, live, wanted);
		return 0;
	}
	json_decref(live);
	json_decref(wanted);
	if (r == 0 && as_wanted != *ret)
		puts("what is in force is not what is wanted: see harpe-gov firewall show");
	return r;
}

/* A profile with a network of its own: no table of the host's is on the way. */
static int answer_isolated(const struct query *q)
{
	static const uint8_t six[16] = { [15] = 1 };
	bool loopback = q->packet.family == AF_INET
				? q->packet.address[0] == 127
				: memcmp(q->packet.address, six, sizeof(six)) == 0;
	const char *what = loopback ? "it passes, within the guest's own network"
				    : "it goes nowhere: the guest's own network has loopback only";

	if (q->json)
		printf("{\"schema\": %d, \"from\": \"%s\", \"isolated\": true, \"outcome\": "
		       "\"%s\"}\n",
		       JSON_SCHEMA, q->who, outcome_names[loopback ? WALK_ACCEPT : WALK_DROP]);
	else
		printf("%s: %s\n", q->who, what);
	return loopback ? FIREWALL_SAME : FIREWALL_OTHER;
}

int firewall_explain(const struct daemon *d, const struct firewall_question *asked, struct error *e)
{
	static const enum firewall_status statuses[] = {
		[WALK_ACCEPT] = FIREWALL_SAME,
		[WALK_DROP] = FIREWALL_OTHER,
		[WALK_UNKNOWN] = FIREWALL_OPEN,
	};
	const struct profile_slice *slice = asked->profile ? daemon_slice(d, asked->profile) : NULL;
	struct text_cgroup cgroups[FIREWALL_CGROUPS_MAX];
	struct query q = {
		.names = { cgroups, firewall_cgroups(d, cgroups, FIREWALL_CGROUPS_MAX) },
	};
	enum walk_outcome outcome = WALK_UNKNOWN;
	char shown[72];
	int r;

	if (asked->profile && !slice)
		return error_set(
			e, -EINVAL,
			"--profile: there is no network profile \"%s\"; there are isolated, "
			"drop, reject and those that harpe-gov config show has",
			text_escape(asked->profile, shown, sizeof(shown)));
	r = read_question(d, asked, slice, &q, e);
	if (r < 0)
		return r;
	if (slice && slice->own_network)
		return answer_isolated(&q);
	r = answer_both(d, &q, &outcome, e);
	return r < 0 ? r : (int)statuses[outcome];
}
