/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which limits and which network a run gets: its own request over the defaults, as far as the
 * caller's access section goes. Pure. */
#pragma once

#include "governor/daemon/access.h"
#include "governor/daemon/profile.h"

/* The network profile @asked, or the default for "". -EINVAL: there is none of that name; -EACCES:
 * the section does not allow it. */
int policy_profile(const struct config *c, const struct access *access, const char *asked,
		   const struct profile **ret, struct error *e);

/* Merges. A request above the ceiling is refused (-EPERM), never lowered: a limit that was asked
 * for and is not in force would be a lie; the sentence says where the ceiling stands. Sizes are
 * rounded down to whole pages, as the kernel would. */
int policy_limits(const struct config *c, const struct access *access, const struct limits *asked,
		  struct limits *ret, struct limit_origins *ret_origins, struct error *e);
