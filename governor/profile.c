/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/profile.h"

#include <string.h>

const struct profile profiles[PROFILE_COUNT] = {
	[PROFILE_ISOLATED] = { "isolated", "harpe-isolated.slice", true,
			       "a network of the guest's own, with nothing in it but loopback" },
	[PROFILE_DROP] = { "drop", "harpe-drop.slice", false,
			   "the host's network, on which everything that the guest sends is "
			   "dropped, loopback included" },
};

size_t profile_index(const struct profile *p)
{
	return (size_t)(p - profiles);
}

const struct profile *profile_find(const char *name)
{
	for (size_t i = 0; i < PROFILE_COUNT; i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}
