/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/monitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "common/fd.h"
#include "nft/channel.h"
#include "nft/firewall.h"

#define READS_MAX 256 /* per monitor_read() */

int monitor_open(struct error *e)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK,
				    .nl_groups = 1u << (NFNLGRP_NFTABLES - 1) };
	_cleanup_close_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return error_errno(e, -errno, "changes of the ruleset cannot be listened for");
	return TAKE_FD(fd);
}

static int take_attribute(const struct nlattr *attr, void *data)
{
	struct monitor_news *news = data;

	switch (mnl_attr_get_type(attr)) {
	case NFTA_GEN_PROC_PID:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			news->pid = ntohl(mnl_attr_get_u32(attr));
		break;
	case NFTA_GEN_PROC_NAME:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			snprintf(news->name, sizeof(news->name), "%s", mnl_attr_get_str(attr));
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

static bool is_of_nftables(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES &&
	       nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nfgenmsg));
}

/* Whatever the object is, the name of its table is attribute 1 (NFTA_TABLE_NAME, NFTA_CHAIN_TABLE,
 * NFTA_RULE_TABLE, NFTA_SET_TABLE, NFTA_SET_ELEM_LIST_TABLE, ...). */
static int take_table(const struct nlattr *attr, void *data)
{
	bool *ours = data;

	if (mnl_attr_get_type(attr) == NFTA_TABLE_NAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
	    strcmp(mnl_attr_get_str(attr), FIREWALL_TABLE) == 0)
		*ours = true;
	return MNL_CB_OK;
}

static void take_object(const struct nlmsghdr *nlh, struct monitor_news *news)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);

	if (nfg->nfgen_family == NFPROTO_INET)
		mnl_attr_parse(nlh, sizeof(*nfg), take_table, &news->ours);
}

/* The end of a commit. */
static void take_generation(const struct nlmsghdr *nlh, struct monitor_news *news)
{
	news->changed = true;
	if (!news->ours)
		return;
	news->ours = false;
	news->pid = 0;
	news->name[0] = '\0';
	mnl_attr_parse(nlh, sizeof(struct nfgenmsg), take_attribute, news);
}

void monitor_feed(const void *buf, size_t len, struct monitor_news *news)
{
	const struct nlmsghdr *nlh;
	size_t at = 0;

	while ((nlh = message_next(buf, len, &at))) {
		if (!is_of_nftables(nlh))
			continue;
		if ((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWGEN)
			take_generation(nlh, news);
		else
			take_object(nlh, news);
	}
}

/* Only the kernel is listened to: any process may send to a netlink socket that has a port. */
static ssize_t receive(int fd, void *buf, size_t size)
{
	struct sockaddr_nl from = { 0 };
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, buf, size, 0, (struct sockaddr *)&from, &len);

	if (n < 0)
		return -errno;
	return from.nl_pid == 0 ? n : 0;
}

/* What was lost came behind what is still there, so the next end of a commit is another's. */
static void end_of_queue(struct monitor_news *news)
{
	if (news->lost)
		news->ours = false;
}

void monitor_read(int fd, struct monitor_news *news)
{
	static char buf[CHANNEL_BUFFER] __attribute__((aligned(8)));

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = receive(fd, buf, sizeof(buf));

		if (n == -ENOBUFS)
			news->changed = news->lost = true;
		else if (n == -EINTR)
			continue;
		else if (n < 0)
			return end_of_queue(news);
		else
			monitor_feed(buf, (size_t)n, news);
	}
}
