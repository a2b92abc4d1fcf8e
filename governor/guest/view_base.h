/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every guest sees of the host: an allow-list, read-only. The built-in part is where Debian
 * keeps programs and their configuration; [view] of the configuration adds and hides.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define VIEW_PATH_MAX  256
#define VIEW_PATHS_MAX 32
#define VIEW_BASE_MAX  (VIEW_PATHS_MAX + 8)

/* Absolute paths, as the configuration lists them. */
struct view_paths {
	uint32_t n;
	char path[VIEW_PATHS_MAX][VIEW_PATH_MAX];
};

struct view_place {
	char path[VIEW_PATH_MAX];
	char link[64]; /* where it points to when the host has a symbolic link there; "" = bound */
	bool is_directory;
};

struct view_base {
	size_t n_places, n_built_in; /* those come first */
	struct view_place places[VIEW_BASE_MAX];
	struct view_paths hidden;
};

/* Looks at what the host has: of the built-in paths those that are there, of @ro all. */
int view_base_load(const struct view_paths *ro, const struct view_paths *hidden,
		   struct view_base *ret, struct error *e);

/* Is @path at or below one of the places that are bound? */
bool view_base_has(const struct view_base *base, const char *path);

/* The same of the built-in places alone. */
bool view_base_has_built_in(const struct view_base *base, const char *path);

/* The directory of the guest's own that @path would take the place of; NULL when there is none.
 * What is below /tmp and the like may be shown, nothing below /proc and /dev. */
const char *view_own_place(const char *path);

/* The rest of @path when it is at or below @top: "" or "/...". Else NULL. */
const char *view_path_below(const char *path, const char *top);
