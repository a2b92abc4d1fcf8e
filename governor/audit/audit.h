/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov audit`: is what must be in force in force? Everything is read anew from the kernel,
 * from systemd and from files; the daemon is asked for one thing only, which guests there are.
 *
 * A check says PASS only for what it has read: one that found nothing to say is UNKNOWN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/verdict.h"
#include "governor/client/rows.h"
#include "governor/daemon/daemon.h"
#include "nft/firewall.h"
#include "nft/foreign.h"

#define AUDIT_SCHEMA	1
#define AUDIT_SAID_MAX	12 /* sentences of a check that are kept */
#define AUDIT_NAME_MAX	64
#define AUDIT_GROUP_MAX 256

/* What a check found. */
struct finding {
	enum verdict result; /* the worst of what was said */
	size_t n;	     /* sentences, of which the first AUDIT_SAID_MAX are kept */
	struct error said[AUDIT_SAID_MAX];
};

/* One sentence more. */
void finding_add(struct finding *f, enum verdict result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What counts in the end: VERDICT_UNKNOWN when nothing was said. */
enum verdict finding_result(const struct finding *f);

struct audit;
struct stat;

struct audit_check {
	const char *id; /* stable: never used again for something else */
	const char *title, *looks_at, *why, *mend;
	void (*look)(const struct audit *a, struct finding *f);
};

/* The areas; each table ends with an id of NULL. */
extern const struct audit_check audit_firewall_checks[];
extern const struct audit_check audit_foreign_checks[];
extern const struct audit_check audit_bpf_checks[];
extern const struct audit_check audit_guest_checks[];
extern const struct audit_check audit_leftover_checks[];
extern const struct audit_check audit_pool_checks[];
extern const struct audit_check audit_door_checks[];
extern const struct audit_check audit_system_checks[];

extern const struct audit_check audit_canary_checks[]; /* these send packets */

/* All of them, those of the canary last. */
extern const struct audit_check *const audit_areas[];
extern const size_t audit_n_areas;

/* How many there are in the first @n_areas. */
size_t audit_n_checks(size_t n_areas);

/* ---- the facts ---- */

/* A process with a uid of the pool, or in a cgroup below harpe.slice. */
struct audit_process {
	pid_t pid;
	char name[AUDIT_NAME_MAX];
	char group[AUDIT_GROUP_MAX]; /* its cgroup; "" = not known */
	uint32_t uid[4];	     /* real, effective, saved, of the file system */
	bool no_new_privs, filtered; /* by seccomp */
	uint64_t capabilities;	     /* all sets together */
};

/* How a reading went: 0, or a negative errno with a sentence. */
struct audit_outcome {
	int r;
	struct error e;
};

struct audit {
	struct daemon wanted; /* configuration, slices and the firewall's policy; no daemon */
	struct audit_outcome config, policy, firewall, others, rows, processes;
	struct firewall_survey survey;
	struct foreign foreign;	   /* all tables, in the survey's generation */
	struct rows before, after; /* guests, as the daemon has them: around all that is read */
	pid_t daemon;		   /* 0 = none serves */
	struct audit_process *process;
	size_t n_processes;
};

/* Reads all that more than one check looks at. */
void audit_gather(struct audit *a);
void audit_release(struct audit *a);

/* Does @uid belong to the pool? Needs a->config. */
bool audit_is_pool_uid(const struct audit *a, uint32_t uid);

/* Does one of the four? */
bool audit_has_pool_uid(const struct audit *a, const struct audit_process *p);

/* Calls @f for every guest that ran all the time; how many there were. */
typedef void (*audit_each_guest)(const struct audit *a, const struct guest_row *row,
				 struct finding *f);
size_t audit_guests(const struct audit *a, audit_each_guest each, struct finding *f);

/* The same for a check that is about live guests alone: says how many there are, or why nobody
 * knows. */
void audit_say_guests(const struct audit *a, audit_each_guest each, struct finding *f);

/* Is the guest still running? What was found in one that ends meanwhile counts for nothing. */
bool audit_guest_runs(const struct guest_row *row);

/* A bounded walk through directories in which others may write. What cannot be looked at is said as
 * VERDICT_UNKNOWN. */
struct audit_walk {
	const struct audit *a;
	struct finding *f;
	/* Called for everything below, directories included. */
	void (*found)(struct audit_walk *w, const char *path, const struct stat *st);
	size_t n, max;	 /* files looked at so far, and at most */
	size_t n_chosen; /* for @found to count in */
};

/* Goes through @path, which need not be there. */
void audit_walk(struct audit_walk *w, const char *path);

/* ---- the pure parts ---- */

/* /proc/PID/status into all of @ret but its cgroup. -EINVAL when a line is missing. */
int audit_parse_status(const char *text, struct audit_process *ret);

/* "/harpe.slice/harpe-PROFILE.slice[/harpe-PROFILE-N.slice]/harpe-ID.scope/guest": true when @group
 * is it or below it, and @ret_id has the ID. */
#define AUDIT_ID_MAX 64
bool audit_parse_group(const char *group, char ret_id[AUDIT_ID_MAX]);

/* The owner and the creator of an object, from a line of /proc/sysvipc/shm, sem or msg (@kind 0, 1,
 * 2); false for the headline. */
bool audit_ipc_uids(const char *line, size_t kind, uint32_t *ret_uid, uint32_t *ret_creator);

/* A line of /proc/net/unix: the name of an abstract socket that others may connect to or send to,
 * "" = none. */
#define AUDIT_SOCKET_MAX 128
void audit_abstract_name(const char *line, char ret[AUDIT_SOCKET_MAX]);

/* The inode of the netlink socket with that port in /proc/net/netlink; 0 = none. */
uint64_t audit_netlink_inode(FILE *file, uint32_t port);

/* ---- printing ---- */

struct audit_report {
	size_t n_areas;			/* that were looked at: the first of audit_areas */
	const struct finding *findings; /* one for each check of theirs */
	uint32_t generation;		/* of the ruleset */
	bool has_generation;
};

/* The exit status. */
int audit_status(const struct finding *findings, size_t n);
enum verdict audit_worst(const struct finding *findings, size_t n);

/* For people: what did not pass, with all that is known of it; what passed, a line each. */
void audit_print(const struct audit_report *report, FILE *to);

/* One JSON object, harpe-gov-audit(7). 0 or -ENOMEM. */
int audit_print_json(const struct audit_report *report, FILE *to);

/* The whole of it, with @canary the checks that send packets as well. Returns an exit status, or a
 * negative errno when it could not be made. */
int audit_main(bool as_json, bool canary, struct error *e);
