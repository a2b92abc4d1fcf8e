/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idmapped mounts: what belongs to one user on disk belongs to another in this mount
 * (mount_setattr(2), MOUNT_ATTR_IDMAP). Everybody else's files belong to nobody in it: they can
 * neither be made nor written to.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct id_pair {
	uint32_t uid, gid;
};

/* Maps the detached mount @tree: @disk is seen as @guest. -EOPNOTSUPP: the file system cannot. */
int idmap_mount(int tree, const struct id_pair *disk, const struct id_pair *guest, struct error *e);
