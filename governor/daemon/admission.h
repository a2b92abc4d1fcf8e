/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who gets a place, and in which order. See the top of admission.c. */
#pragma once

#include <stdbool.h>

#include "governor/daemon/run.h"

/* May @r have a place now, as far as quota and memory go? 0; -EACCES never; -EINVAL never with this
 * much memory; -EDQUOT, -EUSERS, -ENOBUFS: see admission_is_shortage(). */
int admission_check(const struct run *r, struct error *e);

/* An answer that waiting can change. */
bool admission_is_shortage(int r);

/* Whose turn it is among those who wait and whose own quota allows it; NULL = nobody's. */
struct run *admission_next(const struct daemon *d);
