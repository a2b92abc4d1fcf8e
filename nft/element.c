/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/element.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"
#include "nft/ruleset.h"

#define ELEMENTS_MAX (1u << 20) /* of one set; more are nothing of ours, whatever they are */

#define KEY4 12 /* protocol, address and port in registers */
#define KEY6 24

/* A kind: how long a key is, and what comes behind it. */
static const struct shape {
	size_t key, size;
	bool interval, verdict;
} shapes[] = {
	[ELEMENT_NONE] = { 0, 1, false, false },
	[ELEMENT_UID] = { sizeof(uint32_t), sizeof(uint32_t), false, false },
	[ELEMENT_SLICE] = { sizeof(uint64_t), sizeof(uint64_t) + OBJECT_NAME_MAX, false, true },
	[ELEMENT_IP4] = { KEY4, 2 * KEY4, true, false },
	[ELEMENT_IP6] = { KEY6, 2 * KEY6, true, false },
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* Names of profiles have no underscore. */
enum element_kind element_kind_of(const char *set)
{
	if (strcmp(set, SET_POOL) == 0)
		return ELEMENT_UID;
	if (strcmp(set, SET_PROFILES) == 0)
		return ELEMENT_SLICE;
	if (ends_with(set, SET_IP4_SUFFIX))
		return ELEMENT_IP4;
	return ends_with(set, SET_IP6_SUFFIX) ? ELEMENT_IP6 : ELEMENT_NONE;
}

size_t element_size(enum element_kind kind)
{
	return shapes[kind].size;
}

size_t element_key_size(enum element_kind kind)
{
	return shapes[kind].key;
}

size_t element_message_size(enum element_kind kind)
{
	size_t headers = 5 * MNL_ATTR_HDRLEN; /* element, key and its value, a second value */

	return shapes[kind].size + headers + (shapes[kind].verdict ? 4 * MNL_ATTR_HDRLEN : 0);
}

void element_of_uid(uint32_t uid, uint8_t *ret)
{
	memcpy(ret, &uid, sizeof(uid));
}

void element_of_slice(uint64_t id, const char *chain, uint8_t *ret)
{
	char name[OBJECT_NAME_MAX] = { 0 };

	snprintf(name, sizeof(name), "%s", chain);
	memcpy(ret, &id, sizeof(id));
	memcpy(ret + sizeof(id), name, sizeof(name));
}

static void put_key(uint8_t *key, uint8_t protocol, const uint8_t *address, size_t len,
		    uint16_t port)
{
	key[0] = protocol;
	memcpy(key + 4, address, len);
	key[4 + len] = (uint8_t)(port >> 8);
	key[4 + len + 1] = (uint8_t)port;
}

void element_of_box(const struct box *box, uint8_t *ret)
{
	size_t key = box->family == AF_INET ? KEY4 : KEY6, len = key - 8;

	memset(ret, 0, 2 * key);
	put_key(ret, box->protocol, box->first, len, box->first_port);
	put_key(ret + key, box->protocol, box->last, len, box->last_port);
}

int elements_reserve(struct elements *els, size_t n)
{
	uint8_t *p = reallocarray(els->data, els->n + n, element_size(els->kind));

	if (!p)
		return -ENOMEM;
	els->data = p;
	return 0;
}

/* Kernel -> bytes */

static bool get_bytes(const struct nftnl_set_elem *element, uint16_t attr, uint8_t *ret, size_t len)
{
	uint32_t have = 0;
	const void *data = nftnl_set_elem_is_set(element, attr)
				   ? nftnl_set_elem_get((void *)(uintptr_t)element, attr, &have)
				   : NULL;

	if (!data || have != len)
		return false;
	memcpy(ret, data, len);
	return true;
}

static bool get_chain(struct nftnl_set_elem *element, uint8_t *ret)
{
	const char *name;

	if (!nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_CHAIN) ||
	    !nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_VERDICT) ||
	    (int)nftnl_set_elem_get_u32(element, NFTNL_SET_ELEM_VERDICT) != NFT_JUMP)
		return false;
	name = nftnl_set_elem_get_str(element, NFTNL_SET_ELEM_CHAIN);
	if (!name || strlen(name) >= OBJECT_NAME_MAX)
		return false;
	memset(ret, 0, OBJECT_NAME_MAX);
	memcpy(ret, name, strlen(name));
	return true;
}

/* Only the pool's elements count; no element of ours has flags or an end to its life. */
static bool is_plain(const struct nftnl_set_elem *element, enum element_kind kind)
{
	static const uint16_t strange[] = { NFTNL_SET_ELEM_TIMEOUT, NFTNL_SET_ELEM_EXPR,
					    NFTNL_SET_ELEM_EXPRESSIONS, NFTNL_SET_ELEM_OBJREF };

	for (size_t i = 0; i < ARRAY_SIZE(strange) && kind != ELEMENT_UID; i++)
		if (nftnl_set_elem_is_set(element, strange[i]))
			return false;
	return !nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_FLAGS) ||
	       nftnl_set_elem_get_u32((void *)(uintptr_t)element, NFTNL_SET_ELEM_FLAGS) == 0;
}

static bool get_element(enum element_kind kind, struct nftnl_set_elem *element, uint8_t *ret)
{
	const struct shape *s = &shapes[kind];

	if (!is_plain(element, kind) || !get_bytes(element, NFTNL_SET_ELEM_KEY, ret, s->key))
		return false;
	if (s->verdict)
		return get_chain(element, ret + s->key);
	return !s->interval || get_bytes(element, NFTNL_SET_ELEM_KEY_END, ret + s->key, s->key);
}

int elements_take(struct elements *els, struct nftnl_set_elem *element)
{
	uint8_t *p;

	if (els->n >= ELEMENTS_MAX)
		return -E2BIG;
	/* Doubles at powers of two. */
	if ((els->n & (els->n - 1)) == 0 && elements_reserve(els, els->n ? els->n : 1) < 0)
		return -ENOMEM;
	p = els->data + els->n * element_size(els->kind);
	if (els->kind != ELEMENT_NONE && get_element(els->kind, element, p))
		els->n++;
	else
		els->foreign = true;
	return 0;
}

/* Order */

int element_compare(enum element_kind kind, const uint8_t *a, const uint8_t *b)
{
	uint32_t x, y;

	if (kind != ELEMENT_UID)
		return memcmp(a, b, element_size(kind));
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static int compare(const void *a, const void *b, void *kind)
{
	return element_compare(*(enum element_kind *)kind, a, b);
}

void elements_sort(struct elements *els)
{
	if (els->n > 0)
		qsort_r(els->data, els->n, element_size(els->kind), compare, &els->kind);
}

/* Text */

static void box_text(const uint8_t *first, size_t key, char *buf)
{
	const uint8_t *last = first + key;
	int family = key == KEY4 ? AF_INET : AF_INET6;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
	size_t port = key - 4;

	inet_ntop(family, first + 4, from, sizeof(from));
	inet_ntop(family, last + 4, to, sizeof(to));
	snprintf(buf, ELEMENT_TEXT_MAX, "%s %s-%s %u-%u", allow_protocol_name(first[0]), from, to,
		 first[port] << 8 | first[port + 1], last[port] << 8 | last[port + 1]);
}

static void slice_text(const uint8_t *element, char *buf)
{
	char name[OBJECT_NAME_MAX], chain[OBJECT_NAME_MAX];
	uint64_t id;

	memcpy(&id, element, sizeof(id));
	memcpy(name, element + sizeof(id), sizeof(name));
	text_escape(name, chain, sizeof(chain));
	snprintf(buf, ELEMENT_TEXT_MAX, "cgroup %" PRIu64 " to chain %s", id, chain);
}

const char *element_text(enum element_kind kind, const uint8_t *element, char buf[ELEMENT_TEXT_MAX])
{
	uint32_t uid;

	if (kind == ELEMENT_SLICE) {
		slice_text(element, buf);
	} else if (shapes[kind].interval) {
		box_text(element, shapes[kind].key, buf);
	} else {
		memcpy(&uid, element, sizeof(uid));
		snprintf(buf, ELEMENT_TEXT_MAX, "uid %u", uid);
	}
	return buf;
}

/* Bytes -> kernel */

static void put_value(struct nlmsghdr *nlh, uint16_t attr, const uint8_t *data, size_t len)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, attr);

	mnl_attr_put(nlh, NFTA_DATA_VALUE, len, data);
	mnl_attr_nest_end(nlh, nest);
}

static void put_jump(struct nlmsghdr *nlh, const char *chain)
{
	struct nlattr *data = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_DATA), *verdict;

	verdict = mnl_attr_nest_start(nlh, NFTA_DATA_VERDICT);
	mnl_attr_put_u32(nlh, NFTA_VERDICT_CODE, htonl((uint32_t)NFT_JUMP));
	mnl_attr_put_strz(nlh, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(nlh, verdict);
	mnl_attr_nest_end(nlh, data);
}

void element_put(struct nlmsghdr *nlh, enum element_kind kind, const uint8_t *element)
{
	const struct shape *s = &shapes[kind];
	struct nlattr *nest = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);

	put_value(nlh, NFTA_SET_ELEM_KEY, element, s->key);
	if (s->interval)
		put_value(nlh, NFTA_SET_ELEM_KEY_END, element + s->key, s->key);
	if (s->verdict)
		put_jump(nlh, (const char *)element + s->key);
	mnl_attr_nest_end(nlh, nest);
}
