/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options --ro, --rw, --pin and --hide, on their way into a request: the client's side. */
#pragma once

#include "common/request.h"
#include "governor/client/options.h"

/* Fills @view with what @list has; the options' names say what they are. */
int view_request_parse(const struct option_list *list, struct view_item view[VIEW_ITEMS_MAX],
		       struct error *e);

/* Opens what is handed over, as the caller can reach it: one descriptor in @fds for each item that
 * has one, in their order; what was opened stays for the caller to close. Then each of these items
 * has the absolute path of what it names, where that is short enough. */
int view_request_open(struct view_item view[VIEW_ITEMS_MAX], int *fds, struct error *e);

/* Is the directory that the report @path goes to in one of the --rw directories, of which @fds are
 * the descriptors? The guest could put something else in its place. */
int view_request_check_report(const struct view_item view[VIEW_ITEMS_MAX], const int *fds,
			      const char *path, struct error *e);
