/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/firewall_mode.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/guest/cgroup.h"
#include "nft/text_diff.h"

size_t firewall_cgroups(const struct daemon *d, struct text_cgroup *ret, size_t max)
{
	size_t n = 0;

	if (n < max)
		ret[n++] = (struct text_cgroup){ d->policy.slice_id,
						 d->slice_path + strlen(CGROUP_ROOT "/") };
	for (size_t i = 0; i < d->n_slices && n < max; i++)
		ret[n++] = (struct text_cgroup){ d->slices[i]->id,
						 d->slices[i]->path + strlen(CGROUP_ROOT "/") };
	return n;
}

/* ---- our table as text ---- */

/* To be freed; empty when there is no such table. NULL when out of memory. */
static char *table_text(const struct daemon *d, struct foreign *f, bool counted)
{
	struct text_cgroup cgroups[FIREWALL_CGROUPS_MAX];
	const struct text_names names = { cgroups,
					  firewall_cgroups(d, cgroups, FIREWALL_CGROUPS_MAX) };
	struct foreign_table *t = foreign_find_table(f, NFPROTO_INET, FIREWALL_TABLE);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (t)
		text_table(out, f, t, &names, counted);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int wanted_text(const struct daemon *d, char **ret, struct error *e)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	int r = foreign_put_wanted(&f, &d->policy, e);

	if (r < 0)
		return r;
	*ret = table_text(d, &f, false);
	return *ret ? 0 : error_errno(e, -ENOMEM, "cannot write the firewall down");
}

/* ---- show ---- */

/* The port is usually the pid of the socket's process. */
static void print_owner(uint32_t owner, bool persists)
{
	const char *then = persists ? "stays when that is closed" : "goes when that is closed";
	char path[64], comm[64], shown[256];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", owner);
	if (read_file_at(-1, path, comm, sizeof(comm)) < 0)
		printf("owner: netlink port %" PRIu32 "; the table %s\n", owner, then);
	else
		printf("owner: netlink port %" PRIu32 ", as process %" PRIu32
		       " (%s) has; the table %s\n",
		       owner, owner, text_escape(comm, shown, sizeof(shown)), then);
}

static void print_state(const struct foreign *f)
{
	const struct foreign_table *t = foreign_find_table(f, NFPROTO_INET, FIREWALL_TABLE);

	if (!t)
		puts("there is no table inet " FIREWALL_TABLE);
	else if (t->flags & NFT_TABLE_F_OWNER)
		print_owner(t->owner, t->flags & NFT_TABLE_F_PERSIST);
	else if (t->flags & NFT_TABLE_F_PERSIST)
		puts("owner: nobody any more, it died; any program of root's can change the table");
	else
		puts("owner: nobody; any program of root's can change the table");
}

static int show(struct daemon *d, struct error *e)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	_cleanup_free_ char *wanted = NULL, *live = NULL;
	bool same = false;
	int r = wanted_text(d, &wanted, e);

	if (r == 0)
		r = foreign_read(&f, e);
	if (r < 0)
		return r;
	live = table_text(d, &f, true);
	print_state(&f);
	if (!live || text_diff(wanted, live, stdout, &same) < 0)
		return error_errno(e, -ENOMEM, "cannot compare the firewall");
	puts(same ? "in force as wanted"
		  : "not as wanted: \"-\" is missing, \"+\" should not be there");
	return same ? FIREWALL_SAME : FIREWALL_OTHER;
}

/* ---- export, apply, remove ---- */

static int export(struct daemon *d, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	int r = wanted_text(d, &text, e);

	if (r < 0)
		return r;
	fputs("#!/usr/sbin/nft -f\n"
	      "# harpe-gov's firewall, for a host without its daemon. The cgroups must be there "
	      "when\n"
	      "# it is loaded, because nft asks for their numbers then: load it again when a "
	      "slice\n"
	      "# was made anew.\n"
	      "table inet " FIREWALL_TABLE "\n"
	      "delete table inet " FIREWALL_TABLE "\n"
	      "\n",
	      stdout);
	fputs(text, stdout);
	return 0;
}

static int apply(struct daemon *d, struct error *e)
{
	int r = firewall_open(&d->firewall, e);

	return r < 0 ? r : firewall_load(d->firewall, &d->policy, false, e);
}

static int remove_table(struct daemon *d, struct error *e)
{
	int r = firewall_open(&d->firewall, e);

	return r < 0 ? r : firewall_remove(d->firewall, e);
}

/* ---- all of them ---- */

static const struct mode {
	const char *word;
	bool needs_policy;
	int (*run)(struct daemon *d, struct error *e);
} modes[] = {
	{ "show", true, show },
	{ "export", true, export },
	{ "apply", true, apply },
	{ "remove", false, remove_table },
};

static int make_policy(struct daemon *d, struct error *e)
{
	int r = daemon_read_config(&d->config, e);

	return r < 0 ? r : daemon_make_policy(d, e);
}

static int run_mode(struct daemon *d, char **words, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (strcmp(words[0], modes[i].word) == 0 && !words[1]) {
			int r = modes[i].needs_policy ? make_policy(d, e) : 0;

			return r < 0 ? r : modes[i].run(d, e);
		}
	return error_set(e, -EINVAL, "--firewall: this is for harpe-gov firewall to call");
}

/* explain PROFILE UID text|json ENTRY; "" for what was not asked. */
static int run_explain(struct daemon *d, char **words, struct error *e)
{
	struct firewall_question q = { 0 };
	int r;

	for (int i = 1; i <= 4; i++)
		if (!words[i])
			return error_set(e, -EINVAL, "--firewall explain: four words are needed");
	q.profile = words[1][0] ? words[1] : NULL;
	q.uid = words[2][0] ? words[2] : NULL;
	q.json = strcmp(words[3], "json") == 0;
	q.entry = words[4];
	r = make_policy(d, e);
	return r < 0 ? r : firewall_explain(d, &q, e);
}

int firewall_mode(char **words)
{
	static struct daemon d;
	struct error e = ERROR_NULL;
	char shown[4 * ERROR_TEXT_MAX];
	int r = strcmp(words[0], "explain") == 0 ? run_explain(&d, words, &e)
						 : run_mode(&d, words, &e);

	firewall_free(d.firewall);
	daemon_free_policy(&d);
	daemon_free_config(&d.config);
	if (r >= 0 && !file_written(stdout))
		r = error_set(&e, -EIO, "cannot write to standard output");
	if (r >= 0)
		return r;
	fprintf(stderr, "harpe-gov: %s\n", text_escape(e.text, shown, sizeof(shown)));
	return FIREWALL_STOPPED;
}
