/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nft/attribute.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

struct nest nest_of(const struct nlattr *attr)
{
	return attr ? (struct nest){ mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr) }
		    : NEST_NULL;
}

const struct nlattr *nest_next(struct nest *rest)
{
	const struct nlattr *attr = rest->data;
	size_t len;

	if (rest->len < sizeof(*attr) || attr->nla_len < sizeof(*attr) || attr->nla_len > rest->len)
		return NULL;
	len = MNL_ALIGN((size_t)attr->nla_len);
	if (len > rest->len)
		len = rest->len;
	*rest = (struct nest){ (const char *)rest->data + len, rest->len - len };
	return attr;
}

static const struct nlattr *find(struct nest n, uint16_t type)
{
	const struct nlattr *attr;

	while ((attr = nest_next(&n)))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

struct nest nest_get(struct nest n, uint16_t type)
{
	return nest_of(find(n, type));
}

bool nest_has(struct nest n, uint16_t type)
{
	return find(n, type) != NULL;
}

static bool get_number(struct nest n, uint16_t type, void *ret, size_t len)
{
	struct nest value = nest_get(n, type);

	if (value.len != len)
		return false;
	memcpy(ret, value.data, len);
	return true;
}

uint8_t nest_u8(struct nest n, uint16_t type, uint8_t otherwise)
{
	uint8_t value;

	return get_number(n, type, &value, sizeof(value)) ? value : otherwise;
}

uint16_t nest_u16(struct nest n, uint16_t type, uint16_t otherwise)
{
	uint16_t value;

	return get_number(n, type, &value, sizeof(value)) ? ntohs(value) : otherwise;
}

uint32_t nest_u32(struct nest n, uint16_t type, uint32_t otherwise)
{
	uint32_t value;

	return get_number(n, type, &value, sizeof(value)) ? ntohl(value) : otherwise;
}

uint64_t nest_u64(struct nest n, uint16_t type, uint64_t otherwise)
{
	uint64_t value;

	return get_number(n, type, &value, sizeof(value)) ? be64toh(value) : otherwise;
}

const char *nest_string(struct nest n, uint16_t type)
{
	struct nest value = nest_get(n, type);
	const char *text = value.data;

	return value.len > 0 && text[value.len - 1] == '\0' ? text : NULL;
}

struct nest nest_value(struct nest n, uint16_t type)
{
	return nest_get(nest_get(n, type), NFTA_DATA_VALUE);
}
