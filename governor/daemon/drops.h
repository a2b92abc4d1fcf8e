/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the firewall has dropped of a run: its counters of the uid and of the scope only grow, so
 * that a run's own are what was added since it began. */
#pragma once

#include "governor/daemon/run.h"

/* Notes where the counters stand, before the release. A new scope has none yet. */
void drops_begin(struct run *r);

/* When its scope is gone, becomes another guest's or is given up: the report's drops_uid and
 * drops_slice, which stay as they are where that cannot be read. What the kernel still sends of
 * sockets without an owner is in it as far as it came before. */
void drops_count(struct run *r);

/* The table is about to be replaced; drops_begin_anew() says that it was, and with it its counters:
 * what they had said until then counts for the runs there are. */
void drops_look(struct daemon *d);
void drops_begin_anew(struct daemon *d);
