/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the file that runs verify's guests and the one that looks at them from outside. */
#pragma once

#include "governor/verify/verify.h"

#define GUEST_NAME_SIZE 48

/* The name that it has in `ps`. */
void guest_name(const struct verify *v, enum verify_run run, char name[GUEST_NAME_SIZE]);

/* While it lives: asks the daemon for its row, which stays empty when there is no answer in time.
 */
void look_for_row(struct verify *v, enum verify_run run);

/* While the main one lives, with all that it has made: limits, and what of it the host sees. */
void look_at_main(struct verify *v);

/* Called all the time: measures how much CPU time RUN_CPU gets in a second, then kills it. */
void measure_cpu(struct verify *v);

/* When the client of the main one has ended; at once, since later its uid may be another guest's.
 */
void look_for_processes(struct verify *v);

/* At the end of all. */
void look_for_group(struct verify *v);
void look_at_log(struct verify *v);
