/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a policy must be before a table is made of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "nft/ruleset.h"

#define LEVEL_MAX 255 /* the kernel's */

static int check_pool(const struct firewall_policy *p, struct error *e)
{
	if (p->uid_count < 1 || p->uid_count > RULESET_UIDS_MAX)
		return error_set(e, -EINVAL, "a pool of %u uids: 1 to %u are possible",
				 p->uid_count, RULESET_UIDS_MAX);
	if (p->first_uid < 1 || p->first_uid >= UINT32_MAX - p->uid_count)
		return error_set(e, -EINVAL,
				 "%u uids from %u on: uid 0 and %u cannot be among them",
				 p->uid_count, p->first_uid, UINT32_MAX);
	return 0;
}

static int check_levels(const struct firewall_policy *p, struct error *e)
{
	if (p->slice_id == 0)
		return error_set(e, -EINVAL, "the cgroup id of the slice is not known");
	if (p->slice_level < 1 || p->profile_level < p->slice_level ||
	    p->scope_level < p->profile_level || p->scope_level >= LEVEL_MAX)
		return error_set(e, -EINVAL,
				 "cgroup levels %u (slice), %u (profiles) and %u (scope) cannot be",
				 p->slice_level, p->profile_level, p->scope_level);
	return 0;
}

static int check_profile(const struct firewall_profile *p, struct error *e)
{
	size_t len = strnlen(p->name, sizeof(p->name));
	char name[FIREWALL_PROFILE_NAME_MAX + 1], shown[4 * FIREWALL_PROFILE_NAME_MAX + 8];

	memcpy(name, p->name, sizeof(p->name));
	name[sizeof(p->name)] = '\0';
	if (len == 0 || len == sizeof(p->name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") != len)
		return error_set(
			e, -EINVAL, "\"%s\" is no name of a profile: 1 to %d of a-z and 0-9 are",
			text_escape(name, shown, sizeof(shown)), FIREWALL_PROFILE_NAME_MAX - 1);
	if (p->slice_id == 0)
		return error_set(e, -EINVAL, "profile %s: the cgroup id of its slice is not known",
				 name);
	if (p->on_deny != FIREWALL_DROP && p->on_deny != FIREWALL_REJECT)
		return error_set(e, -EINVAL, "profile %s: on_deny is neither drop nor reject",
				 name);
	return 0;
}

static int check_twins(const struct firewall_policy *p, size_t index, struct error *e)
{
	const struct firewall_profile *a = &p->profiles[index];

	for (size_t i = 0; i < index; i++) {
		const struct firewall_profile *b = &p->profiles[i];

		if (strcmp(a->name, b->name) == 0)
			return error_set(e, -EINVAL, "there are two profiles %s", a->name);
		if (a->slice_id == b->slice_id)
			return error_set(e, -EINVAL,
					 "profiles %s and %s have the same slice, cgroup %" PRIu64,
					 b->name, a->name, a->slice_id);
	}
	return 0;
}

/* Entries that overlap in part are split, so that there may be more of them in the kernel. */
int firewall_count_entries(const struct firewall_profile *p, size_t *total, struct error *e)
{
	_cleanup_free_ struct box *boxes = NULL;
	size_t n = 0, left = FIREWALL_ENTRIES_MAX - *total;
	int r;

	if (p->n_entries > left)
		return error_set(e, -EINVAL,
				 "profile %s: with its %zu entries there are more than %d in all "
				 "profiles: allow networks or port ranges instead",
				 p->name, p->n_entries, FIREWALL_ENTRIES_MAX);
	r = cover(p->entries, p->n_entries, left, &boxes, &n);
	if (r == -E2BIG)
		return error_set(e, -EINVAL,
				 "profile %s: its entries overlap in so many ways that it takes "
				 "more than %d to tell them apart: leave out those that others "
				 "contain",
				 p->name, FIREWALL_ENTRIES_MAX);
	if (r < 0)
		return error_errno(e, r, "cannot check the entries of profile %s", p->name);
	*total += n > p->n_entries ? n : p->n_entries;
	return 0;
}

static int check_profiles(const struct firewall_policy *p, struct error *e)
{
	size_t total = 0;
	int r = 0;

	if (p->n_profiles > FIREWALL_PROFILES_MAX)
		return error_set(e, -EINVAL, "%zu profiles: %d are possible", p->n_profiles,
				 FIREWALL_PROFILES_MAX);
	for (size_t i = 0; i < p->n_profiles && r == 0; i++) {
		r = check_profile(&p->profiles[i], e);
		if (r == 0)
			r = check_twins(p, i, e);
		if (r == 0)
			r = firewall_count_entries(&p->profiles[i], &total, e);
	}
	return r;
}

int firewall_policy_check(const struct firewall_policy *p, struct error *e)
{
	int r = check_pool(p, e);

	if (r == 0)
		r = check_levels(p, e);
	return r < 0 ? r : check_profiles(p, e);
}
