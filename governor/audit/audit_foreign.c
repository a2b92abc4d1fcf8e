/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What everybody else has on the path of a guest's packet. A drop of ours is final, so what others
 * accept is of no account, before or behind us. What matters is what happens before: a copy that is
 * sent elsewhere, and a destination that is rewritten and then is one that a profile allows.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"
#include "governor/audit/audit_rewrite.h"

#define NAMES_MAX 1024 /* /proc/net/ip_tables_names */
#define SHOWN_MAX 512

/* ---- rules ---- */

/* An expression by its name, or what iptables-nft hides in "target". */
struct deed {
	const char *expr, *target;
};

static bool does(const struct foreign_expr *x, const struct deed *deed)
{
	const char *target;

	if (deed->expr && strcmp(x->name, deed->expr) == 0)
		return true;
	if (!deed->target || strcmp(x->name, "target") != 0)
		return false;
	target = nest_string(x->data, NFTA_TARGET_NAME);
	return target && strcmp(target, deed->target) == 0;
}

static bool rule_does(const struct foreign_rule *rule, const struct deed *deeds, size_t n)
{
	struct nest rest = rule->exprs;
	struct foreign_expr x;

	while (foreign_next_expr(&rest, &x))
		for (size_t i = 0; i < n; i++)
			if (does(&x, &deeds[i]))
				return true;
	return false;
}

static const struct deed copies[] = { { "dup", "TEE" } };
static const struct deed queues[] = { { "queue", "NFQUEUE" } };
static const struct deed offloads[] = { { "flow_offload", NULL } };

/* ---- chains ---- */

static bool is_ours(const struct foreign_table *t)
{
	return t->family == NFPROTO_INET && strcmp(t->name, FIREWALL_TABLE) == 0;
}

static bool is_ip(const struct foreign_table *t)
{
	return t->family == NFPROTO_INET || t->family == NFPROTO_IPV4 || t->family == NFPROTO_IPV6;
}

static bool is_on_output(const struct foreign *all, const struct foreign_chain *c)
{
	return c->base && is_ip(&all->tables[c->table]) && c->hook == NF_INET_LOCAL_OUT;
}

/* Has the table a chain that sees a guest's packet before ours does? At the same priority the order
 * is that of loading. */
static bool comes_before(const struct foreign *all, size_t table)
{
	for (size_t i = 0; i < all->n_chains; i++)
		if (all->chains[i].table == table && is_on_output(all, &all->chains[i]) &&
		    all->chains[i].priority <= FIREWALL_PRIORITY)
			return true;
	return false;
}

static const char *chain_text(const struct foreign *all, const struct foreign_chain *c,
			      char shown[SHOWN_MAX])
{
	const struct foreign_table *t = &all->tables[c->table];
	char family[16], raw[SHOWN_MAX / 4];

	snprintf(raw, sizeof(raw), "chain %s %.40s %.40s", foreign_family(t->family, family),
		 t->name, c->name);
	return text_escape(raw, shown, SHOWN_MAX);
}

/* Says @sentence of each chain of a table before ours that has such a rule. */
static void say_chains(const struct foreign *all, const struct deed *deeds, size_t n,
		       enum verdict result, const char *sentence, struct finding *f)
{
	char shown[SHOWN_MAX];

	for (size_t i = 0; i < all->n_chains; i++) {
		const struct foreign_chain *c = &all->chains[i];
		bool found = false;

		if (is_ours(&all->tables[c->table]) || !comes_before(all, c->table))
			continue;
		for (size_t j = 0; j < c->n_rules && !found; j++)
			found = rule_does(&c->rules[j], deeds, n);
		if (found)
			finding_add(f, result, "%s %s", chain_text(all, c, shown), sentence);
	}
}

static bool is_read(const struct audit *a, struct finding *f)
{
	if (a->others.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->others.e.text);
	return a->others.r == 0;
}

/* ---- the checks ---- */

static void look_copies(const struct audit *a, struct finding *f)
{
	if (!is_read(a, f))
		return;
	say_chains(&a->foreign, copies, ARRAY_SIZE(copies), VERDICT_FAIL,
		   "sends copies of packets before ours drops them", f);
	say_chains(&a->foreign, queues, ARRAY_SIZE(queues), VERDICT_UNKNOWN,
		   "hands packets to a program before ours drops them: what it does is not known",
		   f);
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "no other table does, of %zu", a->foreign.n_tables);
}

static bool allows(const struct audit *a)
{
	for (size_t i = 0; i < a->wanted.policy.n_profiles; i++)
		if (a->wanted.policy.profiles[i].n_entries > 0)
			return true;
	return false;
}

static const struct {
	const char *path, *tool;
} legacy[] = {
	{ "/proc/net/ip_tables_names", "iptables-legacy" },
	{ "/proc/net/ip6_tables_names", "ip6tables-legacy" },
};

static bool has_legacy(size_t i, const char *table)
{
	char text[NAMES_MAX];
	size_t len = strlen(table);
	ssize_t n = read_file_at(AT_FDCWD, legacy[i].path, text, sizeof(text));

	for (const char *at = n > 0 ? text : NULL; at;) {
		if (strncmp(at, table, len) == 0 && (at[len] == '\n' || at[len] == '\0'))
			return true;
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return false;
}

/* Says each chain of a table before ours that makes a destination which a profile allows. */
static void say_rewrites(const struct audit *a, size_t *n_rules, struct finding *f)
{
	const struct foreign *all = &a->foreign;
	char shown[SHOWN_MAX];

	for (size_t i = 0; i < all->n_chains; i++) {
		const struct foreign_chain *c = &all->chains[i];
		const struct foreign_table *t = &all->tables[c->table];
		size_t allowed = 0;

		for (size_t j = 0; j < c->n_rules && !is_ours(t) && comes_before(all, c->table);
		     j++) {
			struct rewrite w;

			rewrite_read(&c->rules[j], t->family, &w);
			*n_rules += w.n > 0;
			allowed += rewrite_allowed(&a->wanted.policy, &w) != 0;
		}
		if (allowed > 0)
			finding_add(f, VERDICT_UNKNOWN,
				    "%s can turn a destination into one that a profile allows",
				    chain_text(all, c, shown));
	}
}

static void look_rewrites(const struct audit *a, struct finding *f)
{
	size_t rules = 0;

	if (!is_read(a, f))
		return;
	if (a->policy.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->policy.e.text);
		return;
	}
	say_rewrites(a, &rules, f);
	for (size_t i = 0; i < ARRAY_SIZE(legacy) && allows(a); i++)
		if (has_legacy(i, "nat"))
			finding_add(f, VERDICT_UNKNOWN,
				    "%s has a nat table, whose rules are not read", legacy[i].tool);
	if (f->n == 0)
		finding_add(f, VERDICT_PASS,
			    "%zu rule%s before ours turn%s destinations into others, none of which "
			    "a profile allows",
			    rules, PLURAL(rules), rules == 1 ? "s" : "");
}

static void count(const struct foreign *all, struct finding *f)
{
	size_t chains = 0, accepting = 0, offloading = 0, alike = 0;

	for (size_t i = 0; i < all->n_chains; i++) {
		const struct foreign_chain *c = &all->chains[i];

		if (is_ours(&all->tables[c->table]))
			continue;
		chains += is_on_output(all, c);
		accepting += is_on_output(all, c) && c->policy == NF_ACCEPT;
		for (size_t j = 0; j < c->n_rules; j++)
			offloading += rule_does(&c->rules[j], offloads, ARRAY_SIZE(offloads));
	}
	for (size_t i = 0; i < all->n_tables; i++)
		alike += !is_ours(&all->tables[i]) &&
			 strcmp(all->tables[i].name, FIREWALL_TABLE) == 0;
	finding_add(
		f, VERDICT_PASS,
		"%zu other chain%s at output, %zu accept what they do not know: accept "
		"elsewhere does not matter; %zu table%s of another family called " FIREWALL_TABLE
		", which are not ours; %zu rule%s that offload%s, which is "
		"for forwarded packets alone",
		chains, PLURAL(chains), accepting, alike, PLURAL(alike), offloading,
		PLURAL(offloading), offloading == 1 ? "s" : "");
}

static void look_others(const struct audit *a, struct finding *f)
{
	if (!is_read(a, f))
		return;
	count(&a->foreign, f);
	for (size_t i = 0; i < ARRAY_SIZE(legacy); i++)
		if (has_legacy(i, "filter"))
			finding_add(f, VERDICT_PASS,
				    "%s has a filter table: what it accepts does not matter either",
				    legacy[i].tool);
}

#define ALL "all tables of all families, by netlink"

const struct audit_check audit_foreign_checks[] = {
	{ "HG-FW-020", "No other table sends on what ours is about to drop",
	  ALL ": dup and queue in tables with a chain at output before ours",
	  "A copy has no owner any more: no rule of ours sees whose it is.",
	  "nft list the chain that is named; take the statement away or raise the chain's "
	  "priority above -10",
	  look_copies },
	{ "HG-FW-021", "No other table turns a destination into one that a profile allows",
	  ALL ": dnat, redirect, tproxy and what writes into headers, in tables with a chain at "
	      "output before ours, and the addresses that they make; /proc/net/ip_tables_names, "
	      "ip6_tables_names",
	  "The allow-list is compared with the destination as it is then: with a redirect to a "
	  "local proxy, the proxy's address is what counts.",
	  "Exempt the pool's uids from the rule (meta skuid), or allow no address that it "
	  "rewrites to",
	  look_rewrites },
	{ "HG-FW-022", "What other tables accept does not matter",
	  ALL "; /proc/net/ip_tables_names, ip6_tables_names",
	  "A packet leaves when all chains accept it: one that drops is enough. The drops of "
	  "others are not counted on either.",
	  "Nothing, unless it could not be read", look_others },
	{ 0 },
};
