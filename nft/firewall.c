/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A table that our own socket owns cannot be changed by anybody else, so one reading of it is true
 * whatever others commit meanwhile. Without ownership a reading counts only when the generation was
 * the same before and after.
 */
#include "nft/firewall.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "common/fd.h"
#include "nft/channel.h"
#include "nft/commit.h"
#include "nft/compare.h"
#include "nft/live.h"
#include "nft/ruleset.h"

#define READ_TRIES 50 /* a reading takes some milliseconds per 1000 elements */

struct firewall {
	struct channel ch;
	struct ruleset wanted; /* .table is NULL until firewall_load() */
	bool owned;
	int persists;	     /* may an owned table outlive its owner? -1 = not tried yet */
	bool checked;	     /* found as wanted ... */
	uint32_t generation; /* ... in this generation */
};

/* Takes @ch over. */
static int new_firewall(struct channel ch, struct firewall **ret, struct error *e)
{
	struct firewall *fw = malloc(sizeof(*fw));

	if (!fw) {
		channel_close(&ch);
		return error_errno(e, -ENOMEM, "cannot set up the firewall");
	}
	*fw = (struct firewall){ .ch = ch, .wanted = RULESET_NULL, .persists = -1 };
	*ret = fw;
	return 0;
}

int firewall_open(struct firewall **ret, struct error *e)
{
	struct channel ch = CHANNEL_NULL;
	int r = channel_open(&ch, e);

	return r < 0 ? r : new_firewall(ch, ret, e);
}

int firewall_adopt(int fd, struct firewall **ret, struct error *e)
{
	struct channel ch = CHANNEL_NULL;
	int r = channel_adopt(fd, &ch, e);

	return r < 0 ? r : new_firewall(ch, ret, e);
}

void firewall_free(struct firewall *fw)
{
	if (!fw)
		return;
	channel_close(&fw->ch);
	ruleset_free(&fw->wanted);
	free(fw);
}

int firewall_fd(const struct firewall *fw)
{
	return fw->ch.fd;
}

static bool owned_by(const struct ruleset *live, uint32_t portid)
{
	return live->table &&
	       (nftnl_table_get_u32(live->table, NFTNL_TABLE_FLAGS) & NFT_TABLE_F_OWNER) &&
	       nftnl_table_get_u32(live->table, NFTNL_TABLE_OWNER) == portid;
}

/* One reading. 1 when it may be of several moments: see above. */
static int read_once(struct channel *ch, const struct ruleset *wanted, struct ruleset *ret,
		     uint32_t *ret_generation, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset live = RULESET_NULL;
	uint32_t before, after;
	int r, torn;

	r = live_generation(ch, &before, e);
	if (r < 0)
		return r;
	torn = live_read(ch, wanted, &live, e);
	if (torn < 0)
		return torn;
	r = live_generation(ch, &after, e);
	if (r < 0)
		return r;
	if ((torn || before != after) && !owned_by(&live, ch->portid))
		return 1;
	*ret = live;
	live = RULESET_NULL;
	*ret_generation = before;
	return 0;
}

static int read_table(struct channel *ch, const struct ruleset *wanted, struct ruleset *ret,
		      uint32_t *ret_generation, struct error *e)
{
	int r = 1;

	/* -ENOBUFS: messages were lost, for a passing reason. */
	for (unsigned int tries = 0; (r > 0 || r == -ENOBUFS) && tries < READ_TRIES; tries++)
		r = read_once(ch, wanted, ret, ret_generation, e);
	if (r > 0)
		return error_set(e, -EAGAIN, "cannot read table inet %s: the ruleset kept changing",
				 FIREWALL_TABLE);
	return r;
}

static int compare_whole(struct firewall *fw, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset live = RULESET_NULL;
	uint32_t generation;
	int r;

	fw->checked = false;
	r = read_table(&fw->ch, &fw->wanted, &live, &generation, e);
	if (r < 0)
		return r;
	r = ruleset_compare(&fw->wanted, &live, e);
	if (r < 0)
		return r;
	fw->generation = generation;
	fw->checked = true;
	return 0;
}

/* Who it is that does not let us; the sentence of @r stays when that is not to be found out. */
static int name_owner(struct firewall *fw, int r, enum object_kind kind, struct error *e)
{
	uint32_t owner;

	if (r != -EBUSY || kind != OBJECT_OLD_TABLE || live_owner(&fw->ch, &owner, NULL) < 0 ||
	    owner == 0)
		return r;
	return error_set(e, r,
			 "table inet %s belongs to the netlink socket with port %u of another "
			 "process (usually its pid): stop that first",
			 FIREWALL_TABLE, owner);
}

/* Owned, if @owned, and kept when the owner dies where the kernel can. */
static int build_wanted(struct firewall *fw, const struct firewall_policy *policy, bool owned,
			struct ruleset *ret, struct error *e)
{
	const uint32_t both = NFT_TABLE_F_OWNER | NFT_TABLE_F_PERSIST;
	int r;

	if (owned && fw->persists < 0) {
		r = commit_try_table(&fw->ch, both, e);
		if (r < 0)
			return r;
		fw->persists = r;
	}
	r = ruleset_build(policy, owned ? fw->ch.portid : 0, ret);
	if (r < 0)
		return error_errno(e, r, "cannot build the firewall");
	if (owned && fw->persists)
		nftnl_table_set_u32(ret->table, NFTNL_TABLE_FLAGS, both);
	return 0;
}

int firewall_load(struct firewall *fw, const struct firewall_policy *policy, bool owned,
		  struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL;
	enum object_kind refused = OBJECT_BATCH;
	int r = firewall_policy_check(policy, e);

	if (r < 0)
		return r;
	r = build_wanted(fw, policy, owned, &wanted, e);
	if (r < 0)
		return r;
	r = commit_replace(&fw->ch, &wanted, &refused, e);
	if (r < 0)
		return name_owner(fw, r, refused, e);
	ruleset_free(&fw->wanted);
	fw->wanted = wanted;
	fw->owned = owned;
	wanted = RULESET_NULL;
	r = compare_whole(fw, e);
	return r < 0 ? error_wrap(e, r, "reading the firewall back") : 0;
}

bool firewall_persists(const struct firewall *fw)
{
	return fw->persists > 0;
}

int firewall_remove(struct firewall *fw, struct error *e)
{
	enum object_kind refused = OBJECT_BATCH;
	int r = commit_remove(&fw->ch, &refused, e);

	if (r < 0)
		return name_owner(fw, r, refused, e);
	ruleset_free(&fw->wanted);
	fw->checked = false;
	return 0;
}

int firewall_check(struct firewall *fw, struct error *e)
{
	uint32_t generation;
	int r;

	if (!fw->wanted.table)
		return error_set(e, -EINVAL, "no firewall was loaded with this socket yet");
	/* A commit raises the generation a moment before all of it shows, so the number alone is no
	 * proof where others may commit. */
	if (fw->checked && fw->owned) {
		r = live_generation(&fw->ch, &generation, e);
		if (r < 0)
			return r;
		if (generation == fw->generation)
			return 0;
	}
	return compare_whole(fw, e);
}

/* What is wanted and what there is; who owns it is the caller's business, so no difference. */
static int read_both(struct firewall *fw, const struct firewall_policy *policy,
		     struct ruleset *wanted, struct ruleset *live, struct firewall_survey *ret,
		     struct error *e)
{
	uint32_t flags;
	int r = firewall_policy_check(policy, e);

	if (r < 0)
		return r;
	r = ruleset_build(policy, 0, wanted);
	if (r < 0)
		return error_errno(e, r, "cannot build the firewall");
	r = read_table(&fw->ch, wanted, live, &ret->generation, e);
	if (r < 0 || !live->table)
		return r;
	flags = nftnl_table_get_u32(live->table, NFTNL_TABLE_FLAGS);
	ret->owner = nftnl_table_get_u32(live->table, NFTNL_TABLE_OWNER);
	ret->persists = flags & NFT_TABLE_F_PERSIST;
	nftnl_table_set_u32(wanted->table, NFTNL_TABLE_FLAGS,
			    flags & (NFT_TABLE_F_OWNER | NFT_TABLE_F_PERSIST));
	nftnl_table_set_u32(wanted->table, NFTNL_TABLE_OWNER, ret->owner);
	return 0;
}

int firewall_inspect(struct firewall *fw, const struct firewall_policy *policy, uint32_t *ret_owner,
		     struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, live = RULESET_NULL;
	struct firewall_survey survey = { 0 };
	int r = read_both(fw, policy, &wanted, &live, &survey, e);

	if (r == 0)
		r = ruleset_compare(&wanted, &live, e);
	if (r == 0)
		*ret_owner = survey.owner;
	return r;
}

int firewall_survey(struct firewall *fw, const struct firewall_policy *policy,
		    struct firewall_survey *ret, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL, live = RULESET_NULL;
	struct firewall_survey survey = { 0 };
	int r = read_both(fw, policy, &wanted, &live, &survey, e);

	for (int i = 0; i < FIREWALL_PART_COUNT && r == 0; i++) {
		survey.part[i] = ruleset_compare_part(&wanted, &live, (enum firewall_part)i,
						      &survey.differs[i]);
		if (survey.part[i] == -ENOMEM)
			r = error_errno(e, -ENOMEM, "cannot compare the firewall");
	}
	if (r == 0)
		*ret = survey;
	return r;
}

int firewall_generation(struct firewall *fw, uint32_t *ret, struct error *e)
{
	return live_generation(&fw->ch, ret, e);
}

int firewall_uid_drops(struct firewall *fw, uint32_t uid, uint64_t *ret_packets, struct error *e)
{
	int r = live_element_packets(&fw->ch, SET_POOL, &uid, sizeof(uid), ret_packets, e);

	return r < 0 ? error_wrap(e, r, "cannot read the drops of uid %u", uid) : 0;
}

int firewall_stray_drops(struct firewall *fw, uint64_t scope_id, uint64_t *ret_packets,
			 struct error *e)
{
	uint64_t packets = 0;
	int r = live_element_packets(&fw->ch, SET_STRAYS, &scope_id, sizeof(scope_id), &packets, e);

	/* Nothing counted yet, or nothing to count with? */
	if (r == -ENOENT)
		r = live_set_exists(&fw->ch, SET_STRAYS, e);
	if (r < 0)
		return error_wrap(e, r, "cannot read the drops of cgroup %" PRIu64, scope_id);
	*ret_packets = packets;
	return 0;
}
