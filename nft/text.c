/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/text.h"

#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "common/fd.h"
#include "nft/build.h"

#define WORD	4
#define KEY_MAX 64

/* ---- elements ---- */

/* Numbers of an interval are in network byte order. */
static uint32_t part_type(const struct foreign_set *s, uint32_t type)
{
	bool host = type == NFT_TYPE_UID || type == NFT_TYPE_UID + 1 || type == VALUE_MARK;

	return s->flags & NFT_SET_INTERVAL && host ? VALUE_INTEGER : type;
}

static void print_parts(FILE *f, const struct foreign_set *s, struct nest first, struct nest last,
			const struct text_names *names)
{
	struct nest lengths = nest_get(nest_get(s->raw, NFTA_SET_DESC), NFTA_SET_DESC_CONCAT);
	const struct nlattr *attr;
	unsigned int shift = 0;
	size_t at = 0;

	while (s->key_type >> shift >> VALUE_TYPE_BITS && shift < 32 - VALUE_TYPE_BITS)
		shift += VALUE_TYPE_BITS;
	if (last.len != first.len)
		last = first;
	while ((attr = nest_next(&lengths)) && at < first.len) {
		size_t len = nest_u32(nest_of(attr), NFTA_SET_FIELD_LEN, 0);

		if (len > first.len - at)
			len = first.len - at;
		fputs(at ? " . " : "", f);
		print_range(f, names, part_type(s, s->key_type >> shift & VALUE_TYPE_MASK),
			    (struct nest){ (const char *)first.data + at, len },
			    (struct nest){ (const char *)last.data + at, len });
		at += len ? (len + WORD - 1) / WORD * WORD : WORD;
		shift -= shift ? VALUE_TYPE_BITS : 0;
	}
	if (at == 0)
		print_range(f, names, part_type(s, s->key_type), first, last);
}

/* The last value before @end, in @buf; empty when that cannot be. */
static struct nest before(struct nest end, uint8_t buf[KEY_MAX])
{
	size_t i = end.len;

	if (end.len == 0 || end.len > KEY_MAX)
		return NEST_NULL;
	memcpy(buf, end.data, end.len);
	while (i-- > 0)
		if (buf[i]-- != 0)
			break;
	return (struct nest){ buf, end.len };
}

/* The end of a plain interval is the next element; without one it goes to the last value. */
static struct nest interval_end(const struct foreign_set *s, size_t index, uint8_t buf[KEY_MAX])
{
	const struct foreign_element *next =
		index + 1 < s->n_elements ? &s->elements[index + 1] : NULL;
	size_t len = s->elements[index].key.len;

	if (next)
		return before(next->key, buf);
	if (len > KEY_MAX)
		return NEST_NULL;
	memset(buf, 0xff, len);
	return (struct nest){ buf, len };
}

static void print_data(FILE *f, const struct foreign_set *s, const struct foreign_element *element,
		       const struct text_names *names)
{
	struct nest data = nest_get(element->raw, NFTA_SET_ELEM_DATA);
	const char *chain = NULL;
	int code;

	if (!(s->flags & NFT_SET_MAP))
		return;
	fputs(" : ", f);
	if (!foreign_verdict(data, &code, &chain)) {
		print_value(f, names, s->data_type, nest_get(data, NFTA_DATA_VALUE));
		return;
	}
	fputs(code == NFT_JUMP	   ? "jump "
	      : code == NFT_GOTO   ? "goto "
	      : code == NF_ACCEPT  ? "accept"
	      : code == NF_DROP	   ? "drop"
	      : code == NFT_RETURN ? "return"
				   : "continue",
	      f);
	if (chain)
		print_name(f, chain);
}

bool text_element(FILE *f, const struct foreign_set *s, size_t index,
		  const struct text_names *names)
{
	const struct foreign_element *element = &s->elements[index];
	bool boxes = nest_has(nest_get(s->raw, NFTA_SET_DESC), NFTA_SET_DESC_CONCAT);
	struct nest end = element->key_end;
	uint8_t buf[KEY_MAX];

	if (element->flags & NFT_SET_ELEM_INTERVAL_END)
		return false;
	if (s->flags & NFT_SET_INTERVAL && !boxes && element->key.len)
		end = interval_end(s, index, buf);
	if (element->flags & NFT_SET_ELEM_CATCHALL)
		fputc('*', f);
	else
		print_parts(f, s, element->key, end, names);
	print_data(f, s, element, names);
	return true;
}

/* ---- objects ---- */

static void print_count(FILE *f, uint64_t packets, bool counted)
{
	if (counted && packets != FIREWALL_UNKNOWN)
		fprintf(f, "\t%" PRIu64 " packets", packets);
	fputc('\n', f);
}

static void print_elements(FILE *f, const struct foreign_set *s, const struct text_names *names,
			   bool counted)
{
	const char *open = "\t\telements = {\n";

	if (s->flags & NFT_SET_EVAL) /* the kernel fills it */
		return;
	for (size_t i = 0; i < s->n_elements; i++) {
		if (s->elements[i].flags & NFT_SET_ELEM_INTERVAL_END)
			continue;
		fprintf(f, "%s\t\t\t", open);
		text_element(f, s, i, names);
		fputc(',', f);
		print_count(f, foreign_element_packets(&s->elements[i]), counted);
		open = "";
	}
	if (!*open)
		fputs("\t\t}\n", f);
}

static void print_set_flags(FILE *f, const struct foreign_set *s)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} flags[] = {
		{ NFT_SET_CONSTANT, "constant" },
		{ NFT_SET_INTERVAL, "interval" },
		{ NFT_SET_EVAL, "dynamic" },
		{ NFT_SET_TIMEOUT, "timeout" },
	};
	const char *separator = "\t\tflags ";

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (s->flags & flags[i].bit) {
			fprintf(f, "%s%s", separator, flags[i].name);
			separator = ",";
		}
	if (*separator == ',')
		fputc('\n', f);
}

static bool counts(const struct foreign_set *s)
{
	struct nest one = nest_get(s->raw, NFTA_SET_EXPR);
	const char *name = nest_string(one, NFTA_EXPR_NAME);

	return (name && strcmp(name, "counter") == 0) ||
	       foreign_packets(nest_get(s->raw, NFTA_SET_EXPRESSIONS)) != FIREWALL_UNKNOWN;
}

static void print_set(FILE *f, const struct foreign_set *s, const struct text_names *names,
		      bool counted)
{
	uint32_t size = nest_u32(nest_get(s->raw, NFTA_SET_DESC), NFTA_SET_DESC_SIZE, 0);
	uint64_t timeout = nest_u64(s->raw, NFTA_SET_TIMEOUT, 0);

	fputs(s->flags & NFT_SET_MAP ? "\tmap " : "\tset ", f);
	print_name(f, s->name);
	fputs(" {\n\t\ttype ", f);
	print_type(f, s->key_type);
	if (s->flags & NFT_SET_MAP) {
		fputs(" : ", f);
		if (s->data_type == NFT_DATA_VERDICT)
			fputs("verdict", f);
		else
			print_type(f, s->data_type);
	}
	fputc('\n', f);
	if (size)
		fprintf(f, "\t\tsize %" PRIu32 "\n", size);
	print_set_flags(f, s);
	if (timeout)
		fprintf(f, "\t\ttimeout %" PRIu64 "s\n", timeout / 1000);
	if (counts(s))
		fputs("\t\tcounter\n", f);
	print_elements(f, s, names, counted);
	fputs("\t}\n", f);
}

void text_table_name(FILE *f, const struct foreign_table *t)
{
	char family[16];

	fprintf(f, "table %s ", foreign_family(t->family, family));
	print_name(f, t->name);
}

static const char *hook_name(uint8_t family, uint32_t hook)
{
	static const char *const names[] = { "prerouting", "input",	  "forward",
					     "output",	   "postrouting", "ingress" };
	static const char *const device[] = { "ingress", "egress" };

	if (family == NFPROTO_NETDEV)
		return hook < ARRAY_SIZE(device) ? device[hook] : "?";
	return hook < ARRAY_SIZE(names) ? names[hook] : "?";
}

static void print_device(FILE *f, const char *name)
{
	if (!name)
		return;
	fputs(" device ", f);
	print_quoted(f, name);
}

void text_hook(FILE *f, const struct foreign *ruleset, const struct foreign_chain *c)
{
	struct nest devices = nest_get(c->hook_raw, NFTA_HOOK_DEVS);
	const struct nlattr *attr = nest_next(&devices);
	struct nest first = nest_of(attr);

	fputs("type ", f);
	print_name(f, c->type ?: "?");
	fprintf(f, " hook %s", hook_name(ruleset->tables[c->table].family, c->hook));
	if (first.len > 0 && ((const char *)first.data)[first.len - 1] == '\0')
		print_device(f, first.data);
	else
		print_device(f, nest_string(c->hook_raw, NFTA_HOOK_DEV));
	fprintf(f, " priority %" PRId32, c->priority);
}

static void print_chain(FILE *f, struct foreign *ruleset, const struct foreign_chain *c,
			const struct text_names *names, bool counted)
{
	fputs("\tchain ", f);
	print_name(f, c->name);
	fputs(" {\n", f);
	if (c->base) {
		fputs("\t\t", f);
		text_hook(f, ruleset, c);
		fprintf(f, "; policy %s;\n", c->policy == NF_DROP ? "drop" : "accept");
	}
	for (size_t i = 0; i < c->n_rules; i++) {
		fputs("\t\t", f);
		text_rule(f, ruleset, c, &c->rules[i], names, false);
		print_count(f, foreign_packets(c->rules[i].exprs), counted);
	}
	fputs("\t}\n", f);
}

void text_table(FILE *f, struct foreign *ruleset, const struct foreign_table *t,
		const struct text_names *names, bool counted)
{
	size_t index = (size_t)(t - ruleset->tables);

	text_table_name(f, t);
	fputs(" {\n", f);
	if (t->flags & NFT_TABLE_F_DORMANT)
		fputs("\tflags dormant\n", f);
	for (size_t i = 0; i < ruleset->n_sets; i++)
		if (ruleset->sets[i].table == index)
			print_set(f, &ruleset->sets[i], names, counted);
	for (size_t i = 0; i < ruleset->n_chains; i++)
		if (ruleset->chains[i].table == index)
			print_chain(f, ruleset, &ruleset->chains[i], names, counted);
	fputs("}\n", f);
}
