/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of the view that the caller decides, and what is hidden. */
#pragma once

#include "governor/guest/view.h"

/* In the child, still root, in the guest's root, which can still be written to, and before there is
 * a /proc: attaches what was handed over, hides, pins. */
int view_take_handed(const struct view_plan *plan, struct error *e);
