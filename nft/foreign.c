/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/foreign.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include <libnftnl/common.h>

#include "common/fd.h"
#include "nft/build.h"
#include "nft/channel.h"
#include "nft/commit.h"
#include "nft/live.h"
#include "nft/refusal.h"

#define READ_TRIES    8
#define QUESTION_SIZE 1024 /* two names of the kernel's */

struct foreign_message {
	struct foreign_message *next;
	_Alignas(NLMSG_ALIGNTO) char data[];
};

/* ---- keeping ---- */

void foreign_free(struct foreign *f)
{
	for (size_t i = 0; i < f->n_chains; i++)
		free(f->chains[i].rules);
	for (size_t i = 0; i < f->n_sets; i++)
		free(f->sets[i].elements);
	for (struct foreign_message *m = f->messages, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	free(f->tables);
	free(f->chains);
	free(f->sets);
	*f = FOREIGN_NULL;
}

/* The attributes of a copy of @nlh; empty when that is not possible, with the errno in *ret. */
static struct nest keep(struct foreign *f, const struct nlmsghdr *nlh, int *ret)
{
	size_t head = sizeof(struct nfgenmsg), len = nlh->nlmsg_len - NLMSG_HDRLEN - head;
	struct foreign_message *m;

	if (len > FOREIGN_BYTES_MAX - f->n_bytes) {
		*ret = -E2BIG;
		return NEST_NULL;
	}
	m = malloc(sizeof(*m) + len + 1); /* a message may be empty */
	if (!m) {
		*ret = -ENOMEM;
		return NEST_NULL;
	}
	memcpy(m->data, (const char *)nlh + NLMSG_HDRLEN + head, len);
	m->next = f->messages;
	f->messages = m;
	f->n_bytes += len;
	*ret = 0;
	return (struct nest){ m->data, len };
}

/* Room for one more in *@array; it doubles at powers of two. */
static int reserve(void *array, size_t n, size_t size)
{
	void **at = array, *p;

	if ((n & (n - 1)) != 0)
		return 0;
	p = reallocarray(*at, n ? 2 * n : 1, size);
	if (!p)
		return -ENOMEM;
	*at = p;
	return 0;
}

static int reserve_object(const struct foreign *f, void *array, size_t n, size_t size)
{
	if (f->n_tables + f->n_chains + f->n_sets + f->n_rules >= FOREIGN_OBJECTS_MAX)
		return -E2BIG;
	return reserve(array, n, size);
}

/* ---- finding ---- */

struct foreign_table *foreign_find_table(const struct foreign *f, uint8_t family, const char *name)
{
	for (size_t i = 0; i < f->n_tables; i++)
		if (f->tables[i].family == family && strcmp(f->tables[i].name, name) == 0)
			return &f->tables[i];
	return NULL;
}

/* What belongs together comes together: the one that was found last is the first guess, or the one
 * behind it. */
#define FIND(objects, count, last)                                                                 \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (count); i_++) {                                          \
			size_t at_ = ((last) + i_) % (count);                                      \
                                                                                                   \
			if ((objects)[at_].table == table &&                                       \
			    strcmp((objects)[at_].name, name) == 0) {                              \
				(last) = at_;                                                      \
				return &(objects)[at_];                                            \
			}                                                                          \
		}                                                                                  \
		return NULL;                                                                       \
	} while (0)

struct foreign_chain *foreign_find_chain(struct foreign *f, size_t table, const char *name)
{
	FIND(f->chains, f->n_chains, f->last_chain);
}

struct foreign_set *foreign_find_set(struct foreign *f, size_t table, const char *name)
{
	FIND(f->sets, f->n_sets, f->last_set);
}

/* ---- order ---- */

/* The kernel compares intervals byte by byte, whatever they are made of. */
static bool has_host_words(const struct foreign_set *s)
{
	return !(s->flags & NFT_SET_INTERVAL) &&
	       (s->key_type == NFT_TYPE_UID || s->key_type == NFT_TYPE_CGROUPSV2) && htons(1) != 1;
}

int foreign_compare_keys(const struct foreign_set *s, struct nest a, struct nest b)
{
	const uint8_t *x = a.data, *y = b.data;
	int r = 0;

	if (a.len != b.len)
		return a.len < b.len ? -1 : 1;
	if (!has_host_words(s))
		return a.len ? memcmp(x, y, a.len) : 0;
	for (size_t i = a.len; i-- > 0 && r == 0;)
		r = x[i] - y[i];
	return r;
}

static int compare_elements(const void *a, const void *b, void *set)
{
	const struct foreign_element *x = a, *y = b;
	int r = foreign_compare_keys(set, x->key, y->key);
	int x_ends = (x->flags & NFT_SET_ELEM_INTERVAL_END) != 0;
	int y_ends = (y->flags & NFT_SET_ELEM_INTERVAL_END) != 0;

	return r != 0 ? r : y_ends - x_ends;
}

void foreign_sort(struct foreign *f)
{
	for (size_t i = 0; i < f->n_sets; i++)
		if (f->sets[i].n_elements > 1)
			qsort_r(f->sets[i].elements, f->sets[i].n_elements,
				sizeof(*f->sets[i].elements), compare_elements, &f->sets[i]);
}

/* ---- messages -> objects ---- */

static int take_table(struct foreign *f, uint8_t family, struct nest n)
{
	const char *name = nest_string(n, NFTA_TABLE_NAME);
	struct foreign_table *t = name ? foreign_find_table(f, family, name) : NULL;
	int r;

	if (!name)
		return -EBADMSG;
	if (!t) { /* else it is told anew */
		r = reserve_object(f, &f->tables, f->n_tables, sizeof(*t));
		if (r < 0)
			return r;
		t = &f->tables[f->n_tables++];
	}
	*t = (struct foreign_table){
		.family = family,
		.name = name,
		.flags = nest_u32(n, NFTA_TABLE_FLAGS, 0),
		.owner = nest_u32(n, NFTA_TABLE_OWNER, 0),
		.use = nest_u32(n, NFTA_TABLE_USE, 0),
	};
	return 0;
}

/* 0 or -EBADMSG. */
static int table_of(const struct foreign *f, uint8_t family, const char *name, size_t *ret)
{
	const struct foreign_table *t = name ? foreign_find_table(f, family, name) : NULL;

	if (!t)
		return -EBADMSG;
	*ret = (size_t)(t - f->tables);
	return 0;
}

static int take_chain(struct foreign *f, uint8_t family, struct nest n)
{
	struct nest hook = nest_get(n, NFTA_CHAIN_HOOK);
	struct foreign_chain chain = {
		.name = nest_string(n, NFTA_CHAIN_NAME),
		.base = nest_has(n, NFTA_CHAIN_HOOK),
		.type = nest_string(n, NFTA_CHAIN_TYPE),
		.hook = nest_u32(hook, NFTA_HOOK_HOOKNUM, UINT32_MAX),
		.priority = (int32_t)nest_u32(hook, NFTA_HOOK_PRIORITY, 0),
		.policy = nest_u32(n, NFTA_CHAIN_POLICY, NF_ACCEPT),
		.hook_raw = hook,
	};
	int r = chain.name ? table_of(f, family, nest_string(n, NFTA_CHAIN_TABLE), &chain.table)
			   : -EBADMSG;

	if (r == 0)
		r = reserve_object(f, &f->chains, f->n_chains, sizeof(chain));
	if (r == 0)
		f->chains[f->n_chains++] = chain;
	return r;
}

static int take_rule(struct foreign *f, uint8_t family, struct nest n)
{
	const char *name = nest_string(n, NFTA_RULE_CHAIN);
	struct foreign_chain *c;
	size_t table;
	int r = name ? table_of(f, family, nest_string(n, NFTA_RULE_TABLE), &table) : -EBADMSG;

	if (r < 0)
		return r;
	c = foreign_find_chain(f, table, name);
	if (!c)
		return -EBADMSG;
	r = reserve_object(f, &c->rules, c->n_rules, sizeof(*c->rules));
	if (r < 0)
		return r;
	c->rules[c->n_rules++] = (struct foreign_rule){
		.handle = nest_u64(n, NFTA_RULE_HANDLE, 0),
		.exprs = nest_get(n, NFTA_RULE_EXPRESSIONS),
	};
	f->n_rules++;
	return 0;
}

static int take_set(struct foreign *f, uint8_t family, struct nest n)
{
	struct foreign_set set = {
		.name = nest_string(n, NFTA_SET_NAME),
		.flags = nest_u32(n, NFTA_SET_FLAGS, 0),
		.key_type = nest_u32(n, NFTA_SET_KEY_TYPE, 0),
		.key_len = nest_u32(n, NFTA_SET_KEY_LEN, 0),
		.data_type = nest_u32(n, NFTA_SET_DATA_TYPE, 0),
		.data_len = nest_u32(n, NFTA_SET_DATA_LEN, 0),
		.raw = n,
	};
	int r = set.name ? table_of(f, family, nest_string(n, NFTA_SET_TABLE), &set.table)
			 : -EBADMSG;

	if (r == 0)
		r = reserve_object(f, &f->sets, f->n_sets, sizeof(set));
	if (r == 0)
		f->sets[f->n_sets++] = set;
	return r;
}

static int take_element(struct foreign *f, struct foreign_set *s, struct nest n)
{
	int r = f->n_elements < FOREIGN_ELEMENTS_MAX
			? reserve(&s->elements, s->n_elements, sizeof(*s->elements))
			: -E2BIG;

	if (r < 0)
		return r;
	s->elements[s->n_elements++] = (struct foreign_element){
		.key = nest_value(n, NFTA_SET_ELEM_KEY),
		.key_end = nest_value(n, NFTA_SET_ELEM_KEY_END),
		.flags = nest_u32(n, NFTA_SET_ELEM_FLAGS, 0),
		.raw = n,
	};
	f->n_elements++;
	return 0;
}

static int take_elements(struct foreign *f, uint8_t family, struct nest n)
{
	const char *name = nest_string(n, NFTA_SET_ELEM_LIST_SET);
	struct nest list = nest_get(n, NFTA_SET_ELEM_LIST_ELEMENTS);
	const struct nlattr *attr;
	struct foreign_set *s;
	size_t table;
	int r = name ? table_of(f, family, nest_string(n, NFTA_SET_ELEM_LIST_TABLE), &table)
		     : -EBADMSG;

	if (r < 0)
		return r;
	s = foreign_find_set(f, table, name);
	if (!s)
		return -EBADMSG;
	while (r == 0 && (attr = nest_next(&list)))
		r = take_element(f, s, nest_of(attr));
	return r;
}

static const struct {
	uint16_t type;
	int (*take)(struct foreign *f, uint8_t family, struct nest n);
} takers[] = {
	{ NFT_MSG_NEWTABLE, take_table },      { NFT_MSG_NEWCHAIN, take_chain },
	{ NFT_MSG_NEWSET, take_set },	       { NFT_MSG_NEWRULE, take_rule },
	{ NFT_MSG_NEWSETELEM, take_elements },
};

int foreign_take(const struct nlmsghdr *nlh, void *data)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);
	struct foreign *f = data;
	struct nest n;
	int r;

	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*nfg)) ||
	    NFNL_SUBSYS_ID(nlh->nlmsg_type) != NFNL_SUBSYS_NFTABLES)
		return -EBADMSG;
	n = keep(f, nlh, &r);
	for (size_t i = 0; i < ARRAY_SIZE(takers) && r == 0; i++)
		if (NFNL_MSG_TYPE(nlh->nlmsg_type) == takers[i].type)
			return takers[i].take(f, nfg->nfgen_family, n);
	return r < 0 ? r : -EBADMSG;
}

/* ---- questions ---- */

struct question {
	uint16_t type;
	const char *what;
};

/* In this order: what contains comes before what it contains. */
static const struct question dumps[] = {
	{ NFT_MSG_GETTABLE, "the tables" },
	{ NFT_MSG_GETSET, "the sets" },
	{ NFT_MSG_GETCHAIN, "the chains" },
	{ NFT_MSG_GETRULE, "the rules" },
};

/* 0, 1 when it is torn, or with a sentence. What belongs to nothing comes of a change meanwhile. */
static int settle(int r, const char *what, struct error *e)
{
	if (r == -EBADMSG || r == -ENOENT)
		return 1;
	if (r == -E2BIG)
		return error_set(e, r,
				 "the ruleset is larger than what is looked at (%u objects, %u "
				 "elements, %u MiB)",
				 FOREIGN_OBJECTS_MAX, FOREIGN_ELEMENTS_MAX,
				 FOREIGN_BYTES_MAX >> 20);
	return r < 0 ? refusal_set(e, r, OBJECT_REQUEST, what) : r;
}

static int dump(struct channel *ch, const struct question *q, struct foreign *f, struct error *e)
{
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, q->type, NFPROTO_UNSPEC, NLM_F_DUMP,
						     channel_next_seq(ch));

	return settle(channel_request(ch, nlh, foreign_take, f), q->what, e);
}

static int dump_elements(struct channel *ch, const struct foreign_set *s, struct foreign *f,
			 struct error *e)
{
	const struct foreign_table *t = &f->tables[s->table];
	char buf[QUESTION_SIZE];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETSETELEM, t->family, NLM_F_DUMP,
						     channel_next_seq(ch));

	if (!mnl_attr_put_strz_check(nlh, sizeof(buf), NFTA_SET_ELEM_LIST_TABLE, t->name) ||
	    !mnl_attr_put_strz_check(nlh, sizeof(buf), NFTA_SET_ELEM_LIST_SET, s->name))
		return 1;
	return settle(channel_request(ch, nlh, foreign_take, f), "the elements of a set", e);
}

static int read_all(struct channel *ch, struct foreign *f, struct error *e)
{
	int torn = 0, r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dumps) && r >= 0; i++, torn |= r)
		r = dump(ch, &dumps[i], f, e);
	for (size_t i = 0; i < f->n_sets && r >= 0 && !torn; i++, torn |= r)
		r = dump_elements(ch, &f->sets[i], f, e);
	return r < 0 ? r : torn;
}

/* 1 when it may be of several moments. */
static int read_once(struct channel *ch, struct foreign *ret, struct error *e)
{
	_cleanup_(foreign_free) struct foreign f = FOREIGN_NULL;
	uint32_t before, after;
	int r = live_generation(ch, &before, e), torn;

	if (r < 0)
		return r;
	torn = read_all(ch, &f, e);
	r = torn < 0 ? torn : live_generation(ch, &after, e);
	if (r < 0)
		return r;
	if (torn || before != after)
		return 1;
	foreign_sort(&f);
	*ret = f;
	f = FOREIGN_NULL;
	return 0;
}

int foreign_read(struct foreign *ret, struct error *e)
{
	_cleanup_(channel_close) struct channel ch = CHANNEL_NULL;
	int r = channel_open(&ch, e);

	if (r < 0)
		return r;
	r = 1;
	for (unsigned int tries = 0; (r > 0 || r == -ENOBUFS) && tries < READ_TRIES; tries++)
		r = read_once(&ch, ret, e);
	return r > 0 ? error_set(e, -EAGAIN, "cannot read the ruleset: it kept changing") : r;
}

/* ---- what is wanted ---- */

/* The messages that make room, and begin the batch, are not for us. */
static int take_all(struct foreign *f, const struct transaction *t)
{
	for (size_t i = 0; i < t->n_items; i++) {
		const struct nlmsghdr *nlh = (const void *)(t->buf + t->items[i].offset);
		int r = foreign_take(nlh, f);

		if (r < 0 && r != -EBADMSG)
			return r;
	}
	foreign_sort(f);
	return 0;
}

static int put_ruleset(struct foreign *f, const struct ruleset *wanted)
{
	_cleanup_(transaction_free) struct transaction t = TRANSACTION_NULL;
	struct channel ch = CHANNEL_NULL;
	int r = transaction_begin(&t, &ch, "wanted");

	if (r == 0)
		r = commit_build_replace(&t, wanted);
	return r < 0 ? r : take_all(f, &t);
}

int foreign_put_wanted(struct foreign *f, const struct firewall_policy *policy, struct error *e)
{
	_cleanup_(ruleset_free) struct ruleset wanted = RULESET_NULL;
	struct foreign_table *old = foreign_find_table(f, NFPROTO_INET, FIREWALL_TABLE);
	int r = firewall_policy_check(policy, e);

	if (r < 0)
		return r;
	if (old) {
		old->name = "";
		old->flags |= NFT_TABLE_F_DORMANT;
	}
	r = ruleset_build(policy, 0, &wanted);
	if (r == 0)
		r = put_ruleset(f, &wanted);
	return r < 0 ? error_errno(e, r, "cannot build the firewall") : 0;
}

/* ---- looking ---- */

bool foreign_next_expr(struct nest *rest, struct foreign_expr *ret)
{
	const struct nlattr *attr = nest_next(rest);
	struct nest n = nest_of(attr);

	if (!attr)
		return false;
	ret->name = nest_string(n, NFTA_EXPR_NAME) ?: "?";
	ret->data = nest_get(n, NFTA_EXPR_DATA);
	return true;
}

bool foreign_verdict(struct nest data, int *ret_code, const char **ret_chain)
{
	struct nest v = nest_get(data, NFTA_DATA_VERDICT);

	if (!nest_has(v, NFTA_VERDICT_CODE))
		return false;
	*ret_code = (int)nest_u32(v, NFTA_VERDICT_CODE, 0);
	*ret_chain = nest_string(v, NFTA_VERDICT_CHAIN);
	return true;
}

uint64_t foreign_packets(struct nest exprs)
{
	struct foreign_expr x;

	while (foreign_next_expr(&exprs, &x))
		if (strcmp(x.name, "counter") == 0)
			return nest_u64(x.data, NFTA_COUNTER_PACKETS, 0);
	return FIREWALL_UNKNOWN;
}

uint64_t foreign_element_packets(const struct foreign_element *element)
{
	struct nest one = nest_get(element->raw, NFTA_SET_ELEM_EXPR);
	const char *name = nest_string(one, NFTA_EXPR_NAME);

	if (name && strcmp(name, "counter") == 0)
		return nest_u64(nest_get(one, NFTA_EXPR_DATA), NFTA_COUNTER_PACKETS, 0);
	return foreign_packets(nest_get(element->raw, NFTA_SET_ELEM_EXPRESSIONS));
}

const char *foreign_family(uint8_t family, char buf[16])
{
	static const char *const names[] = {
		[NFPROTO_INET] = "inet",     [NFPROTO_IPV4] = "ip",	  [NFPROTO_ARP] = "arp",
		[NFPROTO_NETDEV] = "netdev", [NFPROTO_BRIDGE] = "bridge", [NFPROTO_IPV6] = "ip6",
	};

	if (family < ARRAY_SIZE(names) && names[family])
		return names[family];
	snprintf(buf, 16, "family %u", family);
	return buf;
}
