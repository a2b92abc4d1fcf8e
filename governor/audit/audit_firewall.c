/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the guests, part by part. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "governor/audit/audit.h"
#include "governor/guest/cgroup.h"

#define NETLINK_LINE_MAX 256
#define NETFILTER	 12 /* NETLINK_NETFILTER, the column "Eth" */

/* ---- the parts ---- */

static void judge(const struct audit *a, enum firewall_part part, const char *good,
		  struct finding *f)
{
	if (a->firewall.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->firewall.e.text);
	else if (a->survey.part[part] < 0)
		finding_add(f, VERDICT_FAIL, "%s", a->survey.differs[part].text);
	else
		finding_add(f, VERDICT_PASS, "%s, in generation %" PRIu32, good,
			    a->survey.generation);
}

static void look_table(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_TABLE, "it is there, awake, and has nothing else in it", f);
}

static void look_chains(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_CHAINS, "all are as loaded", f);
}

static void look_rules(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_RULES, "all are as loaded, in their order", f);
}

static void look_sets(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_SETS, "all are as loaded", f);
}

static void look_uids(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_UIDS, "each uid of the pool is there and no other", f);
}

static void look_profiles(const struct audit *a, struct finding *f)
{
	judge(a, FIREWALL_PART_PROFILES, "slices and allow-lists are as configured", f);
}

/* ---- the wanted policy ---- */

static void look_policy(const struct audit *a, struct finding *f)
{
	if (a->config.r < 0)
		finding_add(f, VERDICT_FAIL, "%s", a->config.e.text);
	else if (a->policy.r < 0)
		finding_add(f, VERDICT_FAIL, "%s", a->policy.e.text);
	else
		finding_add(f, VERDICT_PASS, "the slices of %" PRIu32 " profiles are there",
			    a->wanted.config->n_profiles);
}

/* ---- the owner ---- */

uint64_t audit_netlink_inode(FILE *file, uint32_t port)
{
	char line[NETLINK_LINE_MAX];
	uint32_t protocol, owner;
	uint64_t inode;

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %" SCNu32 " %" SCNu32 " %*s %*s %*s %*s %*s %*s %" SCNu64,
			   &protocol, &owner, &inode) == 3 &&
		    protocol == NETFILTER && owner == port)
			return inode;
	return 0;
}

/* 1 when process @pid has the socket open, 0 when not, or a negative errno. */
static int has_socket(pid_t pid, uint64_t inode)
{
	_cleanup_(close_directory) DIR *fds = NULL;
	char path[64], want[64], have[64];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	snprintf(want, sizeof(want), "socket:[%" PRIu64 "]", inode);
	fds = opendir(path);
	if (!fds)
		return -errno;
	while ((entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, have, sizeof(have) - 1);

		have[n > 0 ? n : 0] = '\0';
		if (strcmp(have, want) == 0)
			return 1;
	}
	return 0;
}

static void judge_owner(const struct audit *a, uint64_t inode, struct finding *f)
{
	int r = inode ? has_socket(a->daemon, inode) : -ENOENT;

	if (r < 0)
		finding_add(f, VERDICT_UNKNOWN,
			    "netlink port %" PRIu32 " owns it; whose that is cannot be seen: %s",
			    a->survey.owner, strerror(-r));
	else if (r == 0)
		finding_add(f, VERDICT_FAIL,
			    "netlink port %" PRIu32 " owns it, which harpe-govd (%d) does not have",
			    a->survey.owner, a->daemon);
	else
		finding_add(f, VERDICT_PASS,
			    "harpe-govd (%d) owns it by netlink port %" PRIu32 "%s", a->daemon,
			    a->survey.owner,
			    a->survey.persists ? "; without that it would stay"
					       : "; it goes with the last copy of that");
}

static void look_owner(const struct audit *a, struct finding *f)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/net/netlink", "re");

	if (a->firewall.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->firewall.e.text);
	else if (a->survey.owner == 0)
		finding_add(f, VERDICT_FAIL, "nobody owns it%s",
			    a->survey.persists ? " any more: its owner died" : "");
	else if (a->daemon == 0)
		finding_add(f, VERDICT_FAIL,
			    "netlink port %" PRIu32 " owns it, but no harpe-govd serves",
			    a->survey.owner);
	else if (!file)
		finding_add(f, VERDICT_UNKNOWN, "/proc/net/netlink cannot be read: %s",
			    strerror(errno));
	else
		judge_owner(a, audit_netlink_inode(file, a->survey.owner), f);
}

#define LOOKS_AT "table inet " FIREWALL_TABLE ", by netlink"
#define RELOAD	 "systemctl restart harpe-gov; find out who changed it (journalctl -u harpe-gov)"

const struct audit_check audit_firewall_checks[] = {
	{ "HG-FW-001", "The table of the guests is there", LOOKS_AT,
	  "Without it, or while it is dormant, the first two layers of the network do not exist.",
	  RELOAD, look_table },
	{ "HG-FW-002", "The running daemon owns the table",
	  LOOKS_AT "; /proc/net/netlink; the daemon's descriptors",
	  "A table that nobody owns goes with the next \"nft flush ruleset\", such as a restart of "
	  "nftables.service.",
	  "systemctl restart harpe-gov", look_owner },
	{ "HG-FW-003", "Its chains have the hook, priority and policy that they must have",
	  LOOKS_AT,
	  "A chain at another hook sees no packet of a guest's; behind another priority others "
	  "decide before it.",
	  RELOAD, look_chains },
	{ "HG-FW-004", "Every rule is as wanted", LOOKS_AT,
	  "One rule that accepts, or one that names a slice which was made anew since, lets guests "
	  "out.",
	  RELOAD, look_rules },
	{ "HG-FW-005", "Every set is declared as wanted", LOOKS_AT,
	  "A set of another type or flag compares other bytes and matches nobody.", RELOAD,
	  look_sets },
	{ "HG-FW-006", "Every uid of the pool, and no other, is in the table",
	  LOOKS_AT "; [pool] of the configuration",
	  "A guest with a uid that is missing falls through to the layers behind.", RELOAD,
	  look_uids },
	{ "HG-FW-007", "Each profile has its slice and what it allows in the table",
	  LOOKS_AT "; [profile] of the configuration; the slices' cgroups",
	  "A wider entry lets guests out further than was decided; one of a slice that is gone "
	  "matches nothing.",
	  RELOAD, look_profiles },
	{ "HG-FW-008", "The configuration is good and systemd has made the slices of all profiles",
	  CONFIG_PATH ", its drop-ins; the cgroups below " CGROUP_ROOT "/" SLICE,
	  "What is wanted comes from there: nothing can be compared with what is not known.",
	  "harpe-gov config check; then systemctl restart harpe-gov", look_policy },
	{ 0 },
};
