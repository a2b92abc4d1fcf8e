/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One connection as the daemon sees it: the supervisor that serves it and, once that asked for a
 * guest, the guest's uid and scope. Shared by runs.c (how connections come and go) and asks*.c
 * (what supervisors ask).
 */
#pragma once

#include "governor/daemon/daemon.h"
#include "governor/daemon/holder.h"
#include "governor/guest/caller.h"
#include "governor/supervisor/deadline.h"

#define REQUEST_USEC ((DEADLINE_SEC + 1) * USEC_PER_SEC) /* for a supervisor to look at one */
#define SETUP_USEC   (60 * USEC_PER_SEC) /* for the scope, then again until PAIR_RELEASE */
#define SCOPE_USEC   (10 * USEC_PER_SEC) /* for systemd to take an empty scope away */
#define LATE_USEC    USEC_PER_SEC	 /* for a supervisor that was told that its time is over */

enum run_state {
	RUN_CONNECTED, /* the supervisor has asked for no guest */
	RUN_WAITING,   /* for a place: a uid, memory, the caller's quota */
	RUN_STARTING,  /* uid leased, systemd makes the scope */
	RUN_PREPARING, /* the supervisor builds the guest */
	RUN_WARM,      /* no guest's yet: prepared for the next one that it fits (slots.h) */
	RUN_RUNNING,
	RUN_ENDING, /* the guest is dead, systemd takes the scope away */
	RUN_STUCK,  /* systemd did not, or the supervisor is dead: nobody is told any more */
	RUN_OVER,   /* nothing is left of the guest; the supervisor reports and goes */
};

struct run {
	struct daemon *d;
	struct run *next, *previous;
	enum run_state state;

	/* What is asked of all runs lies in the first lines of each: there may be thousands. */
	bool slot;		     /* made before there is a connection; see slots.h */
	bool has_scope;		     /* and the lease of uid with it */
	unsigned int part;	     /* of the slice, in which the scope is */
	struct profile_slice *slice; /* from PAIR_START on, as the limits */
	struct limits limits;

	uint64_t serial;
	pid_t supervisor; /* 0 once reaped */
	int pair;
	sd_event_source *io, *child, *timer;
	struct caller caller;

	/* from PAIR_START on */
	struct pair_start asked;
	struct limits made; /* with which systemd makes the scope: @limits, or more (a slot's) */
	struct limit_origins origins;
	char id[RUN_ID_LEN + 1];
	char scope[SCOPE_NAME_MAX];
	char path[PATH_TEXT_MAX]; /* the scope's cgroup directory */
	uint64_t scope_id;	  /* its cgroup id */
	uint32_t uid;
	struct holder holder;
	struct spaces spaces; /* made for the guest */
	bool was_warm;	      /* it was a slot's */
	bool served;	      /* and a guest has been in it */
	uint64_t born_usec;   /* when it was asked for, CLOCK_MONOTONIC */
	uint32_t epoch;	      /* daemon->slot_epoch then */
	bool job;	      /* systemd has not answered yet */
	bool silent;	      /* nor will it soon */
	bool late;   /* the supervisor was told that its time is over: a second one is left; of a
			slot: it is nobody's any more and goes */
	bool killed; /* the supervisor is, by us: what it had still to say does not count */

	/* from PAIR_RELEASE on */
	pid_t main_pid;
	struct limits in_force;
	uint64_t started_usec;
	uint64_t drops_before;		  /* what the uid had when the run began */
	uint64_t strays_before;		  /* the same of the scope */
	uint64_t drops_kept, strays_kept; /* of this run, from before the table was replaced */
	uint64_t drops_seen, strays_seen; /* what that will be once it is */

	/* from PAIR_END on */
	struct report report;
	sd_bus_slot *question; /* to systemd: is the scope being stopped? */
	bool journaled, given_up;
};

/* The supervisor's time for the next step; when it is over the supervisor is told, then killed. */
void run_set_timer(struct run *r, uint64_t usec);

/* A new one, at the end of the list; NULL when out of memory. */
struct run *run_new(struct daemon *d);

/* Has @start make the process that does its work, with the other end of the pair: its id or a
 * negative errno. @on_record is called for what comes from there, its last word before its end.
 * On failure there is no process. */
int run_start(struct run *r, pid_t (*start)(struct run *r, int pair),
	      sd_event_io_handler_t on_record);

/* Takes it out of the list; nothing of a guest may be left. */
void run_free(struct run *r);

/* Its supervisor is dead, or as good as: what that would have done is done here. */
void run_lose(struct run *r);

/* Answers what the supervisor asked by @to, with namespaces or without; one that does not read its
 * answers is killed. */
void run_reply(struct run *r, enum pair_verb to, struct pair_reply *m);
void run_reply_with(struct run *r, enum pair_verb to, struct pair_reply *m,
		    const struct spaces *with);
void run_refuse(struct run *r, enum pair_verb to, const struct error *e);

/* What the daemon itself knows of a run whose supervisor tells nothing. */
void run_describe(const struct run *r, struct report *report);

/* Writes that down for a later daemon, should this one die. */
void run_note(const struct run *r);

/* Tells the supervisor to end its guest. */
void run_stop(struct run *r, enum ended reason);

/* Is there a guest, or something left of one? */
bool run_is_guest(const struct run *r);

/* How many others the same uid has: connections, or only those that are guests. */
uint32_t run_count_of_caller(const struct run *self, bool guests_only);

/* Has it @n others, or more? */
bool run_caller_has(const struct run *self, bool guests_only, uint32_t n);

bool run_scope_is_gone(const struct run *r);

/* The last of the guest is gone: its uid goes back, the supervisor gets its counters. Frees @r when
 * the supervisor is gone too. */
void run_finish(struct run *r);

/* The same before systemd has said what becomes of the scope, in which nothing ran: the supervisor
 * need not wait for that, the uid does. */
void run_end_early(struct run *r);

/* -ETIMEDOUT, with the sentence for a supervisor that is late. */
int run_too_late(struct error *e);
