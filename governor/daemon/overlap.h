/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does the pool belong to somebody else? Reads the local files only: name services may not be there
 * while the daemon starts, and must not decide whether it does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

enum overlap_kind {
	OVERLAP_PASSWD, /* passwd(5): uid and gid */
	OVERLAP_GROUP,	/* group(5): gid */
	OVERLAP_SUBID,	/* subuid(5), subgid(5): ranges */
};

/* -EADDRINUSE with a sentence that names the line when a uid from @first on belongs to an account,
 * a group or a container; 0 when none does. */
int overlap_check_file(FILE *file, const char *path, enum overlap_kind kind, uint32_t first,
		       uint32_t count, struct error *e);

/* The ranges that systemd hands out itself (its UIDS-GIDS document). */
int overlap_check_ranges(uint32_t first, uint32_t count, struct error *e);

/* All of /etc/passwd, group, subuid, subgid, and systemd's ranges. */
int overlap_check(uint32_t first, uint32_t count, struct error *e);

/* Is @uid one that subuid(5) lends, and itself no account? Also when that cannot be read. */
bool overlap_is_lent(uint32_t uid);
