/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon prepared once for all guests, in a file in memory that its supervisors map: they
 * are programs of their own, and what all of them need is there once.
 */
#pragma once

#include "governor/supervisor/guest.h"

/* Half an upgrade may have put programs together that do not understand each other: a text that
 * both must have in common, of the version and of the sizes of what they exchange. */
#define MEANS_BUILD_MAX 64
const char *means_build(void);

/* Writes it into a new memfd, sealed against changes (memfd_create(2)), without the ground. Returns
 * the descriptor. */
int means_store(const struct guest_means *means, struct error *e);

/* Maps what means_store() wrote, for good; the ground of @ret stays as it is. -EPROTO for another
 * file. */
int means_map(int fd, struct guest_means *ret, struct error *e);
