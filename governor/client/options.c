/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/client/options.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"

static const char *const unit_values[] = {
	[UNIT_COUNT] = "NUMBER", [UNIT_SIZE] = "SIZE", [UNIT_DURATION] = "DURATION",
	[UNIT_CPU] = "PERCENT",	 [UNIT_RATE] = "SIZE",
};

const char *option_name(const struct option *o)
{
	return o->limit ? o->limit->name : o->name;
}

static const char *option_value(const struct option *o)
{
	return o->limit ? unit_values[o->limit->unit] : o->value;
}

/* The index of the option whose name is the first @len bytes of @name; -1 when there is none. */
static int find_option(const struct option_set *set, const char *name, size_t len)
{
	for (size_t i = 0; i < set->n_options; i++) {
		const char *known = option_name(&set->options[i]);

		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return (int)i;
	}
	return -1;
}

static int unknown_option(const char *arg, struct error *e)
{
	char shown[72];

	return error_set(e, -EINVAL, "there is no option \"%s\": see --help",
			 text_escape(arg, shown, sizeof(shown)));
}

/* Names all that share @list, of which there are several. */
static int full_list(const struct option_set *set, const struct option *o, struct error *e)
{
	char names[160] = "";
	size_t left = 0;

	for (size_t i = 0; i < set->n_options; i++)
		left += set->options[i].list == o->list;
	for (size_t i = 0; i < set->n_options; i++) {
		size_t used = strlen(names);

		if (set->options[i].list != o->list)
			continue;
		left--;
		snprintf(names + used, sizeof(names) - used, "--%s%s", set->options[i].name,
			 left > 1 ? ", "
			 : left	  ? " and "
				  : "");
	}
	return error_set(e, -E2BIG, "--%s: more than %d of %s together", o->name, OPTION_LIST_MAX,
			 names);
}

static int add_to_list(const struct option_set *set, const struct option *o, const char *text,
		       struct error *e)
{
	struct option_list *list = o->list;

	if (!list)
		return 0;
	if (list->n == OPTION_LIST_MAX)
		return full_list(set, o, e);
	list->item[list->n].option = o;
	list->item[list->n++].text = text;
	return 0;
}

/* Takes the option at *arg; its value may be the next argument, then *arg is moved to it. */
static int take_option(const struct option_set *set, char ***arg, const char *values[OPTIONS_MAX],
		       struct error *e)
{
	const char *name = **arg + 2, *name_end = strchrnul(name, '=');
	int i = strncmp(**arg, "--", 2) == 0 ? find_option(set, name, (size_t)(name_end - name))
					     : -1;
	const char *text = *name_end ? name_end + 1 : NULL, *value;

	if (i < 0)
		return unknown_option(**arg, e);
	name = option_name(&set->options[i]);
	value = option_value(&set->options[i]);
	if (values[i] && !set->options[i].list)
		return error_set(e, -EINVAL, "--%s is given twice: keep one", name);
	if (!value && text)
		return error_set(e, -EINVAL, "--%s takes no value: write --%s alone", name, name);
	if (value && !text && (*arg)[1] && strcmp((*arg)[1], "--") != 0)
		text = *++*arg;
	if (value && !text)
		return error_set(e, -EINVAL, "--%s needs a value: write --%s=%s", name, name,
				 value);
	values[i] = value ? text : "";
	return add_to_list(set, &set->options[i], text, e);
}

static int is_operand(const char *arg)
{
	return arg[0] != '-' || arg[1] == '\0';
}

int options_parse(const struct option_set *set, char **argv, const char *values[OPTIONS_MAX],
		  struct error *e)
{
	char **operand = argv, **arg = argv;
	int r;

	memset(values, 0, OPTIONS_MAX * sizeof(*values));
	for (; *arg && strcmp(*arg, "--") != 0; arg++) {
		if (is_operand(*arg)) {
			if (set->operand_ends)
				break;
			*operand++ = *arg;
			continue;
		}
		if (strcmp(*arg, "-h") == 0 || strcmp(*arg, "--help") == 0)
			return 1;
		r = take_option(set, &arg, values, e);
		if (r < 0)
			return r;
	}
	if (*arg && strcmp(*arg, "--") == 0)
		arg++;
	while (*arg)
		*operand++ = *arg++;
	*operand = NULL;
	return 0;
}

static void help_line(const struct option *o, FILE *out)
{
	const char *value = option_value(o);
	char left[40], standard[32];

	snprintf(left, sizeof(left), "--%s%s%s", option_name(o), value ? "=" : "",
		 value ? value : "");
	fprintf(out, "  %-21s %s", left, o->limit ? o->limit->help : o->help);
	if (o->limit)
		fprintf(out, " (default %s)",
			unit_format(o->limit->unit, o->limit->standard, standard,
				    sizeof(standard)));
	fputc('\n', out);
}

void options_help(const struct option_set *set, FILE *out)
{
	for (size_t i = 0; i < set->n_options; i++)
		help_line(&set->options[i], out);
	fprintf(out, "  %-21s %s\n", "-h, --help", "show this help");
}
