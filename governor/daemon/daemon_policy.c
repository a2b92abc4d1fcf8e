/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's policy for the network: the configuration, the slices of its profiles, and the
 * firewall that is made of both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/state.h"
#include "governor/daemon/daemon.h"
#include "governor/daemon/drops.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/runs.h"
#include "governor/guest/cgroup.h"

/* Depths in the hierarchy: /harpe.slice/harpe-PROFILE.slice/harpe-ID.scope; there may be a child
 * slice in between (part.h). */
enum { SLICE_LEVEL = 1, PROFILE_LEVEL, SCOPE_LEVEL };

/* ---- the configuration ---- */

int daemon_read_config(struct config **ret, struct error *e)
{
	struct config *c = malloc(sizeof(*c));
	int r = c ? config_load(CONFIG_PATH, c, e) : error_errno(e, -ENOMEM, CONFIG_PATH);

	if (r < 0)
		free(c);
	else
		*ret = c;
	return r;
}

void daemon_free_config(struct config **config)
{
	if (*config)
		config_free(*config);
	free(*config);
	*config = NULL;
}

/* ---- slices ---- */

static int cgroup_id(const char *path, const char *remedy, uint64_t *ret, struct error *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return error_set(e, -ESTALE, "%s: systemd has not made this slice: %s", path,
				 remedy);
	*ret = st.st_ino;
	return 0;
}

struct profile_slice *daemon_slice(const struct daemon *d, const char *profile)
{
	for (size_t i = 0; i < d->n_slices; i++)
		if (strcmp(d->slices[i]->profile, profile) == 0)
			return d->slices[i];
	return NULL;
}

/* NULL with a sentence. */
static struct profile_slice *add_slice(struct daemon *d, const struct profile *p, struct error *e)
{
	struct profile_slice *s = d->n_slices < SLICES_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		error_set(e, -E2BIG,
			  "%s: too many profiles have come and gone: \"systemctl restart "
			  "harpe-gov\"",
			  p->name);
		return NULL;
	}
	snprintf(s->profile, sizeof(s->profile), "%s", p->name);
	snprintf(s->unit, sizeof(s->unit), "%s", p->slice);
	snprintf(s->path, sizeof(s->path), CGROUP_ROOT "/" SLICE "/%s", p->slice);
	s->own_network = p->own_network;
	return d->slices[d->n_slices++] = s;
}

/* ---- the policy ---- */

static bool is_for_firewall(const struct profile *p)
{
	return p->on_deny != FIREWALL_DROP || p->log || p->n_entries > 0;
}

static int find_profile(struct daemon *d, const struct profile *p, struct error *e)
{
	struct profile_slice *s = daemon_slice(d, p->name) ?: add_slice(d, p, e);
	int r;

	if (!s)
		return -E2BIG;
	s->filter = profile_filter(p);
	s->resolver = profile_has_resolver(p);
	r = cgroup_id(s->path, "systemctl reload-or-restart harpe-gov", &s->id, e);
	if (r == 0 && is_for_firewall(p))
		d->profiles[d->policy.n_profiles++] = profile_for_firewall(p, s->id);
	return r;
}

static int make_base(struct daemon *d, struct error *e)
{
	snprintf(d->slice_path, sizeof(d->slice_path), CGROUP_ROOT "/" SLICE);
	d->policy = (struct firewall_policy){
		.first_uid = d->config->first_uid,
		.uid_count = d->config->uid_count,
		.slice_level = SLICE_LEVEL,
		.profile_level = PROFILE_LEVEL,
		.scope_level = SCOPE_LEVEL,
		.profiles = d->profiles,
	};
	return cgroup_id(d->slice_path, "systemctl start " SLICE, &d->policy.slice_id, e);
}

int daemon_make_policy(struct daemon *d, struct error *e)
{
	int r = make_base(d, e);

	for (uint32_t i = 0; i < d->config->n_profiles && r == 0; i++)
		r = find_profile(d, &d->config->profiles[i], e);
	return r == 0 ? firewall_policy_check(&d->policy, e) : r;
}

/* What a load changes, so that one that fails leaves nothing behind. */
struct kept {
	struct firewall_policy policy;
	struct firewall_profile profiles[CONFIG_PROFILES_MAX];
	uint64_t id[SLICES_MAX];
	unsigned int filter[SLICES_MAX];
	bool resolver[SLICES_MAX];
	size_t n_slices;
};

static void keep(const struct daemon *d, struct kept *k)
{
	k->policy = d->policy;
	memcpy(k->profiles, d->profiles, sizeof(k->profiles));
	k->n_slices = d->n_slices;
	for (size_t i = 0; i < d->n_slices; i++) {
		k->id[i] = d->slices[i]->id;
		k->filter[i] = d->slices[i]->filter;
		k->resolver[i] = d->slices[i]->resolver;
	}
}

static void restore(struct daemon *d, const struct kept *k)
{
	d->policy = k->policy;
	memcpy(d->profiles, k->profiles, sizeof(k->profiles));
	for (size_t i = 0; i < k->n_slices; i++) {
		d->slices[i]->id = k->id[i];
		d->slices[i]->filter = k->filter[i];
		d->slices[i]->resolver = k->resolver[i];
	}
	while (d->n_slices > k->n_slices)
		free(d->slices[--d->n_slices]);
}

int daemon_load_policy(struct daemon *d, struct error *e)
{
	struct kept old;
	int r;

	keep(d, &old);
	r = daemon_make_policy(d, e);
	if (r < 0) {
		restore(d, &old);
		return r;
	}
	drops_look(d);
	r = firewall_load(d->firewall, &d->policy, true, e);
	if (r < 0) /* perhaps only while it was read back: then the kernel has it */
		restore(d, &old);
	if (r == 0 || firewall_load(d->firewall, &d->policy, true, NULL) == 0)
		drops_begin_anew(d);
	return r;
}

void daemon_free_policy(struct daemon *d)
{
	for (size_t i = 0; i < d->n_slices; i++)
		free(d->slices[i]);
	d->n_slices = 0;
}

/* ---- is it in force? ---- */

static void tell_who(const struct monitor_news *news, char *ret, size_t size)
{
	ret[0] = '\0';
	if (news->pid)
		snprintf(ret, size, " (the last to change the table was %s, process %u)",
			 news->name, news->pid);
	else if (news->lost)
		snprintf(ret, size, " (by whom is not known: there were too many changes)");
}

/* Everything was lost: ends all guests, rebuilds the table. */
static void policy_lost(struct daemon *d, const struct error *why)
{
	struct error e = ERROR_NULL;
	char who[96];

	monitor_read(d->monitor, &d->news);
	tell_who(&d->news, who, sizeof(who));
	journal_error("policy lost: %s%s; guests are ended and the table is rebuilt", why->text,
		      who);
	runs_stop_all(d, ENDED_POLICY_LOST);
	if (daemon_load_policy(d, &e) < 0)
		journal_error("the table cannot be rebuilt, so no guest will run: %s", e.text);
}

static int check_slice(const char *path, uint64_t known, struct error *e)
{
	uint64_t id = 0;
	int r = cgroup_id(path, "systemctl restart harpe-gov", &id, e);

	if (r == 0 && id != known)
		r = error_set(e, -ESTALE, "%s was made anew: its rule would match nothing", path);
	return r;
}

int daemon_check_policy(struct daemon *d, const struct profile_slice *slice, struct error *e)
{
	int r = check_slice(d->slice_path, d->policy.slice_id, e);

	if (r == 0)
		r = check_slice(slice->path, slice->id, e);
	if (r == 0)
		r = firewall_check(d->firewall, e);
	if (r == -ESTALE)
		policy_lost(d, e);
	return r < 0 ? error_wrap(e, r, "the firewall is not in force, so nothing runs") : 0;
}

void daemon_ruleset_changed(struct daemon *d)
{
	struct error e = ERROR_NULL;
	int r = check_slice(d->slice_path, d->policy.slice_id, &e);

	if (r == 0)
		r = firewall_check(d->firewall, &e);
	if (r == -ESTALE)
		policy_lost(d, &e);
	else if (r < 0)
		journal_error("the firewall cannot be looked at: %s", e.text);
	d->news = (struct monitor_news){ 0 };
}

/* ---- at boot ---- */

#define OWNER_USEC   50000
#define OWNER_LATEST (10 * USEC_PER_SEC) /* the unit has 30 s, and the network waits for it */

static bool somebody_serves(void)
{
	char refusal[ERROR_TEXT_MAX];

	return state_read(STATE_FILE, refusal, sizeof(refusal)) == STATE_SERVES;
}

/* While a daemon starts, or just after one has died, the service manager keeps the socket that owns
 * the table: either the daemon serves soon, or the table goes. */
static int load_unowned(struct daemon *d, struct error *e)
{
	uint64_t end = clock_usec(CLOCK_MONOTONIC) + OWNER_LATEST;
	int r;

	do {
		if (somebody_serves())
			return 0;
		r = firewall_load(d->firewall, &d->policy, false, e);
		if (r != -EBUSY)
			return r;
		usleep(OWNER_USEC);
	} while (clock_usec(CLOCK_MONOTONIC) < end);
	return somebody_serves() ? 0 : r;
}

/* The slices of the profiles are not there yet: what they allow comes with the daemon. */
int daemon_load_firewall_once(struct error *e)
{
	struct daemon d = { 0 };
	int r;

	if (somebody_serves())
		return 0;
	r = daemon_read_config(&d.config, e);
	if (r == 0)
		r = make_base(&d, e);
	if (r == 0)
		r = firewall_open(&d.firewall, e);
	if (r == 0)
		r = load_unowned(&d, e);
	firewall_free(d.firewall);
	daemon_free_config(&d.config);
	return r;
}
