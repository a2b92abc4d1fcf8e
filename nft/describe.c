/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libnftnl can print its objects, but leaves out what matters here (the level of a cgroup match,
 * the size of a set). So: a table of attributes per object. What is unset prints as 0 or nothing,
 * since the kernel answers with its defaults what was not asked.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libnftnl/expr.h>

#include "common/fd.h"
#include "nft/compare.h"

enum form { FORM_NONE, FORM_NUMBER, FORM_SIGNED, FORM_HEX, FORM_TEXT, FORM_BYTES };

struct field {
	uint16_t attr;
	enum form form;
	const char *name;
};

static const struct field table_fields[] = {
	{ NFTNL_TABLE_NAME, FORM_TEXT, "table inet" },
	{ NFTNL_TABLE_FLAGS, FORM_HEX, "flags" },
	{ NFTNL_TABLE_OWNER, FORM_NUMBER, "owner" },
	{ NFTNL_TABLE_USE, FORM_NUMBER, "objects" },
	{ 0, FORM_NONE, NULL },
};

static const struct field set_fields[] = {
	{ NFTNL_SET_NAME, FORM_TEXT, "set" },
	{ NFTNL_SET_FLAGS, FORM_HEX, "flags" },
	{ NFTNL_SET_KEY_TYPE, FORM_NUMBER, "type" },
	{ NFTNL_SET_KEY_LEN, FORM_NUMBER, "length" },
	{ NFTNL_SET_DATA_TYPE, FORM_HEX, "data" },
	{ NFTNL_SET_OBJ_TYPE, FORM_NUMBER, "object" },
	{ NFTNL_SET_DESC_SIZE, FORM_NUMBER, "size" },
	{ NFTNL_SET_DESC_CONCAT, FORM_BYTES, "parts" },
	{ NFTNL_SET_TIMEOUT, FORM_NUMBER, "timeout" },
	{ 0, FORM_NONE, NULL },
};

static const struct field chain_fields[] = {
	{ NFTNL_CHAIN_NAME, FORM_TEXT, "chain" },
	{ NFTNL_CHAIN_TYPE, FORM_TEXT, "type" },
	{ NFTNL_CHAIN_HOOKNUM, FORM_NUMBER, "hook" },
	{ NFTNL_CHAIN_PRIO, FORM_SIGNED, "priority" },
	{ NFTNL_CHAIN_POLICY, FORM_NUMBER, "policy" },
	{ NFTNL_CHAIN_FLAGS, FORM_HEX, "flags" },
	{ 0, FORM_NONE, NULL },
};

/* The expressions that we use; the name alone tells any other. Sets are told by name: their ids
 * only exist within a transaction. */
#define EXPR_FIELDS_MAX 8
static const struct {
	const char *name;
	struct field fields[EXPR_FIELDS_MAX];
} expressions[] = {
	{ "meta",
	  { { NFTNL_EXPR_META_KEY, FORM_NUMBER, "key" },
	    { NFTNL_EXPR_META_SREG, FORM_NUMBER, "from" },
	    { NFTNL_EXPR_META_DREG, FORM_NUMBER, "to" } } },
	{ "lookup",
	  { { NFTNL_EXPR_LOOKUP_SREG, FORM_NUMBER, "from" },
	    { NFTNL_EXPR_LOOKUP_DREG, FORM_NUMBER, "to" },
	    { NFTNL_EXPR_LOOKUP_SET, FORM_TEXT, "set" },
	    { NFTNL_EXPR_LOOKUP_FLAGS, FORM_HEX, "flags" } } },
	{ "socket",
	  { { NFTNL_EXPR_SOCKET_KEY, FORM_NUMBER, "key" },
	    { NFTNL_EXPR_SOCKET_LEVEL, FORM_NUMBER, "level" },
	    { NFTNL_EXPR_SOCKET_DREG, FORM_NUMBER, "to" } } },
	{ "cmp",
	  { { NFTNL_EXPR_CMP_SREG, FORM_NUMBER, "from" },
	    { NFTNL_EXPR_CMP_OP, FORM_NUMBER, "op" },
	    { NFTNL_EXPR_CMP_DATA, FORM_BYTES, "data" } } },
	{ "dynset",
	  { { NFTNL_EXPR_DYNSET_SREG_KEY, FORM_NUMBER, "key from" },
	    { NFTNL_EXPR_DYNSET_SREG_DATA, FORM_NUMBER, "data from" },
	    { NFTNL_EXPR_DYNSET_OP, FORM_NUMBER, "op" },
	    { NFTNL_EXPR_DYNSET_SET_NAME, FORM_TEXT, "set" },
	    { NFTNL_EXPR_DYNSET_TIMEOUT, FORM_NUMBER, "timeout" },
	    { NFTNL_EXPR_DYNSET_FLAGS, FORM_HEX, "flags" } } },
	{ "immediate",
	  { { NFTNL_EXPR_IMM_DREG, FORM_NUMBER, "to" },
	    { NFTNL_EXPR_IMM_DATA, FORM_BYTES, "data" },
	    { NFTNL_EXPR_IMM_VERDICT, FORM_SIGNED, "verdict" },
	    { NFTNL_EXPR_IMM_CHAIN, FORM_TEXT, "chain" } } },
	{ "payload",
	  { { NFTNL_EXPR_PAYLOAD_BASE, FORM_NUMBER, "base" },
	    { NFTNL_EXPR_PAYLOAD_OFFSET, FORM_NUMBER, "offset" },
	    { NFTNL_EXPR_PAYLOAD_LEN, FORM_NUMBER, "length" },
	    { NFTNL_EXPR_PAYLOAD_SREG, FORM_NUMBER, "from" },
	    { NFTNL_EXPR_PAYLOAD_DREG, FORM_NUMBER, "to" } } },
	{ "bitwise",
	  { { NFTNL_EXPR_BITWISE_SREG, FORM_NUMBER, "from" },
	    { NFTNL_EXPR_BITWISE_DREG, FORM_NUMBER, "to" },
	    { NFTNL_EXPR_BITWISE_OP, FORM_NUMBER, "op" },
	    { NFTNL_EXPR_BITWISE_LEN, FORM_NUMBER, "length" },
	    { NFTNL_EXPR_BITWISE_MASK, FORM_BYTES, "and" },
	    { NFTNL_EXPR_BITWISE_XOR, FORM_BYTES, "xor" } } },
	{ "limit",
	  { { NFTNL_EXPR_LIMIT_RATE, FORM_NUMBER, "rate" },
	    { NFTNL_EXPR_LIMIT_UNIT, FORM_NUMBER, "per" },
	    { NFTNL_EXPR_LIMIT_BURST, FORM_NUMBER, "burst" },
	    { NFTNL_EXPR_LIMIT_TYPE, FORM_NUMBER, "type" },
	    { NFTNL_EXPR_LIMIT_FLAGS, FORM_HEX, "flags" } } },
	{ "log",
	  { { NFTNL_EXPR_LOG_PREFIX, FORM_TEXT, "prefix" },
	    { NFTNL_EXPR_LOG_GROUP, FORM_NUMBER, "group" },
	    { NFTNL_EXPR_LOG_SNAPLEN, FORM_NUMBER, "snaplen" },
	    { NFTNL_EXPR_LOG_QTHRESHOLD, FORM_NUMBER, "threshold" },
	    { NFTNL_EXPR_LOG_LEVEL, FORM_NUMBER, "level" },
	    { NFTNL_EXPR_LOG_FLAGS, FORM_HEX, "flags" } } },
	{ "reject",
	  { { NFTNL_EXPR_REJECT_TYPE, FORM_NUMBER, "type" },
	    { NFTNL_EXPR_REJECT_CODE, FORM_NUMBER, "code" } } },
	{ "counter", { { 0, FORM_NONE, NULL } } },
};

/* One way to ask all kinds of objects; NULL when the attribute is not set. */
typedef const void *(*getter)(const void *object, uint16_t attr, uint32_t *ret_len);

static const void *get_table(const void *o, uint16_t attr, uint32_t *len)
{
	return nftnl_table_is_set(o, attr) ? nftnl_table_get_data(o, attr, len) : NULL;
}

static const void *get_set(const void *o, uint16_t attr, uint32_t *len)
{
	return nftnl_set_is_set(o, attr) ? nftnl_set_get_data(o, attr, len) : NULL;
}

static const void *get_chain(const void *o, uint16_t attr, uint32_t *len)
{
	return nftnl_chain_is_set(o, attr) ? nftnl_chain_get_data(o, attr, len) : NULL;
}

static const void *get_expr(const void *o, uint16_t attr, uint32_t *len)
{
	return nftnl_expr_is_set(o, attr) ? nftnl_expr_get(o, attr, len) : NULL;
}

static uint64_t number(const void *data, uint32_t len)
{
	uint16_t half;
	uint32_t narrow;
	uint64_t wide;

	switch (data ? len : 0) {
	case sizeof(uint8_t):
		return *(const uint8_t *)data;
	case sizeof(half):
		memcpy(&half, data, sizeof(half));
		return half;
	case sizeof(narrow):
		memcpy(&narrow, data, sizeof(narrow));
		return narrow;
	case sizeof(wide):
		memcpy(&wide, data, sizeof(wide));
		return wide;
	default:
		return 0;
	}
}

/* Names come from whoever made the object. */
static void print_text(FILE *f, const char *text)
{
	if (!text || !*text)
		fputc('-', f);
	for (; text && *text; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
}

static void print_field(FILE *f, const struct field *field, const uint8_t *data, uint32_t len)
{
	switch (field->form) {
	case FORM_NUMBER:
		fprintf(f, "%" PRIu64, number(data, len));
		break;
	case FORM_SIGNED:
		fprintf(f, "%" PRId32, (int32_t)number(data, len));
		break;
	case FORM_HEX:
		fprintf(f, "%#" PRIx64, number(data, len));
		break;
	case FORM_TEXT:
		print_text(f, (const char *)data);
		break;
	case FORM_BYTES:
		if (!data)
			fputc('-', f);
		for (uint32_t i = 0; data && i < len; i++)
			fprintf(f, "%02x", data[i]);
		break;
	case FORM_NONE:
		break;
	}
}

static void print_fields(FILE *f, const struct field *fields, getter get, const void *object,
			 const char *separator)
{
	for (; fields->form != FORM_NONE; fields++) {
		uint32_t len = 0;
		const void *data = get(object, fields->attr, &len);

		fprintf(f, "%s%s ", separator, fields->name);
		print_field(f, fields, data, len);
		separator = ", ";
	}
}

static void print_expr_fields(FILE *f, struct nftnl_expr *x)
{
	const char *name = nftnl_expr_get_str(x, NFTNL_EXPR_NAME);

	fputs(name, f);
	for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
		if (strcmp(name, expressions[i].name) == 0)
			print_fields(f, expressions[i].fields, get_expr, x, " ");
}

static int print_inner(struct nftnl_expr *x, void *data)
{
	fputc(' ', data);
	print_expr_fields(data, x);
	return 0;
}

/* Whose expressions are printed: the start of their lines. */
struct place {
	FILE *f;
	char text[2 * OBJECT_NAME_MAX];
};

static int print_expr(struct nftnl_expr *x, void *data)
{
	const struct place *place = data;

	fprintf(place->f, "%s: ", place->text);
	print_expr_fields(place->f, x);
	if (strcmp(nftnl_expr_get_str(x, NFTNL_EXPR_NAME), "dynset") == 0) {
		fputs(", with", place->f); /* what a new element gets */
		nftnl_expr_expr_foreach(x, print_inner, place->f);
	}
	fputc('\n', place->f);
	return 0;
}

static void print_object(FILE *f, const struct field *fields, getter get, const void *object,
			 const char *kind, const char *name)
{
	if (object)
		print_fields(f, fields, get, object, "");
	else
		fprintf(f, "no %s %s", kind, name);
	fputc('\n', f);
}

static void print_set(FILE *f, const struct ruleset_set *s)
{
	struct place place = { .f = f };

	print_object(f, set_fields, get_set, s->set, "set", s->name);
	if (!s->set)
		return;
	snprintf(place.text, sizeof(place.text), "set %s", s->name);
	nftnl_set_expr_foreach(s->set, print_expr, &place);
}

static void print_rule(FILE *f, const struct ruleset_chain *c, size_t index)
{
	struct nftnl_rule *rule = c->rules[index];
	struct place place = { .f = f };

	fprintf(f, "rule %zu in chain ", index + 1);
	if (!rule) {
		fprintf(f, "%s, unreadable\n", c->name);
		return;
	}
	print_text(f, nftnl_rule_get_str(rule, NFTNL_RULE_CHAIN));
	fputc('\n', f);
	snprintf(place.text, sizeof(place.text), "rule %zu in chain %s", index + 1, c->name);
	nftnl_expr_foreach(rule, print_expr, &place);
}

static void print_chain(FILE *f, const struct ruleset_chain *c)
{
	print_object(f, chain_fields, get_chain, c->chain, "chain", c->name);
	for (size_t i = 0; i < c->n_rules && i < RULESET_RULES_MAX; i++)
		print_rule(f, c, i);
	fprintf(f, "%zu rules in chain %s\n", c->n_rules, c->name);
}

static void print_ruleset(FILE *f, const struct ruleset *rs)
{
	print_object(f, table_fields, get_table, rs->table, "table inet", FIREWALL_TABLE);
	if (!rs->table)
		return;
	for (size_t i = 0; i < rs->n_sets; i++)
		print_set(f, &rs->sets[i]);
	for (size_t i = 0; i < rs->n_chains; i++)
		print_chain(f, &rs->chains[i]);
}

char *ruleset_describe(const struct ruleset *rs)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print_ruleset(f, rs);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
