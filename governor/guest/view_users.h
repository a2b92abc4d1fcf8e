/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's own /etc/passwd and /etc/group: libraries want a name for their uid. */
#pragma once

#include <stdint.h>

#include "common/error.h"

/* In the child, in the root that is being built, before it is the root: puts files with root,
 * nobody and @uid in the place of the host's. */
int view_users_show(uint32_t uid, struct error *e);
