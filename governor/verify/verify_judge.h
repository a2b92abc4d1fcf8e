/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rows of the table judge by. */
#pragma once

#include "governor/verify/verify.h"

void judge_set(struct judgement *j, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Is that the outcome? Is it an errno, or something that did not come to pass? */
bool said_is(const struct said *s, const char *outcome);
bool said_is_error(const struct said *s);

/* With what the probe said as what was seen. */
void judge_said(struct judgement *j, enum verdict verdict, const struct said *s);

typedef void judge_fn(const struct verify *v, const struct verify_check *c, const struct said *s,
		      struct judgement *j);

/* By what the probe says alone. */
judge_fn judge_denied;	/* whatever was tried: an error, or it did not come to pass */
judge_fn judge_refused; /* EPERM and nothing else: of the filter of system calls */
judge_fn judge_absent;	/* ENOSYS and nothing else */
judge_fn judge_done;	/* it must work */

/* As judge_refused(), but a profile of the administrator's may allow it. */
judge_fn judge_may_refuse;

/* By what arrived. */
judge_fn judge_arrival, judge_listen, judge_doors, judge_abstract, judge_target, judge_table,
	judge_join6, judge_dns, judge_resolver;

/* By what happened. */
judge_fn judge_calculation, judge_log, judge_left, judge_nosuid, judge_sysv_made, judge_signal,
	judge_signal_all, judge_foreign_call, judge_leftovers;

/* Who the guest is. */
judge_fn judge_ids, judge_groups, judge_zeros, judge_no_new_privs, judge_filter, judge_personality,
	judge_descriptors, judge_environment;

/* Limits. */
judge_fn judge_in_force, judge_wall_clock, judge_cpu_time, judge_cpu, judge_memory, judge_pids,
	judge_tree;
