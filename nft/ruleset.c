/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/ruleset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_set(struct ruleset_set *s)
{
	if (s->set)
		nftnl_set_free(s->set);
	free(s->elements.data);
}

static void free_chain(struct ruleset_chain *c)
{
	if (c->chain)
		nftnl_chain_free(c->chain);
	for (size_t i = 0; i < RULESET_RULES_MAX; i++)
		if (c->rules[i])
			nftnl_rule_free(c->rules[i]);
}

void ruleset_free(struct ruleset *rs)
{
	if (rs->table)
		nftnl_table_free(rs->table);
	for (size_t i = 0; i < rs->n_sets; i++)
		free_set(&rs->sets[i]);
	for (size_t i = 0; i < rs->n_chains; i++)
		free_chain(&rs->chains[i]);
	free(rs->sets);
	free(rs->chains);
	*rs = RULESET_NULL;
}

struct ruleset_set *ruleset_add_set(struct ruleset *rs, const char *name)
{
	struct ruleset_set *s = reallocarray(rs->sets, rs->n_sets + 1, sizeof(*s));

	if (!s)
		return NULL;
	rs->sets = s;
	s += rs->n_sets++;
	*s = (struct ruleset_set){ .elements.kind = element_kind_of(name) };
	snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

struct ruleset_chain *ruleset_add_chain(struct ruleset *rs, const char *name)
{
	struct ruleset_chain *c = reallocarray(rs->chains, rs->n_chains + 1, sizeof(*c));

	if (!c)
		return NULL;
	rs->chains = c;
	c += rs->n_chains++;
	*c = (struct ruleset_chain){ .n_rules = 0 };
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

struct ruleset_set *ruleset_find_set(const struct ruleset *rs, const char *name)
{
	for (size_t i = 0; i < rs->n_sets; i++)
		if (strcmp(rs->sets[i].name, name) == 0)
			return &rs->sets[i];
	return NULL;
}

struct ruleset_chain *ruleset_find_chain(const struct ruleset *rs, const char *name)
{
	for (size_t i = 0; i < rs->n_chains; i++)
		if (strcmp(rs->chains[i].name, name) == 0)
			return &rs->chains[i];
	return NULL;
}
