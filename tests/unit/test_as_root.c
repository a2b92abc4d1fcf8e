/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What only root can try: children of the test become guests, and are judged from outside. Skipped
 * without root; HARPE_TESTS_MUST_RUN=1 makes that a failure.
 */
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/daemon/identity.h"
#include "governor/guest/confine.h"
#include "governor/guest/network.h"
#include "governor/guest/spaces.h"
#include "governor/guest/view.h"
#include "governor/guest/view_ground.h"
#include "governor/supervisor/pair.h"

#define UID	    3000000000u /* nobody's */
#define STATUS_SIZE 8192

struct child {
	pid_t pid;
	int hold; /* closed at the test's end, whatever that is: then it ends as well */
};

/* A child that has become what @become makes of it, and waits. */
static struct child start(int (*become)(uint32_t uid, struct error *e), uint32_t uid)
{
	struct error e = ERROR_NULL;
	int ready[2], hold[2];
	pid_t pid;

	assert_true(pipe(ready) == 0 && pipe(hold) == 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(hold[1]);
		become(uid, &e);
		write_whole(ready[1], &e, sizeof(e));
		_exit(read(hold[0], &e, 1) != 0);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &e, sizeof(e)), sizeof(e));
	close(ready[0]);
	if (e.text[0])
		fail_msg("%s", e.text);
	return (struct child){ pid, hold[1] };
}

static void stop(const struct child *c)
{
	kill(c->pid, SIGKILL);
	close(c->hold);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

static void read_of(pid_t pid, const char *file, char text[STATUS_SIZE])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	assert_true(read_file_at(AT_FDCWD, path, text, STATUS_SIZE) >= 0);
}

static void assert_line(pid_t pid, const char *line)
{
	char status[STATUS_SIZE];

	read_of(pid, "status", status);
	assert_mentions(status, "\n", line, "\n");
}

/* Sets of capabilities, and of signals. */
static void assert_empty(pid_t pid, const char *set)
{
	char line[64];

	snprintf(line, sizeof(line), "%s:\t0000000000000000", set);
	assert_line(pid, line);
}

/* make(1) starts its children like that; signal(2) does not do it to the C library's own two. */
static void ignore_by_number(int sig)
{
	const unsigned long ignore[8] = { (unsigned long)SIG_IGN };

	assert_int_equal(syscall(SYS_rt_sigaction, sig, ignore, NULL, sizeof(uint64_t)), 0);
}

static int prepare(uint32_t uid, struct error *e)
{
	(void)uid;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGRTMAX, SIG_IGN);
	ignore_by_number(32);
	ignore_by_number(33);
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS) < 0)
		return error_errno(e, -errno, "not made stale");
	if (confine_prepare(e) == 0 && prctl(PR_GET_SECUREBITS) != 0)
		error_set(e, -EINVAL, "securebits stayed");
	else
		confine_bound(e);
	return 0;
}

static void prepares_what_children_inherit(void **state)
{
	char own[STATUS_SIZE], line[64];
	const char *effective;
	struct child c;

	(void)state;
	c = start(prepare, UID);
	read_of(getpid(), "status", own);
	effective = strstr(own, "CapEff:");
	assert_non_null(effective);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(effective, "\n"), effective);
	assert_line(c.pid, line);
	assert_empty(c.pid, "CapBnd");
	assert_empty(c.pid, "SigIgn");
	stop(&c);
}

static int prepare_locked(uint32_t uid, struct error *e)
{
	(void)uid;
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0)
		return error_errno(e, -errno, "not locked");
	if (confine_prepare(e) != -EPERM || !strstr(e->text, "SecureBits="))
		return error_set(e, -EINVAL, "taken for prepared");
	*e = (struct error)ERROR_NULL;
	return 0;
}

static void refuses_locked_securebits(void **state)
{
	struct child c;

	(void)state;
	c = start(prepare_locked, UID);
	stop(&c);
}

static int set_capabilities(uint32_t bits)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { bits, bits, bits } };

	return (int)syscall(SYS_capset, &header, data);
}

/* All that could survive the change of the uid. */
static int become_uid_with_baggage(uint32_t uid, struct error *e)
{
	const gid_t groups[] = { 7, 8 };

	if (setgroups(2, groups) < 0 || prctl(PR_SET_KEEPCAPS, 1) < 0 ||
	    set_capabilities(1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_CHOWN) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) < 0)
		return error_errno(e, -errno, "no baggage");
	return confine_identity(uid, e);
}

static void assert_login_uid(pid_t pid, const char *want)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/%d/loginuid", pid);
	if (read_file_at(AT_FDCWD, path, text, sizeof(text)) >= 0)
		assert_string_equal(text, want);
}

static void takes_an_identity(void **state)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapAmb" };
	struct child c;

	(void)state;
	c = start(become_uid_with_baggage, UID);
	assert_line(c.pid, "Uid:\t3000000000\t3000000000\t3000000000\t3000000000");
	assert_line(c.pid, "Gid:\t3000000000\t3000000000\t3000000000\t3000000000");
	assert_line(c.pid, "Groups:\t ");
	assert_line(c.pid, "NoNewPrivs:\t1");
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		assert_empty(c.pid, sets[i]);
	assert_login_uid(c.pid, "3000000000");
	stop(&c);
}

/* Tries to get back what it had; whatever works is an error. */
static int try_to_come_back(uint32_t uid, struct error *e)
{
	const gid_t group = 0;
	int r = become_uid_with_baggage(uid, e);

	if (r < 0)
		return r;
	if (setuid(0) == 0 || setresuid(-1u, 0, -1u) == 0 || setgid(0) == 0 ||
	    setgroups(1, &group) == 0 || set_capabilities(1u << CAP_CHOWN) == 0)
		return error_set(e, -EINVAL, "it came back");
	prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : error_set(e, -EINVAL, "new privs");
}

static void cannot_come_back(void **state)
{
	struct child c;

	(void)state;
	c = start(try_to_come_back, UID);
	assert_line(c.pid, "Uid:\t3000000000\t3000000000\t3000000000\t3000000000");
	stop(&c);
}

static int become_fresh(uint32_t uid, struct error *e)
{
	const struct sched_param fifo = { .sched_priority = 7 };
	sigset_t all;

	(void)uid;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (nice(5) < 0 || sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo) < 0 ||
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 3)) <
		    0 ||
	    write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "500") < 0)
		return error_errno(e, -errno, "not made stale");
	return confine_reset_process(e);
}

static void resets_the_process(void **state)
{
	char text[STATUS_SIZE];
	struct child c;

	(void)state;
	c = start(become_fresh, UID);
	assert_empty(c.pid, "SigBlk");
	read_of(c.pid, "oom_score_adj", text);
	assert_string_equal(text, "0");
	assert_int_equal(getsid(c.pid), c.pid);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)c.pid), 0);
	assert_int_equal(sched_getscheduler(c.pid), SCHED_OTHER);
	assert_int_equal(IOPRIO_PRIO_CLASS(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, c.pid)),
			 IOPRIO_CLASS_NONE);
	stop(&c);
}

/* A listening abstract socket that is made here. */
static int listen_abstract(const struct sockaddr_un *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (const struct sockaddr *)name, sizeof(*name)) == 0 &&
			       listen(fd, 1) == 0
		       ? fd
		       : -1;
}

static int connect_abstract(const struct sockaddr_un *name)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 ? -errno : 0;
}

static struct sockaddr_un outside = { .sun_family = AF_UNIX, .sun_path = "\0harpe-gov-test" };

static int try_scopes(uint32_t uid, struct error *e)
{
	const struct sockaddr_un inside = { .sun_family = AF_UNIX, .sun_path = "\0harpe-gov-own" };
	int r = confine_scopes(e);

	(void)uid;
	if (r < 0)
		return r;
	if (connect_abstract(&outside) != -EPERM)
		return error_set(e, -EINVAL, "an abstract socket was reached");
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return error_set(e, -EINVAL, "a process outside can be sent signals");
	if (listen_abstract(&inside) < 0 || connect_abstract(&inside) < 0 || kill(getpid(), 0) < 0)
		return error_set(e, -EINVAL, "what is the guest's own cannot be reached");
	return 0;
}

static void scopes_signals_and_abstract_sockets(void **state)
{
	int before = open_fds();
	struct child c;

	(void)state;
	if (!confine_has_scopes()) {
		print_message("# this kernel has no scopes\n");
		return;
	}
	assert_int_equal(open_fds(), before);
	before = listen_abstract(&outside);
	assert_true(before >= 0);
	assert_int_equal(connect_abstract(&outside), 0);
	c = start(try_scopes, UID);
	stop(&c);
	close(before);
}

/* What the process itself has, what is asked, what is to come of it. */
static const struct {
	int limit;
	struct rlimit own, asked, want;
} rlimits[] = {
	{ RLIMIT_NOFILE, { 100, 200 }, { 300, 400 }, { 200, 200 } },
	{ RLIMIT_NPROC, { 100, 200 }, { 10, 20 }, { 10, 20 } },
	{ RLIMIT_FSIZE, { 100, 200 }, { 50, 40 }, { 40, 40 } },
	{ RLIMIT_MEMLOCK, { 100, 200 }, { RLIM_INFINITY, RLIM_INFINITY }, { 200, 200 } },
	{ RLIMIT_MSGQUEUE, { 100, 200 }, { 0, RLIM_INFINITY }, { 0, 200 } },
	{ RLIMIT_CORE, { 100, 200 }, { 0, 0 }, { 1, 1 } },
	{ RLIMIT_SIGPENDING, { 4000, 4000 }, { 3000, 3000 }, { 256, 256 } },
	{ RLIMIT_RTTIME, { RLIM_INFINITY, RLIM_INFINITY }, { 7, 8 }, { 7, 8 } },
};

static int become_limited(uint32_t uid, struct error *e)
{
	struct rlimit asked[GUEST_RLIMITS];

	(void)uid;
	for (int i = 0; i < GUEST_RLIMITS; i++)
		asked[i] = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	for (size_t i = 0; i < ARRAY_SIZE(rlimits); i++) {
		asked[rlimits[i].limit] = rlimits[i].asked;
		if (setrlimit((__rlimit_resource_t)rlimits[i].limit, &rlimits[i].own) < 0)
			return error_errno(e, -errno, "not prepared");
	}
	return confine_rlimits(asked, 4096, e);
}

/* How long files may get when the caller does not say. */
static const struct {
	struct rlimit own, asked, want;
} file_limits[] = {
	{ { RLIM_INFINITY, RLIM_INFINITY }, { RLIM_INFINITY, RLIM_INFINITY }, { 4096, 4096 } },
	{ { RLIM_INFINITY, RLIM_INFINITY }, { 7, 8 }, { 7, 8 } },
	{ { RLIM_INFINITY, RLIM_INFINITY }, { 0, 0 }, { 0, 0 } },
	{ { RLIM_INFINITY, RLIM_INFINITY }, { 5000, 6000 }, { 5000, 6000 } },
	{ { RLIM_INFINITY, RLIM_INFINITY }, { 7, RLIM_INFINITY }, { 7, 4096 } },
	{ { 100, 200 }, { RLIM_INFINITY, RLIM_INFINITY }, { 200, 200 } },
};
static size_t file_case;
static uint64_t file_bytes;

static int become_limited_in_files(uint32_t uid, struct error *e)
{
	struct rlimit asked[GUEST_RLIMITS];

	(void)uid;
	for (int i = 0; i < GUEST_RLIMITS; i++)
		asked[i] = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	asked[RLIMIT_FSIZE] = file_limits[file_case].asked;
	if (setrlimit(RLIMIT_FSIZE, &file_limits[file_case].own) < 0)
		return error_errno(e, -errno, "not prepared");
	return confine_rlimits(asked, file_bytes, e);
}

static void assert_file_limit(const struct rlimit *want)
{
	struct child c = start(become_limited_in_files, UID);
	struct rlimit got;

	assert_int_equal(prlimit(c.pid, RLIMIT_FSIZE, NULL, &got), 0);
	stop(&c);
	assert_int_equal(got.rlim_cur, want->rlim_cur);
	assert_int_equal(got.rlim_max, want->rlim_max);
}

static void limits_files_of_those_who_do_not_say(void **state)
{
	(void)state;
	file_bytes = 4096;
	for (file_case = 0; file_case < ARRAY_SIZE(file_limits); file_case++)
		assert_file_limit(&file_limits[file_case].want);
	file_case = 0;
	file_bytes = LIMIT_INFINITY;
	assert_file_limit(&(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
}

static void limits_resources(void **state)
{
	struct rlimit got, own;
	struct child c;

	(void)state;
	c = start(become_limited, UID);
	for (size_t i = 0; i < ARRAY_SIZE(rlimits); i++) {
		assert_int_equal(prlimit(c.pid, (__rlimit_resource_t)rlimits[i].limit, NULL, &got),
				 0);
		assert_memory_equal(&got, &rlimits[i].want, sizeof(got));
	}
	assert_int_equal(prlimit(c.pid, RLIMIT_STACK, NULL, &got), 0);
	assert_int_equal(getrlimit(RLIMIT_STACK, &own), 0);
	assert_int_equal(got.rlim_max, own.rlim_max);
	stop(&c);
}

static int filter_syscalls(uint32_t uid, struct error *e)
{
	struct sock_fprog program;
	int r = confine_compile(0, &program, e);

	(void)uid;
	if (r < 0)
		return r;
	r = confine_syscalls(&program, e);
	confine_free(&program);
	return r;
}

static int become_guest(uint32_t uid, struct error *e)
{
	int r = confine_prepare(e) < 0 ? -1 : confine_bound(e);

	if (r == 0)
		r = confine_identity(uid, e);
	return r == 0 ? filter_syscalls(uid, e) : r;
}

static int become_guest_with_bounding_set(uint32_t uid, struct error *e)
{
	int r = confine_identity(uid, e);

	return r == 0 ? filter_syscalls(uid, e) : r;
}

static int become_guest_without_filter(uint32_t uid, struct error *e)
{
	int r = confine_prepare(e) < 0 ? -1 : confine_bound(e);

	return r == 0 ? confine_identity(uid, e) : r;
}

static const struct {
	int (*become)(uint32_t uid, struct error *e);
	const char *missing;
} halves[] = {
	{ become_guest_with_bounding_set, "CapBnd:" },
	{ become_guest_without_filter, "Seccomp:" },
	{ filter_syscalls, "Uid:" },
};

static void verifies_processes(void **state)
{
	struct error e = ERROR_NULL;
	struct child c;

	(void)state;
	c = start(become_guest, UID);
	if (confine_verify(c.pid, UID, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(confine_verify(c.pid, UID + 1, &e), -ESTALE);
	stop(&c);
	assert_true(confine_verify(c.pid, UID, &e) < 0);
	assert_mentions(e.text, "/proc/", "", "");
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
		c = start(halves[i].become, UID);
		assert_int_equal(confine_verify(c.pid, UID, &e), -ESTALE);
		assert_mentions(e.text, "\"", halves[i].missing, "");
		stop(&c);
	}
}

/* ---- uids that somebody has ---- */

static uint32_t held_uids[8], n_held;

static void note_held(uint32_t uid, const char *why)
{
	assert_string_equal(why, "a process has it");
	assert_true(n_held < ARRAY_SIZE(held_uids));
	held_uids[n_held++] = uid;
}

/* Two processes of one uid, one of another; those beside the pool do not count. */
static void holds_back_uids_of_live_processes(void **state)
{
	static const uint32_t busy[] = { UID + 1, UID + 1, UID + 4, UID - 1, UID + 5 };
	static const uint32_t left[] = { UID, UID + 2, UID + 3, UID + 1, UID + 4 };
	struct child c[ARRAY_SIZE(busy)];
	struct identity_pool *p;
	struct error e = ERROR_NULL;
	uint32_t uid;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		c[i] = start(confine_identity, busy[i]);
	assert_int_equal(identity_pool_new(UID, 5, &p), 0);
	for (int round = 0; round < 2; round++) { /* named once */
		assert_int_equal(identity_verify(p, note_held, &e), 0);
		assert_int_equal(identity_n_free(p), 3);
		assert_int_equal(identity_n_quarantined(p), 2);
		assert_int_equal(n_held, 2);
	}
	assert_int_equal(held_uids[0], UID + 1);
	assert_int_equal(held_uids[1], UID + 4);
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		stop(&c[i]);
	assert_int_equal(identity_verify(p, note_held, &e), 0);
	assert_int_equal(n_held, 2);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		assert_int_equal(identity_lease(p, &uid, &e), 0);
		assert_int_equal(uid, left[i]);
	}
	assert_int_equal(identity_lease(p, &uid, &e), -EUSERS);
	identity_pool_free(p);
}

/* One of the four only: real, effective, saved, or that for files. */
static int become_in_part(uint32_t uid, struct error *e)
{
	uint32_t part = uid - UID;

	setfsuid(part == 3 ? uid : 0);
	return part < 3 && setresuid(part == 0 ? uid : 0, part == 1 ? uid : 0,
				     part == 2 ? uid : 0) < 0
		       ? error_errno(e, -errno, "not in part")
		       : 0;
}

static void holds_back_uids_that_hide(void **state)
{
	struct identity_pool *p;
	struct error e = ERROR_NULL;
	struct child c[4];

	(void)state;
	n_held = 0;
	for (uint32_t i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = start(become_in_part, UID + i);
	assert_int_equal(identity_pool_new(UID, 5, &p), 0);
	assert_int_equal(identity_verify(p, note_held, &e), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(c); i++) {
		stop(&c[i]);
		assert_int_equal(held_uids[i], UID + i);
	}
	assert_int_equal(identity_n_free(p), 1);
	identity_pool_free(p);
}

/* Back and dirty again: it is named anew. */
static void names_each_time_that_it_is_dirty(void **state)
{
	struct child c = start(confine_identity, UID);
	struct identity_pool *p;
	struct error e = ERROR_NULL;
	uint32_t uid;

	(void)state;
	n_held = 0;
	assert_int_equal(identity_pool_new(UID, 1, &p), 0);
	assert_int_equal(identity_verify(p, note_held, &e), 0);
	stop(&c);
	assert_int_equal(identity_verify(p, note_held, &e), 0);
	assert_int_equal(identity_lease(p, &uid, &e), 0);
	c = start(confine_identity, UID);
	assert_int_equal(identity_verify(p, note_held, &e), 0); /* leased: its own business */
	assert_int_equal(n_held, 1);
	identity_return(p, uid);
	assert_int_equal(identity_verify(p, note_held, &e), 0);
	assert_int_equal(n_held, 2);
	stop(&c);
	identity_pool_free(p);
}

static int become_member_of_many(uint32_t uid, struct error *e)
{
	gid_t groups[2000];

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		groups[i] = 4000000000u + (gid_t)i;
	if (setgroups(ARRAY_SIZE(groups), groups) < 0)
		return error_errno(e, -errno, "no groups");
	return setresuid(uid, uid, uid) < 0 ? error_errno(e, -errno, "no uid") : 0;
}

/* A caller may have as many groups (user namespaces, directories): nobody's pool must stop. */
static void copes_with_long_statuses(void **state)
{
	struct child c = start(become_member_of_many, UID + 1);
	struct identity_pool *p;
	struct error e = ERROR_NULL;

	(void)state;
	n_held = 0;
	assert_int_equal(identity_pool_new(UID, 5, &p), 0);
	if (identity_verify(p, note_held, &e) < 0)
		fail_msg("%s", e.text);
	stop(&c);
	assert_int_equal(n_held, 1);
	assert_int_equal(identity_n_free(p), 4);
	identity_pool_free(p);
}

static void note_key(uint32_t uid, const char *why)
{
	assert_string_equal(why, "a key belongs to it");
	held_uids[n_held++] = uid;
}

/* A key without any process; the kernel takes its time to forget it. */
static void holds_back_uids_with_keys(void **state)
{
	long key = syscall(SYS_add_key, "user", "harpe-gov-test", "x", 1, KEY_SPEC_PROCESS_KEYRING);
	struct identity_pool *p;
	struct error e = ERROR_NULL;

	(void)state;
	n_held = 0;
	if (key < 0 && errno == ENOSYS)
		skip();
	assert_true(key >= 0);
	assert_int_equal(syscall(SYS_keyctl, KEYCTL_CHOWN, key, UID + 2, -1), 0);
	assert_int_equal(identity_pool_new(UID, 5, &p), 0);
	assert_int_equal(identity_verify(p, note_key, &e), 0);
	assert_int_equal(n_held, 1);
	assert_int_equal(held_uids[0], UID + 2);
	assert_int_equal(identity_n_free(p), 4);
	assert_int_equal(syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_PROCESS_KEYRING), 0);
	for (int tries = 0; identity_n_free(p) < 5; tries++) {
		assert_true(tries < 500);
		usleep(10000);
		assert_int_equal(identity_verify(p, note_key, &e), 0);
	}
	assert_int_equal(n_held, 1);
	identity_pool_free(p);
}

/* ---- the view ---- */

/* Mounts that nobody else sees, with what the daemon has. */
static void leave_the_host(void)
{
	assert_int_equal(unshare(CLONE_NEWNS | CLONE_NEWIPC), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("test", "/run", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/run/harpe-gov", 0755), 0);
}

static int make_ground(void)
{
	struct error e = ERROR_NULL;
	int fd = view_ground_make(&e);

	if (fd < 0)
		fail_msg("%s", e.text);
	return fd;
}

static int become_grounded(uint32_t uid, struct error *e)
{
	struct dirent **names;
	struct stat before, after;
	char cwd[8];
	int ground;

	(void)uid;
	(void)e;
	leave_the_host();
	assert_int_equal(stat("/proc/self/ns/mnt", &before), 0);
	ground = make_ground();
	assert_int_equal(stat("/proc/self/ns/mnt", &after), 0);
	assert_true(before.st_ino == after.st_ino && access("/run/harpe-gov/root", F_OK) < 0);
	assert_string_equal(getcwd(cwd, sizeof(cwd)), "/");
	assert_int_equal(setns(ground, CLONE_NEWNS), 0);
	assert_int_equal(rmdir(VIEW_GROUND_ROOT), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(scandir("/", &names, NULL, alphasort), 3); /* . .. root */
	return 0;
}

static void lays_a_ground_with_nothing_on_it(void **state)
{
	struct child c = start(become_grounded, UID);

	(void)state;
	stop(&c);
}

static const struct view_base *view_base(struct error *e)
{
	static struct view_paths none;
	static struct view_base base;

	assert_int_equal(view_base_load(&none, &none, &base, e), 0);
	return &base;
}

static int build_view(const struct view_start *start, int prepared, uint32_t uid, struct error *e)
{
	static const struct view_item items[VIEW_ITEMS_MAX];
	struct handed handed = { .cwd = -1 };
	struct view_plan plan = {
		.start = *start,
		.prepared = prepared,
		.prepared_tmp_bytes = 1 << 20,
		.items = items,
		.handed = &handed,
		.uid = uid,
		.own_pts = true,
	};

	return view_build(&plan, e);
}

static int become_viewer(uint32_t uid, struct error *e)
{
	struct view_start start = { .base = view_base(e), .tmp_bytes = 1 << 20 };

	leave_the_host();
	start.ground = make_ground();
	return build_view(&start, -1, uid, e);
}

static int our_mounts(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Its own, seen from here. */
static void builds_a_view_of_its_own(void **state)
{
	int before = open_fds(), other = our_mounts(), mounts = -1, again = -1;
	struct child c = start(become_viewer, UID);
	struct error e = ERROR_NULL;
	struct stat st;
	char path[64];

	(void)state;
	if (view_verify(c.pid, other, &mounts, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(view_verify(c.pid, mounts, &again, &e), -ESTALE);
	assert_mentions(e.text, "that all views begin with", "", "");
	close_fd(&again);
	snprintf(path, sizeof(path), "/proc/%d/root/usr/bin", c.pid);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "/proc/%d/root/run/harpe-gov", c.pid);
	assert_true(stat(path, &st) < 0 && errno == ENOENT);
	stop(&c);
	close_fd(&mounts);
	close_fd(&other);
	assert_int_equal(open_fds(), before);
}

static int become_nothing(uint32_t uid, struct error *e)
{
	(void)uid;
	(void)e;
	return 0;
}

static void sees_who_has_no_view(void **state)
{
	struct child c = start(become_nothing, UID);
	struct error e = ERROR_NULL;
	int other = our_mounts(), mounts = -1;

	(void)state;
	assert_int_equal(view_verify(c.pid, other, &mounts, &e), -ESTALE);
	assert_mentions(e.text, "the guest has no read-only root of its own", "", "");
	close_fd(&mounts);
	close_fd(&other);
	stop(&c);
}

/* ---- namespaces that are there before their guest ---- */

static struct spaces prepared; /* of become_prepared() */

/* As a slot's process does: makes them, hands them over and ends. */
static struct spaces prepare_spaces(void)
{
	struct spaces s = SPACES_NULL;
	int pair[2], status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct error e = ERROR_NULL;
		struct view_start start = { .base = view_base(&e), .tmp_bytes = 1 << 20 };

		leave_the_host();
		start.ground = make_ground();
		_exit(spaces_make(&start, true, &s, &e) < 0 ||
		      pair_send_with(pair[1], &byte, 1, &s) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pair_receive_with(pair[0], &byte, 1, &s), 0);
	assert_true(s.ipc >= 0 && s.mounts >= 0 && s.net >= 0);
	close(pair[0]);
	close(pair[1]);
	return s;
}

static int become_prepared(uint32_t uid, struct error *e)
{
	const struct view_start start = { -1, view_base(e), 1 << 21 };
	_cleanup_close_ int inside = -1;
	struct sockaddr_in there = { .sin_family = AF_INET,
				     .sin_port = htons(9),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int r = spaces_enter(&prepared, e);

	if (r < 0)
		return r;
	inside = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (connect(inside, (const struct sockaddr *)&there, sizeof(there)) < 0)
		return error_errno(e, -errno, "loopback is not on");
	return build_view(&start, prepared.mounts, uid, e);
}

static ino_t space_of(pid_t pid, const char *kind)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void assert_prepared(pid_t pid, const struct spaces *other)
{
	const struct {
		const char *kind;
		int mine, others;
	} all[] = { { "ipc", prepared.ipc, other->ipc },
		    { "mnt", prepared.mounts, other->mounts },
		    { "net", prepared.net, other->net } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		ino_t space = space_of(pid, all[i].kind);

		assert_true(space == inode_of(all[i].mine) && space != inode_of(all[i].others));
		assert_true(space != space_of(getpid(), all[i].kind));
	}
}

static void assert_fresh_view(pid_t pid, uint64_t tmp_bytes)
{
	char path[64], text[1024];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/root/tmp", pid);
	assert_int_equal(statfs(path, &fs), 0);
	assert_int_equal((uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize, tmp_bytes);
	snprintf(path, sizeof(path), "/proc/%d/root/etc/passwd", pid);
	assert_true(read_file_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
	assert_mentions(text, "guest:x:3000000000:", "", "");
}

/* Each has its own, with what depends on the guest made when it comes. */
static void enters_namespaces_that_were_made_before(void **state)
{
	int before = open_fds(), mounts = -1, ground = our_mounts();
	struct network network = NETWORK_NULL;
	struct spaces other = prepare_spaces();
	struct error e = ERROR_NULL;
	struct child c;

	(void)state;
	prepared = prepare_spaces();
	c = start(become_prepared, UID);
	assert_prepared(c.pid, &other);
	assert_fresh_view(c.pid, 1 << 21);
	if (spaces_verify(c.pid, true, &e) < 0 || view_verify(c.pid, ground, &mounts, &e) < 0)
		fail_msg("%s", e.text);
	network_open(c.pid, &network);
	assert_true(network.snmp >= 0);
	network_close(&network);
	stop(&c);
	close_fd(&mounts);
	close_fd(&ground);
	spaces_close(&prepared);
	spaces_close(&other);
	assert_int_equal(open_fds(), before);
}

/* By a process that has nothing else, and is gone soon. */
static void closes_them_aside(void **state)
{
	int before = open_fds(), status = -1;
	struct spaces s = prepare_spaces(), none = SPACES_NULL;
	pid_t pid = spaces_close_aside(&s);

	(void)state;
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(s.ipc == -1 && s.mounts == -1 && s.net == -1);
	assert_int_equal(open_fds(), before);
	assert_int_equal(spaces_close_aside(&none), 0);
}

/* Whoever could not enter would stay in the host's. */
static void enters_nothing_else(void **state)
{
	int uts = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC); /* of another kind */
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(spaces_enter(&SPACES_NULL, &e), 0);
	assert_int_equal(spaces_enter(&(struct spaces){ uts, -1, -1 }, &e), -EINVAL);
	assert_mentions(e.text, "the IPC namespace cannot be entered: ", "", "");
	assert_int_equal(spaces_enter(&(struct spaces){ -1, -1, uts }, &e), -EINVAL);
	assert_mentions(e.text, "the network namespace cannot be entered: ", "", "");
	assert_int_equal(view_start_enter(uts, 0, &(struct view_start){ 0 }, &e), -EINVAL);
	assert_mentions(e.text, "the mount namespace cannot be entered: ", "", "");
	close(uts);
}

static int become_other_for_ipc(uint32_t uid, struct error *e)
{
	(void)uid;
	return unshare(CLONE_NEWIPC) < 0 ? error_errno(e, -errno, "unshare") : 0;
}

static int become_other_but_for_network(uint32_t uid, struct error *e)
{
	(void)uid;
	return unshare(CLONE_NEWIPC | CLONE_NEWNS) < 0 ? error_errno(e, -errno, "unshare") : 0;
}

static void assert_in_ours(int (*become)(uint32_t uid, struct error *e), bool own_network,
			   const char *what)
{
	struct child c = start(become, UID);
	struct error e = ERROR_NULL;

	assert_int_equal(spaces_verify(c.pid, own_network, &e), what ? -ESTALE : 0);
	if (what)
		assert_mentions(e.text, "in the host's ", what, " namespace");
	stop(&c);
}

/* Each by itself. */
static void notices_the_hosts_namespaces(void **state)
{
	struct error e = ERROR_NULL;

	(void)state;
	assert_in_ours(become_nothing, true, "IPC");
	assert_in_ours(become_other_for_ipc, true, "mount");
	assert_in_ours(become_other_but_for_network, true, "network");
	assert_in_ours(become_other_but_for_network, false, NULL);
	assert_true(spaces_verify(-1, true, &e) < 0);
	assert_mentions(e.text, "/proc/-1/ns/ipc cannot be looked at", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepares_what_children_inherit),
		cmocka_unit_test(refuses_locked_securebits),
		cmocka_unit_test(takes_an_identity),
		cmocka_unit_test(cannot_come_back),
		cmocka_unit_test(resets_the_process),
		cmocka_unit_test(scopes_signals_and_abstract_sockets),
		cmocka_unit_test(limits_resources),
		cmocka_unit_test(limits_files_of_those_who_do_not_say),
		cmocka_unit_test(verifies_processes),
		cmocka_unit_test(holds_back_uids_of_live_processes),
		cmocka_unit_test(holds_back_uids_that_hide),
		cmocka_unit_test(names_each_time_that_it_is_dirty),
		cmocka_unit_test(copes_with_long_statuses),
		cmocka_unit_test(holds_back_uids_with_keys),
		cmocka_unit_test(lays_a_ground_with_nothing_on_it),
		cmocka_unit_test(builds_a_view_of_its_own),
		cmocka_unit_test(sees_who_has_no_view),
		cmocka_unit_test(enters_namespaces_that_were_made_before),
		cmocka_unit_test(closes_them_aside),
		cmocka_unit_test(enters_nothing_else),
		cmocka_unit_test(notices_the_hosts_namespaces),
	};

	if (geteuid() != 0) {
		int must = getenv("HARPE_TESTS_MUST_RUN") != NULL;

		puts(must ? "Bail out! not root" : "1..0 # SKIP not root");
		return must;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
