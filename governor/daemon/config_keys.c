/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "common/fd.h"

#define UID_FLOOR      65536u /* all below is somebody's: accounts, nobody, systemd's dynamic users */
#define POOL_MAX       65536u
#define PER_CALLER_MAX 65536u
#define WARM_MAX       256u

#define LIMIT_KEY(limit_name, limit_index, type, member)                                           \
	{                                                                                          \
		.name = (limit_name), .kind = KEY_LIMIT, .limit = (limit_index),                   \
		.offset = offsetof(type, member.value) + (limit_index) * sizeof(uint64_t)          \
	}

#define LIMIT_KEYS(type, member)                                                                   \
	LIMIT_KEY("memory", LIMIT_MEMORY, type, member),                                           \
		LIMIT_KEY("swap", LIMIT_SWAP, type, member),                                       \
		LIMIT_KEY("cpu", LIMIT_CPU, type, member),                                         \
		LIMIT_KEY("pids", LIMIT_PIDS, type, member),                                       \
		LIMIT_KEY("time", LIMIT_TIME, type, member),                                       \
		LIMIT_KEY("cpu-time", LIMIT_CPU_TIME, type, member),                               \
		LIMIT_KEY("io-weight", LIMIT_IO_WEIGHT, type, member),                             \
		LIMIT_KEY("io-read", LIMIT_IO_READ, type, member),                                 \
		LIMIT_KEY("io-write", LIMIT_IO_WRITE, type, member)

#define MEMBERS_KEY(key_name, member)                                                              \
	{                                                                                          \
		.name = (key_name), .kind = KEY_MEMBERS,                                           \
		.offset = offsetof(struct access, member), .named_only = true                      \
	}

static const char *const no_yes[] = { "no", "yes", NULL };

static const struct key pool_keys[] = {
	{ .name = "first-uid",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct config, first_uid),
	  .min = UID_FLOOR,
	  .max = UID_CEILING },
	{ .name = "count",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct config, uid_count),
	  .min = 1,
	  .max = POOL_MAX },
	{ .name = "memory",
	  .kind = KEY_SIZE,
	  .offset = offsetof(struct config, pool_memory),
	  .min = MEMORY_MIN }, /* with less none could start */
	{ .name = "warm",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct config, warm),
	  .min = 0,
	  .max = WARM_MAX },
	{ .name = "recycle",
	  .kind = KEY_CHOICE,
	  .offset = offsetof(struct config, recycle),
	  .choices = no_yes },
};
static const struct key default_keys[] = {
	LIMIT_KEYS(struct config, defaults),
	{ .name = "net", .kind = KEY_PROFILE, .offset = offsetof(struct config, net) },
};
static const struct key ceiling_keys[] = { LIMIT_KEYS(struct config, ceiling) };
static const struct key view_keys[] = {
	{ .name = "ro", .kind = KEY_PATHS, .offset = offsetof(struct config, view_ro) },
	{ .name = "hide", .kind = KEY_PATHS, .offset = offsetof(struct config, view_hide) },
};
static const struct key access_keys[] = {
	{ .name = "max-guests",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct access, max_guests),
	  .min = 0,
	  .max = PER_CALLER_MAX },
	{ .name = "max-connections",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct access, max_connections),
	  .min = 1,
	  .max = PER_CALLER_MAX },
	LIMIT_KEYS(struct access, ceiling),
	{ .name = "profiles", .kind = KEY_PROFILES, .offset = offsetof(struct access, profiles) },
	MEMBERS_KEY("users", users),
	MEMBERS_KEY("groups", groups),
};

static const char *const denials[] = {
	[FIREWALL_DROP] = "drop", [FIREWALL_REJECT] = "reject", NULL
};

static const struct key profile_keys[] = {
	{ .name = "allow", .kind = KEY_ALLOW, .offset = 0 },
	{ .name = "on-deny",
	  .kind = KEY_CHOICE,
	  .offset = offsetof(struct profile, on_deny),
	  .choices = denials },
	{ .name = "log",
	  .kind = KEY_CHOICE,
	  .offset = offsetof(struct profile, log),
	  .choices = no_yes },
	{ .name = "log-group",
	  .kind = KEY_NUMBER,
	  .offset = offsetof(struct profile, log_group),
	  .min = 0,
	  .max = UINT16_MAX },
	{ .name = "user-namespaces",
	  .kind = KEY_CHOICE,
	  .offset = offsetof(struct profile, user_namespaces),
	  .choices = no_yes },
};

static const struct section sections[] = {
	[SLOT_POOL] = { "pool", pool_keys, ARRAY_SIZE(pool_keys) },
	[SLOT_DEFAULTS] = { "defaults", default_keys, ARRAY_SIZE(default_keys) },
	[SLOT_CEILING] = { "ceiling", ceiling_keys, ARRAY_SIZE(ceiling_keys) },
	[SLOT_VIEW] = { "view", view_keys, ARRAY_SIZE(view_keys) },
	[SLOT_ACCESS] = { "access", access_keys, ARRAY_SIZE(access_keys) },
};
static const struct section profile_section = { "profile", profile_keys, ARRAY_SIZE(profile_keys) };

_Static_assert(SLOT_ACCESS == CONFIG_PLAIN_SECTIONS, "the sections in front of \"access\"");
_Static_assert(ARRAY_SIZE(access_keys) <= CONFIG_KEYS_MAX, "each key has an origin");

const struct section *config_section(uint32_t slot)
{
	if (slot >= SLOT_PROFILE)
		return &profile_section;
	return &sections[slot < SLOT_ACCESS ? slot : SLOT_ACCESS];
}

const struct origin *config_origin(const struct config *c, uint32_t slot, const char *key)
{
	const struct section *section = config_section(slot);
	size_t i = 0;

	while (strcmp(section->keys[i].name, key) != 0)
		i++;
	return &c->origin[slot][i];
}

void *config_base(struct config *c, uint32_t slot)
{
	if (slot >= SLOT_PROFILE)
		return &c->profiles[slot - SLOT_PROFILE];
	return slot < SLOT_ACCESS ? (void *)c : &c->access[slot - SLOT_ACCESS];
}

const char *config_title(struct config *c, uint32_t slot, char buf[TITLE_MAX])
{
	const char *name = "";

	if (slot >= SLOT_PROFILE)
		name = c->profiles[slot - SLOT_PROFILE].name;
	else if (slot > SLOT_ACCESS)
		name = c->access[slot - SLOT_ACCESS].name;
	snprintf(buf, TITLE_MAX, "%s%s%s", config_section(slot)->name, name[0] ? " " : "", name);
	return buf;
}
