/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run report, schema 1: why a run ended and what it used. Documented in harpe-gov-report(7).
 *
 * Every number that the kernel could not give is REPORT_UNKNOWN and prints as null, never as 0.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/limits.h"
#include "common/request.h"
#include "common/wire.h"

#define REPORT_SCHEMA  1
#define REPORT_UNKNOWN (UINT64_MAX - 2) /* no counter gets there, and no limit is called so */

#define REPORT_RAN_UNKNOWN 2 /* guest_ran, when the supervisor was lost; prints as null */

/* Why a run ended: exactly one. Taken from kernel counters and from what the governor itself did,
 * never guessed from an exit status. */
enum ended {
	ENDED_EXITED,	    /* the first process ended by itself: exit_code */
	ENDED_SIGNALED,	    /* killed by a signal that the governor did not send: signal */
	ENDED_MEMORY,	    /* memory limit: the kernel killed the guest */
	ENDED_CPU_TIME,	    /* --cpu-time */
	ENDED_WALL_CLOCK,   /* --time */
	ENDED_KILLED,	    /* `harpe-gov kill`, or the scope was stopped */
	ENDED_CALLER_GONE,  /* the client died or closed the connection */
	ENDED_POLICY_LOST,  /* the firewall was not as committed while the guest ran */
	ENDED_SETUP_FAILED, /* the guest never ran; error says why */
	ENDED_GOVERNOR_STOPPED,
	ENDED_GOVERNOR_LOST, /* the daemon or the supervisor died */
	ENDED_UNKILLABLE,    /* processes did not go away after SIGKILL */
	ENDED_COUNT,
};

extern const char *const ended_names[ENDED_COUNT];

struct report {
	char id[RUN_ID_LEN + 1];
	char name[GUEST_NAME_MAX + 1];
	char command[COMMAND_TEXT_MAX + 1];
	char profile[PROFILE_NAME_MAX + 1];
	char scope[RUN_ID_LEN + sizeof("harpe-.scope")]; /* called after its first guest's id */
	uint32_t ended;					 /* enum ended */
	uint32_t guest_ran; /* 1 once execve(2) of the command succeeded, or REPORT_RAN_UNKNOWN */
	uint64_t exit_code, signal;
	uint64_t uid, caller_uid;
	uint64_t started_usec; /* CLOCK_REALTIME, of the release */
	uint64_t wall_usec;
	uint64_t cpu_usec, cpu_user_usec, cpu_system_usec, throttled_usec; /* cpu.stat */
	uint64_t memory_peak;	    /* memory.peak, page cache included */
	uint64_t memory_oom_kills;  /* memory.events, oom_kill: by whatever limit, or the host's */
	uint64_t memory_limit_hits; /* memory.events.local, oom: of the guest's own limit */
	uint64_t swap_peak;	    /* memory.swap.peak */
	uint64_t memory_anon, memory_shmem, memory_cache; /* the largest seen: sample.h */
	uint64_t io_read, io_written;	 /* io.stat, bytes, the sum over all disks */
	uint64_t pids_peak;		 /* pids.peak */
	uint64_t pids_refused;		 /* pids.events, max: forks refused */
	uint64_t left_processes;	 /* alive when the first process had ended, and killed */
	uint64_t drops_uid, drops_slice; /* packets, per layer */
	uint64_t unroutable;  /* of a network of its own: packets and connections to elsewhere */
	struct limits limits; /* in force: the smallest on the way up to the root */
	struct limits asked;  /* by the request or by default */
	struct limit_origins origins; /* of what is in force */
	char error[ERROR_TEXT_MAX];   /* "" = none */
};

extern const struct wire_field report_fields[];
extern const size_t report_n_fields;

/* All unknown or empty, ended is ENDED_GOVERNOR_LOST and guest_ran 0. */
void report_clear(struct report *r);

/* The JSON text with a trailing newline; to be freed. NULL when out of memory. */
char *report_json(const struct report *r);

/* Hands every member that is known to @take, one by one: the name is the members' names on the way
 * down, in upper case and joined by "_", such as MEMORY_PEAK_BYTES; the text is as in JSON, without
 * quotes. -ENOMEM. */
typedef void (*report_take)(void *userdata, const char *name, const char *text);
int report_flat(const struct report *r, report_take take, void *userdata);

/* An object with a member per limit: a number, "max" or null. NULL when out of memory. */
json_t *limits_json(const struct limits *limits);

/* The one line for people, without "harpe-gov: " and newline: @buf. NULL when the reason is that
 * the program ended, and nothing is wrong with that. */
const char *report_sentence(const struct report *r, char *buf, size_t size);

/* The exit status of `harpe-gov run`: the guest's own code, 124 when a limit ended it, 125 when the
 * governor failed, or -signal when the client must die of the same signal. 126 and 127 come as
 * exit_code of ENDED_SETUP_FAILED. A guest that was killed on request (ENDED_KILLED,
 * ENDED_CALLER_GONE) is -SIGKILL: what a shell, Python or systemd sees of any killed program. */
int report_exit_status(const struct report *r);
