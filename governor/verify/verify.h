/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov verify`: tries every boundary, from inside of guests that are started for it, on this
 * host with this policy. What is tried there is in governor/probe/; what it was aimed at is made
 * here, and here it is judged: by what the probe says it saw, which a guest might make up, together
 * with what arrived or happened outside, which it cannot. What did not report is UNKNOWN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/request.h"
#include "common/verdict.h"

#define VERIFY_SCHEMA	   1
#define VERIFY_CHECKS_MAX  128
#define VERIFY_AIM_MAX	   4096
#define VERIFY_REASON_MAX  160
#define VERIFY_PATH_MAX	   256
#define VERIFY_ADDRESS_MAX 64

/* ---- what a probe says ---- */

#define SAID_LINE_MAX	 512 /* longer ones count as nothing said */
#define SAID_OUTCOME_MAX 24
#define SAID_DETAIL_MAX	 201

struct said {
	char outcome[SAID_OUTCOME_MAX];
	char detail[SAID_DETAIL_MAX];
	unsigned int n; /* lines: more than one of a probe that has one to say counts as none */
};

/* Lines as they come out of a pipe, in any pieces. */
struct said_lines {
	char buf[SAID_LINE_MAX];
	size_t used;
	bool skipping; /* the rest of a line that is too long */
};

/* Takes the bytes in, and calls @take for each whole line, without newline. Bytes that are not
 * printable ASCII or tabs make the line one of nothing. */
typedef void (*said_take)(void *userdata, char *line);
void said_feed(struct said_lines *l, const char *data, size_t size, said_take take, void *userdata);

/* Splits "ID outcome detail" at its tabs, in place. False when it is no such line. */
bool said_split(char *line, const char **ret_id, const char **ret_outcome, const char **ret_detail);

/* The same for one of the @n probes that are called @ids: adds it to @said, which has as many.
 * Returns its index, or -1 when no probe is called so. */
int said_add(char *line, const char *const *ids, size_t n, struct said *said);

/* ---- what is prepared ---- */

enum aim {
	AIM_NONE,
	AIM_OWN,      /* a file in the guest's working directory */
	AIM_LOG,      /* one there that it appends to */
	AIM_HOME,     /* files of 0600 and 0644 in the caller's home */
	AIM_ENV,      /* a .env there */
	AIM_SSH,      /* a key there */
	AIM_OTHER,    /* a file in the working directory of other guests */
	AIM_PLACES,   /* files of 0666 in /tmp, /var/tmp, /dev/shm */
	AIM_LEFT,     /* names for files of the guest's there */
	AIM_PATH,     /* Unix sockets at paths */
	AIM_ABSTRACT, /* one without */
	AIM_VICTIM,   /* the pid of a process of the caller's */
	AIM_SYSV,     /* a key of System V objects */
	AIM_MADE,     /* one for the guest's */
	AIM_MQUEUE,
	AIM_KEY,    /* a serial number */
	AIM_LISTEN, /* a free port */
	AIM_TARGET, /* ADDRESS/PORT of --target */
	AIM_NET,    /* the first of those of the listeners */
	AIM_NET_END = AIM_NET + 12,
	AIM_COUNT
};

/* A socket on all addresses of the host. */
struct listener {
	int fd;
	int type;
	uint16_t port;
	bool able;	    /* it has heard what this program sent */
	unsigned int heard; /* from others */
};

#define VERIFY_LISTENERS (AIM_NET_END - AIM_NET)

struct prepared {
	char aim[AIM_COUNT][VERIFY_AIM_MAX];
	char why_not[AIM_COUNT][VERIFY_REASON_MAX]; /* "" = it is there */
	char work[VERIFY_PATH_MAX], other[VERIFY_PATH_MAX], home[VERIFY_PATH_MAX];
	char nonce[24];
	struct listener listener[VERIFY_LISTENERS];
	char target[VERIFY_ADDRESS_MAX]; /* "" = none */
	int unix_fd[3];			 /* at two paths and abstract */
	unsigned int unix_heard[3];
	pid_t victim;
	int victim_fd; /* readable when it was signalled */
	int shm, msg, sem;
	int key;
};

/* Makes everything; what cannot be made has a reason in why_not. */
int prepare(struct prepared *p, const char *target, struct error *e);

/* Removes everything. */
void prepare_undo(struct prepared *p);

/* The network's part: listeners that have proved to hear, and addresses. */
void prepare_network(struct prepared *p);

/* Takes what has arrived. Never waits. */
void prepared_hear(struct prepared *p);

bool victim_was_signalled(const struct prepared *p);

/* ---- guests ---- */

enum verify_run {
	RUN_MAIN, /* everything that ends by itself */
	RUN_WALL,
	RUN_CPU_TIME,
	RUN_CPU,
	RUN_MEMORY,
	RUN_PIDS,
	RUN_TREE,
	VERIFY_RUNS
};

struct guest_run {
	pid_t client;	    /* 0 = none, or it has ended */
	int in, out;	    /* pipes, -1 = closed */
	int report, errors; /* memfds */
	int status;	    /* of waitpid(2) */
	struct said_lines lines;
	bool ready, over, ended; /* the probe is; the client has ended */
	bool lingered;		 /* something kept the pipe after the client had ended */
	uint64_t ready_usec, begun_usec, ended_usec;
	struct guest_row row; /* id "" = not known */
	uint64_t group;	      /* the inode of its guest/, 0 = not known */

	/* from the report */
	char ended_by[32];			    /* "" = no report */
	int64_t drops_uid, drops_slice, unroutable; /* -1 = not known */
};

struct verify;

/* What was found. */
struct judgement {
	enum verdict verdict;
	char seen[2 * SAID_DETAIL_MAX];
};

struct verify_check {
	const char *id;	   /* of the probe, unless there is none */
	const char *tried; /* for people */
	enum verify_run run;
	enum aim aim;
	void (*judge)(const struct verify *v, const struct verify_check *c, const struct said *s,
		      struct judgement *j);
	bool no_probe; /* it is looked at from outside alone */
};

struct verify_area {
	const char *boundary;
	const struct verify_check *checks; /* ends with an id of NULL */
};
extern const struct verify_area verify_areas[];
extern const size_t verify_n_areas;

struct verify {
	const char *socket;
	const char *net;     /* NULL until it is known which profile the policy gives */
	bool has_allowances; /* the profile is one of the administrator's */
	bool progress;
	struct prepared prepared;
	struct guest_run runs[VERIFY_RUNS];
	const struct verify_check *checks[VERIFY_CHECKS_MAX];
	const char *ids[VERIFY_CHECKS_MAX];
	struct said said[VERIFY_CHECKS_MAX];
	struct judgement judgements[VERIFY_CHECKS_MAX];
	size_t n;

	/* seen from outside */
	char environment[VERIFY_REASON_MAX]; /* what the guest was given */
	bool log_written, made_shared, left_shared, listener_answered;
	char limits[VERIFY_REASON_MAX]; /* what is not in force of the main guest's; "" = nothing */
	bool limits_known;
	uint64_t cpu_used_usec, cpu_wall_usec; /* of RUN_CPU; 0 = not measured */
	char left[VERIFY_REASON_MAX];	       /* what is left of the main guest */
};

/* Fills v->checks: without those for whose packets there is no address, as those for --target. */
void verify_choose(struct verify *v);

/* Starts all guests and hears them to their end, or until the time is over. -EINTR: a signal. */
int verify_run_all(struct verify *v, struct error *e);

/* Fills v->judgements. */
void verify_judge(struct verify *v);

/* The exit status. */
int verify_status(const struct verify *v);
enum verdict verify_worst(const struct verify *v);

const char *verify_boundary(const struct verify_check *c);

void verify_print(const struct verify *v, FILE *to);
int verify_print_json(const struct verify *v, FILE *to);
void verify_list(FILE *to);
