/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whatever comes out of the netlink socket, taken apart into messages. What is in a message is
 * libnftnl's to parse, which trusts the kernel so far that it ends the process on a malformed
 * attribute: nothing to be fuzzed here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nft/channel.h"
#include "nft/transaction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ITEMS 5

struct bounds {
	const char *start, *end;
	unsigned int sum;
};

/* Every message is whole and inside, and may be read. */
static int check_message(const struct nlmsghdr *nlh, void *data)
{
	struct bounds *b = data;
	const char *at = (const char *)nlh;

	if (at < b->start || nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > b->end - at)
		abort();
	for (uint32_t i = 0; i < nlh->nlmsg_len; i++)
		b->sum += (unsigned char)at[i];
	return b->sum % 7 == 0 ? -1 : 0;
}

static void read_reply(const char *buf, size_t size, bool dump)
{
	struct bounds b = { .start = buf, .end = buf + size };
	struct reply reply = { .each = check_message, .data = &b, .dump = dump };

	reply_feed(&reply, buf, size);
	if (reply.result > 0)
		abort();
}

static void read_verdict(const char *buf, size_t size)
{
	struct verdict v = { .n_items = ITEMS, .refused = ITEMS };

	verdict_feed(&v, buf, size);
	if (v.result > 0 || (v.result < 0) != (v.refused < ITEMS))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *buf = malloc(size ? size : 1);

	if (!buf)
		return 0;
	memcpy(buf, data, size);
	read_reply(buf, size, true);
	read_reply(buf, size, false);
	read_verdict(buf, size);
	free(buf);
	return 0;
}
