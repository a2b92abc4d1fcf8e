/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an earlier daemon may have left behind. */
#pragma once

#include "common/error.h"

/* Kills everything in the scopes below the slice directory @path and waits until systemd has taken
 * them away. -EBUSY names a scope that stays. */
int sweep_slice(const char *path, struct error *e);
