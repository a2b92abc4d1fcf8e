/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What supervisors ask of the daemon, one function per verb of pair.h. */
#pragma once

#include "governor/daemon/run.h"

/* Serves one record of the supervisor's; -EPROTO when it makes no sense. */
int asks_serve(struct run *r, const struct pair_ask *ask);

/* Gives places that became free to the runs that wait. */
void asks_admit_waiting(struct daemon *d);

/* Its time is over: it gets no place. */
void asks_stop_waiting(struct run *r);

/* Each answers with run_reply() or run_refuse(), some of them later. */
void ask_start(struct run *r, const struct pair_ask *ask);
void ask_end(struct run *r, const struct pair_ask *ask);
void ask_next(struct run *r, const struct pair_ask *ask);
void ask_kill(struct run *r, const struct pair_ask *ask);

/* What was to be known before the answer to PAIR_END (run->question) does not come. */
void ask_end_unanswered(struct run *r);
