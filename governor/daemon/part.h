/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a profile's slice. Whenever a unit comes or goes systemd goes through all siblings
 * of it and of the slices above (systemd's unit_add_family_to_cgroup_realize_queue()), so what a
 * scope costs grows with how many lie beside it. Therefore at most so many lie in one slice: the
 * first in that of the profile itself, which is part 0, and when that is full the next in child
 * slices of it, harpe-PROFILE-1.slice and so on, each of which is filled before another is begun.
 * Pure.
 */
#pragma once

#include <stdint.h>

#include "common/request.h"

/* Siblings of a scope, and of the slice that it is in: n + n + guests / n is least at the root of
 * half the guests, which is 22 for a thousand of them and 32 for two. */
#define PART_SCOPES   32
#define PARTS_MAX     64 /* what is more than all of them hold is in the last one */
#define PART_UNIT_MAX (PROFILE_NAME_MAX + 20)

/* How many of its parts a profile can need in a pool of @uids, which have a scope each. */
unsigned int part_count(uint32_t uids);

/* The first of @n_parts that is not full, of which @n_scopes says how many scopes lie in each. */
unsigned int part_with_room(const uint32_t n_scopes[], unsigned int n_parts);

/* The unit of @part of @profile's slice. Returns @buf. */
const char *part_unit(const char *profile, unsigned int part, char buf[PART_UNIT_MAX]);

/* Its cgroup directory, where @slice is that of the profile's slice. */
void part_path(const char *slice, const char *profile, unsigned int part, char buf[PATH_TEXT_MAX]);
