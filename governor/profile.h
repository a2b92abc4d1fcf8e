/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Network profiles: what of the network a guest has. Each has a slice of its own below harpe.slice,
 * by which systemd's address rules and the firewall tell its guests apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/request.h"

struct profile {
	char name[PROFILE_NAME_MAX + 1];
	char slice[PROFILE_NAME_MAX + 16]; /* its unit */
	bool own_network;		   /* its guests have a network namespace each */
	const char *in_effect;		   /* for people: what a guest can reach, one sentence */
};

/* The built-in ones. */
enum { PROFILE_ISOLATED, PROFILE_DROP, PROFILE_COUNT };
extern const struct profile profiles[PROFILE_COUNT];

/* Its place in profiles[]. */
size_t profile_index(const struct profile *p);

/* NULL: there is none of that name. */
const struct profile *profile_find(const char *name);
