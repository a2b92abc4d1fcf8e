/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/refusal.h"

#include <errno.h>
#include <stddef.h>

#include "common/fd.h"

static const struct {
	enum object_kind kind;
	int from, to;
	const char *text;
} meanings[] = {
	/* nfnetlink does not know the subsystem; a question and a transaction fail differently. */
	{ OBJECT_REQUEST, -EINVAL, -EOPNOTSUPP,
	  "the kernel has no nf_tables: load the module nf_tables (CONFIG_NF_TABLES)" },
	{ OBJECT_BATCH, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel has no nf_tables: load the module nf_tables (CONFIG_NF_TABLES)" },

	{ OBJECT_REQUEST, -EPERM, -EPERM,
	  "not allowed to look at the firewall: CAP_NET_ADMIN is missing" },
	{ OBJECT_BATCH, -EPERM, -EPERM,
	  "not allowed to change the firewall: CAP_NET_ADMIN is missing" },
	{ OBJECT_OLD_TABLE, -EPERM, -EBUSY,
	  "table inet harpe_gov belongs to the netlink socket of another process: stop that "
	  "first" },

	{ OBJECT_OLD_TABLE, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel's nf_tables has no family inet (CONFIG_NF_TABLES_INET)" },
	{ OBJECT_TABLE, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel cannot own a table: Linux 5.12 or later is needed" },
	{ OBJECT_SET, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel has no sets with counters or from the packet path: "
	  "Linux 5.13 or later is needed" },
	{ OBJECT_CHAIN, -ENOENT, -ENOENT,
	  "the kernel has no filter chains for family inet (CONFIG_NF_TABLES_INET)" },
	{ OBJECT_CHAIN, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel has no filter chains for family inet (CONFIG_NF_TABLES_INET)" },
	{ OBJECT_SLICE_RULE, -ENOENT, -ENOENT,
	  "the kernel cannot match sockets: load the module nft_socket (CONFIG_NFT_SOCKET)" },
	{ OBJECT_SLICE_RULE, -EOPNOTSUPP, -EOPNOTSUPP,
	  "the kernel's nft_socket cannot match cgroups: Linux 5.13 or later with cgroups "
	  "(CONFIG_SOCK_CGROUP_DATA) is needed" },
	{ OBJECT_LOG_RULE, -ENOENT, -ENOENT,
	  "the kernel cannot log to a group: load the modules nft_log, nft_limit and "
	  "nfnetlink_log, or write log = no" },
	{ OBJECT_REJECT_RULE, -ENOENT, -ENOENT,
	  "the kernel cannot reject: load the module nft_reject_inet, or write on-deny = drop" },
};

static const char *const kind_names[OBJECT_KIND_COUNT] = {
	[OBJECT_REQUEST] = "the request for",
	[OBJECT_BATCH] = "the transaction for",
	[OBJECT_OLD_TABLE] = "replacing",
	[OBJECT_TABLE] = "adding",
	[OBJECT_SET] = "adding",
	[OBJECT_ELEMENTS] = "adding",
	[OBJECT_CHAIN] = "adding",
	[OBJECT_RULE] = "adding",
	[OBJECT_SLICE_RULE] = "adding",
	[OBJECT_LOG_RULE] = "adding",
	[OBJECT_REJECT_RULE] = "adding",
};

int refusal_set(struct error *e, int r, enum object_kind kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].kind == kind && meanings[i].from == r)
			return error_set(e, meanings[i].to, "%s", meanings[i].text);
	return error_errno(e, r, "the kernel refused %s %s", kind_names[kind], name);
}
