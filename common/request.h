/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a client may ask, and the answers other than a report. See common/wire.h for the encoding.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>

#include "common/limits.h"
#include "common/wire.h"

#define RUN_ID_LEN	     16 /* hexadecimal digits, random, never reused */
#define GUEST_NAME_MAX	     64
#define COMMAND_TEXT_MAX     256
#define PROFILE_NAME_MAX     31
#define PROFILE_SENTENCE_MAX 160
#define GUEST_STRINGS_MAX    (8u << 20) /* bytes of argv and environment together */
#define PATH_TEXT_MAX	     512	/* bytes of a cgroup's path */
#define GUEST_RLIMITS	     16		/* RLIM_NLIMITS, fixed here because it is a wire format */

/* Descriptors of WIRE_RUN, in this order. Behind them, when with_parent is set, a pidfd: the guest
 * ends with that process. Then one O_PATH descriptor for each VIEW_RO and VIEW_RW, in their order.
 */
enum run_fd {
	RUN_FD_STRINGS, /* memfd, fully sealed: see strings_pack() */
	RUN_FD_CWD,	/* O_PATH | O_DIRECTORY */
	RUN_FD_STDIN,
	RUN_FD_STDOUT,
	RUN_FD_STDERR,
	RUN_FD_MNTNS, /* /proc/self/ns/mnt */
	RUN_FD_COUNT,
};

/* What the guest is to see of the file systems besides what everybody's does, in the order of the
 * command line. */
enum view_kind {
	VIEW_NONE,
	VIEW_RO,  /* read-only, with what is mounted below; has a descriptor */
	VIEW_RW,  /* a directory of the caller's, as the guest's own; has a descriptor */
	VIEW_PIN, /* an entry of the VIEW_RW in front of it, neither to be removed nor replaced */
	VIEW_PIN_RO, /* nor to be changed */
	VIEW_HIDE,   /* a path of the view that is to be empty */
	VIEW_KIND_COUNT,
};

#define VIEW_ITEMS_MAX 16
#define VIEW_TEXT_MAX  255

struct view_item {
	uint32_t kind;
	/* VIEW_PIN: the entry's name. VIEW_HIDE: the path. With a descriptor: the absolute path as
	 * the caller wrote it, which may lead through symbolic links, or "". */
	char text[VIEW_TEXT_MAX + 1];
};

/* What the guest's terminal is to be like: as the caller's. */
struct terminal_look {
	struct termios modes;
	struct winsize size;
};

struct request {
	/* WIRE_RUN */
	struct limits limits;		    /* LIMIT_UNSET: the default */
	char name[GUEST_NAME_MAX + 1];	    /* "" or name_valid() */
	char command[COMMAND_TEXT_MAX + 1]; /* for people; claimed by the caller; printable */
	uint64_t wait_usec;		    /* for a place; 0 = not at all */
	char net[PROFILE_NAME_MAX + 1];	    /* network profile; "": the default */
	uint32_t umask;
	struct rlimit rlimits[GUEST_RLIMITS]; /* the caller's own, as of getrlimit(2) */
	uint32_t terminals; /* bit N: stream N is to be the guest's terminal; what came is unused */
	struct terminal_look terminal;
	uint32_t with_parent; /* 0 or 1: a pidfd came along */
	uint64_t tmp_bytes;   /* of each private directory; LIMIT_UNSET: as memory */
	struct view_item view[VIEW_ITEMS_MAX]; /* those that are not VIEW_NONE first */
	/* WIRE_PS */
	uint32_t brief; /* 1: of the counters only memory_bytes, the others cost more */
	/* WIRE_PS, WIRE_KILL */
	char target[GUEST_NAME_MAX + 1]; /* id or name; "" = all of the caller's guests */
};

struct answer {
	uint64_t count;
	char text[ERROR_TEXT_MAX];
};

/* What WIRE_SIGNAL asks for: the guest's first process gets this signal. But SIGTSTP freezes all of
 * the guest and SIGCONT thaws it: neither can be ignored, handled or seen by it. */
struct signal_order {
	uint32_t number;
};

/* The signals that a client may pass on; no others are taken from it. */
extern const int passed_signals[];
extern const size_t n_passed_signals;
int signal_is_passed(uint32_t number);

/* What a run would get: the answer to WIRE_EXPLAIN. */
struct explanation {
	struct limits limits;  /* in the end */
	struct limits ceiling; /* the caller's */
	char access[48];       /* the caller's section: "access", or "access NAME" */
	char profile[PROFILE_NAME_MAX + 1];
	char network[PROFILE_SENTENCE_MAX];	       /* what the profile means, for people */
	struct limit_origins origins, ceiling_origins; /* of limits and ceiling */
	struct limits in_force;			       /* the smallest on the way up to the root */
	struct limit_origins above; /* the cgroup that allows less than limits; "" = none */
};

enum guest_state {
	GUEST_WAITING,
	GUEST_STARTING,
	GUEST_RUNNING,
	GUEST_ENDING,
	GUEST_WARM,
	GUEST_STATE_COUNT
};
extern const char *const guest_state_names[GUEST_STATE_COUNT];

/* What is to be known of one live guest. Counters are of the guest alone, UINT64_MAX when they
 * could not be read. */
struct guest_row {
	char id[RUN_ID_LEN + 1];
	char name[GUEST_NAME_MAX + 1];
	char command[COMMAND_TEXT_MAX + 1];
	uint32_t state;
	uint32_t uid; /* the guest's; 0 while waiting */
	uint32_t caller_uid;
	uint32_t main_pid;     /* 0 while starting */
	uint64_t started_usec; /* CLOCK_REALTIME */
	uint64_t memory_bytes; /* memory.current */
	uint64_t memory_peak;
	uint64_t pids;	      /* processes and threads */
	uint64_t cpu_usec;    /* CPU time of the whole tree so far */
	struct limits limits; /* in force, from the release on; before, as they will be asked for */
	struct limits own;    /* of its own cgroup: slices above may allow less */
	char profile[PROFILE_NAME_MAX + 1];
	char cgroup[PATH_TEXT_MAX]; /* the scope's directory; systemd's name of it is the last part
				     */
};

/* The texts of a struct limit_origins: attribute @base + the limit, so leave some room behind it.
 */
#define WIRE_ORIGIN(base, type, member, limit)                                                     \
	WIRE_FIELD((base) + (limit), WIRE_STRING, type, member.text[limit])
#define WIRE_ORIGINS(base, type, member)                                                           \
	WIRE_ORIGIN(base, type, member, LIMIT_MEMORY),                                             \
		WIRE_ORIGIN(base, type, member, LIMIT_SWAP),                                       \
		WIRE_ORIGIN(base, type, member, LIMIT_CPU),                                        \
		WIRE_ORIGIN(base, type, member, LIMIT_PIDS),                                       \
		WIRE_ORIGIN(base, type, member, LIMIT_TIME),                                       \
		WIRE_ORIGIN(base, type, member, LIMIT_CPU_TIME),                                   \
		WIRE_ORIGIN(base, type, member, LIMIT_IO_WEIGHT),                                  \
		WIRE_ORIGIN(base, type, member, LIMIT_IO_READ),                                    \
		WIRE_ORIGIN(base, type, member, LIMIT_IO_WRITE)

extern const struct wire_field request_fields[];
extern const size_t request_n_fields;
extern const struct wire_field explanation_fields[];
extern const size_t explanation_n_fields;
extern const struct wire_field answer_fields[];
extern const size_t answer_n_fields;
extern const struct wire_field signal_fields[];
extern const size_t signal_n_fields;
extern const struct wire_field guest_row_fields[];
extern const size_t guest_row_n_fields;

/* A request in which nothing is asked for. */
void request_clear(struct request *q);

/* The content of a decoded request: names valid, command printable, umask in range. 0 or -EINVAL.
 */
int request_check(const struct request *q, struct error *e);

/* The place of the first descriptor of the view, behind the parent's. */
size_t request_first_view_fd(const struct request *q);

/* How many descriptors a WIRE_RUN of this request has. */
size_t request_n_fds(const struct request *q);

/* Does an item of this kind have a descriptor? */
int view_kind_has_fd(uint32_t kind);

/* A guest's name: 1 to GUEST_NAME_MAX of [A-Za-z0-9._-], not starting with "-" or ".". */
int name_valid(const char *name);

/* The name of an entry of a directory: no "/", not "." or "..". */
int entry_name_valid(const char *name);

/* An absolute path without empty, "." and ".." parts; not "/". */
int path_is_plain(const char *path);

/* A network profile's name: 1 to PROFILE_NAME_MAX of [a-z0-9], as it is part of a slice's. */
int profile_name_valid(const char *name);

/* The display string for @argv: arguments joined by blanks, what is not printable (text.h) escaped
 * as \xHH, cut at COMMAND_TEXT_MAX bytes with "...". */
void command_text(char *const argv[], char text[COMMAND_TEXT_MAX + 1]);

/* argv and environment byte for byte in a sealed memfd: two native uint32_t (numbers of arguments
 * and of environment entries), then all strings, each with its NUL. Root never parses it: the
 * guest's process maps it after it has become the guest.
 * Returns the memfd; -E2BIG above GUEST_STRINGS_MAX, -EFBIG above RLIMIT_FSIZE (with SIGXFSZ, which
 * the caller must ignore: setrlimit(2)). */
int strings_pack(char *const argv[], char *const envp[], struct error *e);

/* Checks type, size and seals without looking at the content. */
int strings_check(int fd, struct error *e);

/* Maps @fd and builds both vectors; the memory lives until exec. -EINVAL when it is malformed. */
int strings_unpack(int fd, char ***ret_argv, char ***ret_envp);
