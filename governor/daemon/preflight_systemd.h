/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is systemd to be talked to, and does it give the guests' slices what they need? Every question
 * has a time limit: a stopped broker or a frozen PID 1 accepts connections and never answers.
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"

#define PREFLIGHT_SYSTEMD_SEC 3 /* for all questions together */

/* Asks the system bus, then PID 1, then for DisableControllers= of the slices from the root down.
 */
int preflight_systemd(struct error *e);

/* Does a unit file with this @text have @controller in DisableControllers=? */
bool preflight_disables(const char *text, const char *controller);
