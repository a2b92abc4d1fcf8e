/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a supervisor asks of the daemon, over a SOCK_SEQPACKET pair: fixed-size records, so that the
 * daemon parses nothing that a client wrote. One ask, one reply, but for PAIR_NEXT; PAIR_STOP may
 * come at any time.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/report.h"
#include "common/request.h"
#include "governor/guest/caller.h"
#include "governor/guest/spaces.h"

#define PAIR_ROWS 16 /* at once: no more than fit into the pair's buffer */

enum pair_verb {
	/* supervisor -> daemon */
	PAIR_HELLO,   /* ask.caller: who it serves -> PAIR_OK or PAIR_REFUSED */
	PAIR_START,   /* ask.start -> reply.grant: policy, uid, scope */
	PAIR_EXPLAIN, /* ask.start -> reply.explanation; starts nothing */
	PAIR_RELEASE, /* ask.release: all read back; may the guest run? -> PAIR_OK */
	PAIR_END,     /* ask.report -> reply.end, once the scope is gone */
	PAIR_NEXT, /* ask.next -> reply.next, PAIR_ROWS times; PAIR_NONE when there are no more */
	PAIR_KILL, /* ask.target -> reply.count */
	PAIR_WARM, /* of one that prepares a scope for later: it is ready; with the namespaces.
		      No reply */
	/* daemon -> supervisor */
	PAIR_OK,
	PAIR_NONE,    /* to one that waits for a connection: it gets none */
	PAIR_REFUSED, /* reply.refused */
	PAIR_STOP,    /* reply.stop: end the guest for this reason */
};

struct pair_start {
	struct limits limits;
	char name[GUEST_NAME_MAX + 1];
	char command[COMMAND_TEXT_MAX + 1];
	char net[PROFILE_NAME_MAX + 1]; /* the profile asked for; "": the default */
	uint64_t wait_usec;		/* how long to wait for a place; 0 = not at all */
};

struct pair_release {
	pid_t main_pid;
	struct limits in_force; /* as read back, ancestors included */
};

struct pair_grant {
	char id[RUN_ID_LEN + 1];
	char profile[PROFILE_NAME_MAX + 1];
	uint32_t own_network; /* the guest gets a network namespace of its own */
	uint32_t was_warm;    /* the scope waited for a guest, with its cgroups, and namespaces
				 that come as descriptors */
	uint32_t means;	      /* the version of what the daemon prepared (struct guest_means) */
	uint32_t filter;      /* which system call filter: CONFINE_... together */
	uint32_t resolver;    /* it may ask name servers */
	uint32_t uid, caller_uid;
	pid_t holder; /* the process that the scope was made around */
	struct limits limits;
	struct limits made; /* with which systemd made the scope: not less of anything */
	struct limit_origins origins;
	char scope[PATH_TEXT_MAX]; /* the scope's cgroup directory, absolute */
};

struct pair_next {
	uint64_t cursor;		 /* of the last row that came; 0 at first */
	char target[GUEST_NAME_MAX + 1]; /* "" = all */
};

struct pair_end {
	uint64_t drops_uid, drops_slice;
	uint32_t ended; /* the daemon may know better: somebody had stopped the scope */
};

struct pair_ask {
	uint32_t verb;
	union {
		struct caller caller;
		struct pair_start start;
		struct pair_release release;
		struct report report;
		struct pair_next next;
		char target[GUEST_NAME_MAX + 1]; /* "" = all */
		struct error error;		 /* PAIR_WARM: "" when it is ready */
	};
};

struct pair_reply {
	uint32_t verb;
	uint32_t to; /* the verb of the ask that this answers; a late answer is not taken for
			another */
	union {
		struct pair_grant grant;
		struct pair_end end;
		struct explanation explanation;
		struct {
			struct guest_row row;
			uint64_t cursor;
		} next;
		uint64_t count;
		uint32_t stop; /* enum ended */
		struct error refused;
	};
};

/* Sends one record without blocking. */
int pair_send(int fd, const void *record, size_t size);

/* The same with the namespaces that there are. */
int pair_send_with(int fd, const void *record, size_t size, const struct spaces *with);

/* Receives one record of exactly @size. -ECONNRESET at end of file, -EPROTO for another size. */
int pair_receive(int fd, void *record, size_t size);

/* The same with the namespaces that came along; on failure there are none. */
int pair_receive_with(int fd, void *record, size_t size, struct spaces *ret_with);

/* Waits for the reply to an ask of @verb; late replies to others are skipped. -ECANCELED when
 * PAIR_STOP came instead (reply->stop), -ECONNRESET when the daemon is gone, -EACCES when it
 * refused; the sentence says which. *ret_with, on success alone, as for pair_receive_with(); NULL
 * where none are expected. */
int pair_answer(int fd, enum pair_verb verb, struct pair_reply *reply, struct spaces *ret_with,
		struct error *e);

/* Asks, and waits with pair_answer(). */
int pair_call(int fd, const struct pair_ask *ask, struct pair_reply *reply, struct error *e);
