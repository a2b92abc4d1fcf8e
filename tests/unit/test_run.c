/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov run` from end to end, without a daemon.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#include "common/state.h"
#include "tests/unit/fake.h"

static void start_run(struct client *c, const struct fake *f, const char *const args[])
{
	client_start(c, f, &verb_run, args, NULL);
}

static void report_ended(struct report *r, enum ended ended)
{
	report_clear(r);
	strcpy(r->id, "0123456789abcdef");
	r->ended = ended;
	r->guest_ran = 1;
	r->limits.value[LIMIT_MEMORY] = 64 << 20;
	r->limits.value[LIMIT_TIME] = 2 * USEC_PER_SEC;
}

static void read_report(const struct fake *f, char *text, size_t size)
{
	assert_true(read_file_at(AT_FDCWD, f->report, text, size) >= 0);
}

static void assert_report_has(const struct fake *f, const char *part)
{
	char text[4096];

	read_report(f, text, sizeof(text));
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

/* Runs a guest that ends as @r says; @c holds what the client printed. */
static int play(const struct fake *f, struct client *c, const struct report *r)
{
	char option[128];
	struct call call;

	snprintf(option, sizeof(option), "--report=%s", f->report);
	start_run(c, f, ARGS(option, "guest"));
	fake_take(f, &call);
	fake_report(call.sock, r);
	fake_drop(&call);
	return client_wait(c);
}

static void passes_exit_codes(void **state)
{
	static const int codes[] = { 0, 1, 3, 124, 125, 126, 127, 137, 255 };
	const struct fake *f = *state;
	struct client c;
	struct report r;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		int status;

		report_ended(&r, ENDED_EXITED);
		r.exit_code = (uint64_t)codes[i];
		status = play(f, &c, &r);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == codes[i]);
		assert_string_equal(c.err_text, "");
		assert_string_equal(c.out_text, "");
	}
}

static void dies_of_signals(void **state)
{
	static const int signals[] = { SIGSEGV, SIGKILL, SIGTERM, SIGPIPE, SIGINT, SIGSYS, 34, 64 };
	const struct fake *f = *state;
	struct client c;
	struct report r;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		int status;

		report_ended(&r, ENDED_SIGNALED);
		r.signal = (uint64_t)signals[i];
		status = play(f, &c, &r);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		assert_false(WCOREDUMP(status));
		assert_string_equal(c.err_text, "");
	}
}

static void says_which_limit(void **state)
{
	struct fake *f = *state;
	struct client c;
	struct report r;
	int status;

	report_ended(&r, ENDED_MEMORY);
	r.memory_oom_kills = 2;
	r.memory_peak = 64 << 20;
	status = play(f, &c, &r);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 124);
	assert_string_equal(c.err_text,
			    "harpe-gov: memory limit of 64M reached: the guest was killed (2 kills "
			    "by the kernel, peak 64M)\n");
	assert_report_has(f, "\"ended\":\"memory\"");
}

/* "ulimit -f": the memfd of the command counts as a file, as does the report. */
static void says_that_a_file_may_not_be_written(void **state)
{
	const struct fake *f = *state;
	struct rlimit before, none;
	char option[128];
	struct client c;

	snprintf(option, sizeof(option), "--report=%s", f->report);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	start_run(&c, f, ARGS("guest"));
	client_expect(&c, 125);
	assert_mentions(c.err_text, "nothing ran: the command and its environment take", "", "");
	assert_mentions(c.err_text, "bytes, more than \"ulimit -f\" lets anybody write\n", "", "");
	start_run(&c, f, ARGS(option, "guest"));
	client_expect(&c, 125);
	assert_mentions(c.err_text, f->report, ": File too large\n", "");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void says_what_was_not_found(void **state)
{
	struct client c;
	struct report r;
	int status;

	report_ended(&r, ENDED_SETUP_FAILED);
	r.guest_ran = 0;
	r.exit_code = 127;
	strcpy(r.error, "foo\x1b: command not found");
	status = play(*state, &c, &r);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	assert_string_equal(c.err_text, "harpe-gov: nothing ran: foo\\x1b: command not found\n");
}

static void writes_the_whole_report(void **state)
{
	_cleanup_free_ char *json = NULL;
	struct fake *f = *state;
	char text[4096] = "an older report, longer than this run's";
	struct client c;
	struct report r;
	struct stat st;

	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	r.uid = 90000;
	assert_int_equal(play(f, &c, &r), 0);
	assert_int_equal(play(f, &c, &r), 0); /* over the first one's */
	json = report_json(&r);
	json[strlen(json) - 1] = '\0'; /* read_file_at() takes the newline */
	read_report(f, text, sizeof(text));
	assert_string_equal(text, json);
	assert_int_equal(stat(f->report, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666 & ~umask(022));
}

static void reports_to_descriptors(void **state)
{
	struct fake *f = *state;
	struct client c;
	struct call call;
	struct report r;

	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	start_run(&c, f, ARGS("--report=fd:1", "guest"));
	fake_take(f, &call);
	fake_report(call.sock, &r);
	fake_drop(&call);
	client_expect(&c, 0);
	assert_int_equal(strncmp(c.out_text, "{\"schema\":1,", 12), 0);
}

static void fails_when_the_report_cannot_be_written(void **state)
{
	struct fake *f = *state;
	int full = open("/dev/full", O_WRONLY);
	char option[32];
	struct client c;
	struct call call;
	struct report r;

	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	snprintf(option, sizeof(option), "--report=fd:%d", full);
	start_run(&c, f, ARGS(option, "guest"));
	close(full);
	fake_take(f, &call);
	fake_report(call.sock, &r);
	fake_drop(&call);
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "cannot write the report to fd:"));
	assert_non_null(strstr(c.err_text, "No space left on device"));
}

/* ---- what cannot be a report ---- */

static void assert_no_report(const struct fake *f, const char *target, const char *part)
{
	char option[1024];
	struct client c;

	snprintf(option, sizeof(option), "--report=%s", target);
	start_run(&c, f, ARGS(option, "guest"));
	client_expect(&c, 125);
	if (!strstr(c.err_text, part))
		fail_msg("no \"%s\" in %s", part, c.err_text);
	/* nothing was asked of the supervisor */
	assert_int_equal(accept4(f->listener, NULL, NULL, SOCK_NONBLOCK), -1);
}

static void refuses_a_symbolic_link(void **state)
{
	struct fake *f = *state;
	char target[80], text[16];

	snprintf(target, sizeof(target), "%s/target", f->dir);
	close(creat(target, 0600));
	assert_int_equal(truncate(target, 5), 0);
	assert_int_equal(symlink(target, f->report), 0);
	fcntl(f->listener, F_SETFL, O_NONBLOCK);
	assert_no_report(f, f->report, "is a symbolic link: name the file itself\n");
	assert_int_equal(read_file_at(AT_FDCWD, target, text, sizeof(text)), 5);
	unlink(target);
}

static void refuses_other_files(void **state)
{
	struct fake *f = *state;
	char deep[700] = "/nonexistent";

	fcntl(f->listener, F_SETFL, O_NONBLOCK);
	while (strlen(deep) < 600)
		strcat(deep, "/deep");
	assert_no_report(f, deep, "...: No such file or directory\n");
	assert_no_report(f, "/dev/null", "is not a regular file: open it and use fd:N\n");
	assert_no_report(f, f->dir, "Is a directory\n");
	assert_no_report(f, "/nonexistent/report", "No such file or directory\n");
	assert_int_equal(mkfifo(f->report, 0600), 0);
	assert_no_report(f, f->report, "is not a regular file: open it and use fd:N\n");
}

static void refuses_other_descriptors(void **state)
{
	struct fake *f = *state;

	fcntl(f->listener, F_SETFL, O_NONBLOCK);
	assert_no_report(f, "fd:987", "descriptor 987 is not open\n");
	assert_no_report(f, "fd:", "\"fd:\" is no descriptor: write fd:3\n");
	assert_no_report(f, "fd:-1", "\"fd:-1\" is no descriptor: write fd:3\n");
	assert_no_report(f, "fd:max", "\"fd:max\" is no descriptor: write fd:3\n");
	assert_no_report(f, "fd:4294967296", "is no descriptor: write fd:3\n");
}

/* ---- what the supervisor gets ---- */

static void assert_same_file(int fd, const char *path)
{
	struct stat a, b;

	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat(path, &b), 0);
	assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

static void assert_environment(char **envp)
{
	size_t n = 0;

	for (; environ[n]; n++)
		assert_string_equal(envp[n], environ[n]);
	assert_null(envp[n]);
}

static void sends_the_request(void **state)
{
	struct fake *f = *state;
	char **argv, **envp;
	struct client c;
	struct call call;
	struct rlimit limit;

	start_run(&c, f,
		  ARGS("--memory", "64M", "--cpu=50%", "--pids=7", "--time=2s", "--cpu-time=1s",
		       "--io-weight=9", "--io-read=2M", "--io-write=3M", "--swap=0", "--name=job",
		       "--", "guest", "--memory", "a\nb"));
	fake_take(f, &call);
	assert_int_equal(call.type, WIRE_RUN);
	assert_int_equal(call.request.limits.value[LIMIT_MEMORY], 64 << 20);
	assert_int_equal(call.request.limits.value[LIMIT_SWAP], 0);
	assert_int_equal(call.request.limits.value[LIMIT_CPU], 500000);
	assert_int_equal(call.request.limits.value[LIMIT_PIDS], 7);
	assert_int_equal(call.request.limits.value[LIMIT_TIME], 2 * USEC_PER_SEC);
	assert_int_equal(call.request.limits.value[LIMIT_CPU_TIME], USEC_PER_SEC);
	assert_int_equal(call.request.limits.value[LIMIT_IO_WEIGHT], 9);
	assert_int_equal(call.request.limits.value[LIMIT_IO_READ], 2 << 20);
	assert_int_equal(call.request.limits.value[LIMIT_IO_WRITE], 3 << 20);
	assert_string_equal(call.request.name, "job");
	assert_string_equal(call.request.command, "guest --memory a\\x0ab");
	assert_int_equal(call.request.umask, umask(022));
	for (int i = 0; i < GUEST_RLIMITS; i++) {
		assert_int_equal(getrlimit(i, &limit), 0);
		assert_memory_equal(&limit, &call.request.rlimits[i], sizeof(limit));
	}
	assert_int_equal(call.n_fds, RUN_FD_COUNT);
	assert_int_equal(strings_check(call.fds[RUN_FD_STRINGS], NULL), 0);
	assert_int_equal(strings_unpack(call.fds[RUN_FD_STRINGS], &argv, &envp), 0);
	assert_string_equal(argv[0], "guest");
	assert_string_equal(argv[1], "--memory");
	assert_string_equal(argv[2], "a\nb");
	assert_null(argv[3]);
	assert_environment(envp);
	free(argv);
	free(envp);
	assert_same_file(call.fds[RUN_FD_CWD], ".");
	assert_true(fcntl(call.fds[RUN_FD_CWD], F_GETFL) & O_PATH);
	assert_same_file(call.fds[RUN_FD_STDIN], "/dev/null");
	assert_same_file(call.fds[RUN_FD_MNTNS], "/proc/self/ns/mnt");
	dprintf(call.fds[RUN_FD_STDOUT], "out");
	dprintf(call.fds[RUN_FD_STDERR], "err");
	fake_answer(call.sock, WIRE_REFUSED, 0, "enough");
	fake_drop(&call);
	client_expect(&c, 125);
	assert_string_equal(c.out_text, "out");
	assert_string_equal(c.err_text, "errharpe-gov: set-up failed, nothing ran: enough\n");
}

static void sends_its_parent(void **state)
{
	char path[64], text[1024], expected[32];
	struct client c;
	struct call call;

	start_run(&c, *state, ARGS("--with-parent", "guest"));
	fake_take(*state, &call);
	assert_int_equal(call.n_fds, RUN_FD_COUNT + 1);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", call.fds[RUN_FD_COUNT]);
	assert_true(read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	snprintf(expected, sizeof(expected), "\nPid:\t%d\n", getpid());
	assert_non_null(strstr(text, expected));
	fake_drop(&call);
	client_expect(&c, 125);
}

/* More than a program can be started with, so only a test can say it. */
static void refuses_too_much_environment(void **state)
{
	size_t size = GUEST_STRINGS_MAX;
	char *huge = malloc(size + 1);
	struct fake *f = *state;
	struct client c;

	memset(huge, 'x', size);
	huge[size] = '\0';
	start_run(&c, f, (const char *[]){ "guest", huge, NULL });
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "set-up failed, nothing ran: the command and its "
					   "environment take 8"));
	assert_non_null(strstr(c.err_text, " bytes, more than 8388608\n"));
	free(huge);
}

static void leaves_limits_unset(void **state)
{
	struct client c;
	struct call call;

	start_run(&c, *state, ARGS("guest"));
	fake_take(*state, &call);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_true(call.request.limits.value[i] == LIMIT_UNSET);
	assert_string_equal(call.request.name, "");
	fake_drop(&call);
	client_expect(&c, 125);
}

/* ---- failures ---- */

static void reports_a_refusal(void **state)
{
	struct fake *f = *state;
	char option[128];
	struct client c;
	struct call call;

	snprintf(option, sizeof(option), "--report=%s", f->report);
	start_run(&c, f, ARGS(option, "--name=job", "guest"));
	fake_take(f, &call);
	fake_answer(call.sock, WIRE_REFUSED, 0, "--memory: 8G is above the ceiling");
	fake_drop(&call);
	client_expect(&c, 125);
	assert_string_equal(c.err_text, "harpe-gov: set-up failed, nothing ran: --memory: 8G is "
					"above the ceiling\n");
	assert_report_has(f, "\"ended\":\"setup-failed\"");
	assert_report_has(f, "\"guest_ran\":false");
	assert_report_has(f, "\"name\":\"job\"");
	assert_report_has(f, "\"error\":\"--memory: 8G is above the ceiling\"}");
}

/* The daemon refuses before it reads: the client's request may find the connection closed. */
static void hears_a_refusal_before_the_request(void **state)
{
	struct fake *f = *state;

	for (int i = 0; i < 50; i++) {
		struct client c;
		int sock;

		start_run(&c, f, ARGS("guest"));
		sock = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
		if (i % 2)
			usleep(2000); /* now the request is there, unread */
		fake_answer(sock, WIRE_REFUSED, 0, "too many connections");
		close(sock);
		client_expect(&c, 125);
		assert_string_equal(
			c.err_text,
			"harpe-gov: set-up failed, nothing ran: too many connections\n");
	}
}

static void reports_a_lost_governor(void **state)
{
	struct fake *f = *state;
	char option[128];
	struct client c;
	struct call call;

	snprintf(option, sizeof(option), "--report=%s", f->report);
	start_run(&c, f, ARGS(option, "guest"));
	fake_take(f, &call);
	fake_drop(&call);
	client_expect(&c, 125);
	assert_int_equal(strncmp(c.err_text, "harpe-gov: the governor died during the run", 43), 0);
	assert_report_has(f, "\"ended\":\"governor-lost\"");
	assert_report_has(f, "\"guest_ran\":null");
}

static void takes_nonsense_for_a_lost_governor(void **state)
{
	static const char nonsense[] = "this is no message at all, but long enough";
	struct fake *f = *state;
	struct client c;
	struct call call;

	start_run(&c, f, ARGS("guest"));
	fake_take(f, &call);
	assert_int_equal(wire_send(call.sock, nonsense, sizeof(nonsense), NULL, 0), 0);
	client_expect(&c, 125);
	fake_drop(&call);
	start_run(&c, f, ARGS("guest"));
	fake_take(f, &call);
	fake_answer(call.sock, WIRE_DONE, 1, "");
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "message of type"));
	fake_drop(&call);
}

static void says_when_there_is_no_daemon(void **state)
{
	struct fake *f = *state;
	char option[128];
	struct client c;

	snprintf(option, sizeof(option), "--report=%s", f->report);
	close(f->listener);
	start_run(&c, f, ARGS(option, "guest"));
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "systemctl start harpe-gov.socket\n"));
	assert_report_has(f, "\"ended\":\"setup-failed\"");
	unlink(f->socket);
	start_run(&c, f, ARGS("guest"));
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, access("/run/systemd/system", F_OK) == 0
						   ? "systemctl start harpe-gov.socket\n"
						   : "systemd is not running here"));
	f->listener = -1;
}

static void put_state(const struct fake *f, char path[80], const char *sentence)
{
	snprintf(path, 80, "%s/state", f->dir);
	state_refuse(path, sentence);
}

/* systemd listens, so that the connection comes about; nothing is sent into it. */
static void says_why_nobody_takes_the_connection(void **state)
{
	struct fake *f = *state;
	time_t begin = time(NULL);
	char path[80], byte;
	struct client c;
	int sock;

	put_state(f, path, "no \033 here");
	start_run(&c, f, ARGS("guest"));
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "nothing ran: harpe-gov.service does not start: "
					   "no \\x1b here\n"));
	assert_true(time(NULL) - begin <= 5);
	sock = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(recv(sock, &byte, 1, 0), 0);
	close(sock);
	unlink(path);
}

static void does_not_wait_in_a_full_queue_without_a_daemon(void **state)
{
	struct fake *f = *state;
	int waiting[16];
	struct client c;
	char path[80];

	assert_int_equal(listen(f->listener, 0), 0);
	put_state(f, path, "");
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };

		strcpy(address.sun_path, f->socket);
		waiting[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(waiting[i], (const struct sockaddr *)&address, sizeof(address));
	}
	start_run(&c, f, ARGS("guest"));
	client_expect(&c, 125);
	assert_non_null(strstr(c.err_text, "harpe-gov.service is not running"));
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		close(waiting[i]);
	unlink(path);
}

static void waits_for_a_daemon_that_is_being_started(void **state)
{
	struct fake *f = *state;
	struct client c;
	struct call call;
	struct report r;
	char path[80];
	int held;

	put_state(f, path, "not yet");
	start_run(&c, f, ARGS("guest"));
	usleep(300000);
	held = state_hold(path, NULL);
	assert_true(held >= 0);
	fake_take(f, &call);
	report_ended(&r, ENDED_EXITED);
	r.exit_code = 3;
	fake_report(call.sock, &r);
	client_expect(&c, 3);
	fake_drop(&call);
	close(held);
	unlink(path);
}

/* ---- signals to the client ---- */

/* What the supervisor gets when a signal was passed on: its number; -1 at the end of file. */
static int take_signal(int sock)
{
	struct signal_order order = {};
	WIRE_BUFFER(buf);
	ssize_t n = recv(sock, buf, sizeof(buf), 0);

	if (n == 0)
		return -1;
	assert_true(n > 0);
	assert_int_equal(wire_type(buf, (size_t)n, NULL), WIRE_SIGNAL);
	assert_int_equal(wire_decode(signal_fields, signal_n_fields, buf, (size_t)n, &order, NULL),
			 0);
	return (int)order.number;
}

static void say_running(int sock)
{
	WIRE_BUFFER(buf);
	ssize_t n = wire_encode(WIRE_RUNNING, NULL, 0, NULL, buf, sizeof(buf));

	assert_int_equal(wire_send(sock, buf, (size_t)n, NULL, 0), 0);
}

/* A daemon that never answers, or that lets it wait for a place, does not hold it. */
static void ends_before_the_command_runs(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 };
	const struct fake *f = *state;
	char option[128];

	snprintf(option, sizeof(option), "--report=%s", f->report);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct client c;
		struct call call;
		int status;

		start_run(&c, f, ARGS(option, "guest"));
		fake_take(f, &call);
		kill(c.pid, SIGWINCH);
		kill(c.pid, signals[i]);
		while (take_signal(call.sock) > 0)
			;
		fake_drop(&call);
		status = client_wait(&c);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		assert_report_has(f, "\"ended\":\"signaled\"");
	}
}

static void passes_signals_on(void **state)
{
	static const int signals[] = { SIGINT,	SIGTERM, SIGHUP,   SIGQUIT,
				       SIGUSR1, SIGUSR2, SIGWINCH, SIGINT };
	struct client c;
	struct call call;
	struct report r;
	int status;

	start_run(&c, *state, ARGS("guest"));
	fake_take(*state, &call);
	say_running(call.sock);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		kill(c.pid, signals[i]);
		assert_int_equal(take_signal(call.sock), signals[i]);
	}
	report_ended(&r, ENDED_SIGNALED); /* what it does of them is the guest's decision */
	r.signal = SIGTERM;
	fake_report(call.sock, &r);
	status = client_wait(&c);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_string_equal(c.err_text, "");
	fake_drop(&call);
}

/* With nobody reading what it has to say at the end, it can still be ended. */
static void can_be_ended_when_stuck(void **state)
{
	int err[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	static char page[4096];
	struct client c;
	struct call call;
	struct report r;
	int status;

	assert_int_equal(pipe2(err, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(err[1], page, sizeof(page)) > 0)
		;
	fcntl(err[1], F_SETFL, 0);
	client_start(&c, *state, &verb_run, ARGS("guest"), (int[]){ null, null, err[1] });
	fake_take(*state, &call);
	report_ended(&r, ENDED_MEMORY);
	fake_report(call.sock, &r);
	usleep(200000); /* for it to get to its sentence; too early is a pass as well */
	kill(c.pid, SIGTERM);
	status = client_wait(&c);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	fake_drop(&call);
	close(err[0]);
	close(err[1]);
	close(null);
}

static void closes_the_connection_when_killed(void **state)
{
	struct client c;
	struct call call;

	start_run(&c, *state, ARGS("guest"));
	fake_take(*state, &call);
	kill(c.pid, SIGKILL);
	assert_int_equal(take_signal(call.sock), -1);
	client_wait(&c);
	fake_drop(&call);
}

static void ignores_what_its_caller_ignores(void **state)
{
	struct client c;
	struct call call;
	struct report r;

	signal(SIGHUP, SIG_IGN); /* as nohup(1) */
	start_run(&c, *state, ARGS("guest"));
	signal(SIGHUP, SIG_DFL);
	fake_take(*state, &call);
	say_running(call.sock);
	kill(c.pid, SIGHUP);
	kill(c.pid, SIGUSR1);
	assert_int_equal(take_signal(call.sock), SIGUSR1);
	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	fake_report(call.sock, &r);
	client_expect(&c, 0);
	fake_drop(&call);
}

/* ---- terminals ---- */

static void open_terminal(int *ret_master, int *ret_slave)
{
	*ret_master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(*ret_master >= 0 && grantpt(*ret_master) == 0 && unlockpt(*ret_master) == 0);
	*ret_slave = open(ptsname(*ret_master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(*ret_slave >= 0);
}

static void read_until(int fd, const char *last, char *text, size_t size)
{
	size_t used = 0;

	do {
		ssize_t n = read(fd, text + used, size - 1 - used);

		assert_true(n > 0);
		used += (size_t)n;
		text[used] = '\0';
	} while (!strstr(text, last));
}

/* A caller's terminal, a client on it, the fake's pty for the guest, and a guest that leads a
 * session there and waits. */
struct play {
	int master, slave; /* the caller's */
	struct termios before;
	struct client c;
	struct call call;
	int guest_slave;
	pid_t guest;
};

static void start_on_terminal(struct play *p, const struct fake *f, int in, int out)
{
	struct winsize size = { .ws_row = 33, .ws_col = 77 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	open_terminal(&p->master, &p->slave);
	assert_int_equal(ioctl(p->slave, TIOCSWINSZ, &size), 0);
	assert_int_equal(tcgetattr(p->slave, &p->before), 0);
	p->before.c_cc[VERASE] = 8;
	assert_int_equal(tcsetattr(p->slave, TCSANOW, &p->before), 0);
	client_start(&p->c, f, &verb_run, ARGS("guest"),
		     (int[]){ in ? p->slave : null, out ? p->slave : null, null });
	assert_int_equal(setpgid(p->c.pid, p->c.pid), 0); /* what stops it must not stop the test */
	close(null);
	fake_take(f, &p->call);
}

static void lead_session(int slave)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || dup2(slave, 3) < 0 ||
	    close_range(4, ~0U, 0) < 0) /* the connection above all */
		_exit(1);
	for (;;)
		pause();
}

static void send_terminal(int sock, int master)
{
	WIRE_BUFFER(buf);
	ssize_t len = wire_encode(WIRE_TERMINAL, NULL, 0, NULL, buf, sizeof(buf));

	assert_true(len > 0);
	assert_int_equal(wire_send(sock, buf, (size_t)len, &master, 1), 0);
}

static void give_terminal(struct play *p)
{
	int master;

	open_terminal(&master, &p->guest_slave);
	assert_int_equal(tcsetattr(p->guest_slave, TCSANOW, &p->call.request.terminal.modes), 0);
	p->guest = fork();
	if (p->guest == 0)
		lead_session(p->guest_slave);
	while (tcgetsid(master) != p->guest)
		usleep(1000);
	say_running(p->call.sock);
	send_terminal(p->call.sock, master);
	close(master);
}

static int is_raw(int terminal)
{
	struct termios t;

	return tcgetattr(terminal, &t) == 0 && !(t.c_lflag & (ICANON | ECHO | ISIG));
}

static void wait_raw(const struct play *p, int raw)
{
	for (int i = 0; is_raw(p->slave) != raw; i++) {
		assert_true(i < 5000);
		usleep(1000);
	}
}

static void assert_restored(const struct play *p)
{
	struct termios now;

	assert_int_equal(tcgetattr(p->slave, &now), 0);
	assert_memory_equal(&now, &p->before, sizeof(now));
}

static void end_play(struct play *p, int status)
{
	struct report r;

	report_ended(&r, ENDED_EXITED);
	r.exit_code = (uint64_t)status;
	fake_report(p->call.sock, &r);
	client_expect(&p->c, status);
	assert_restored(p);
	kill(p->guest, SIGKILL);
	waitpid(p->guest, NULL, 0);
	close(p->guest_slave);
	fake_drop(&p->call);
	close(p->slave);
	close(p->master);
}

static void relays_terminals(void **state)
{
	char text[256];
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	assert_int_equal(p.call.request.terminals, 3);
	assert_int_equal(p.call.request.terminal.size.ws_row, 33);
	assert_int_equal(p.call.request.terminal.size.ws_col, 77);
	assert_memory_equal(&p.call.request.terminal.modes, &p.before, sizeof(p.before));
	for (int i = RUN_FD_STDIN; i <= RUN_FD_STDERR; i++)
		assert_same_file(p.call.fds[i], "/dev/null");
	assert_false(is_raw(p.slave)); /* ^C is a signal until the command runs */
	give_terminal(&p);
	wait_raw(&p, 1);
	assert_int_equal(write(p.master, "typed\r", 6), 6);
	read_until(p.guest_slave, "\n", text, sizeof(text));
	assert_string_equal(text, "typed\n");
	read_until(p.master, "\n", text, sizeof(text));
	assert_string_equal(text, "typed\r\n"); /* the guest's echo, and only that */
	dprintf(p.guest_slave, "answer\n");
	read_until(p.master, "\n", text, sizeof(text));
	assert_string_equal(text, "answer\r\n");
	/* what is written right before the end arrives as well, though a copy stays open */
	dprintf(p.guest_slave, "last words");
	end_play(&p, 4);
}

static void shows_the_last_words(void **state)
{
	static char words[3000];
	char text[sizeof(words) + 1];
	struct report r;
	struct play p;

	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '.';
	start_on_terminal(&p, *state, 1, 1);
	open_terminal(&p.guest, &p.guest_slave);
	assert_int_equal(write(p.guest_slave, words, sizeof(words)), sizeof(words));
	close(p.guest_slave);
	send_terminal(p.call.sock, p.guest);
	close(p.guest);
	report_ended(&r, ENDED_WALL_CLOCK);
	fake_report(p.call.sock, &r);
	fake_drop(&p.call);
	read_until(p.master, ".", text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(words));
	client_expect(&p.c, 124);
	assert_restored(&p);
	close(p.slave);
	close(p.master);
}

static pid_t start_writer(int fd)
{
	static const char junk[4096];
	pid_t pid = fork();

	while (pid == 0)
		if (write(fd, junk, sizeof(junk)) < 0)
			_exit(0);
	return pid;
}

/* Processes that the guest gave its terminal to and that write on must not keep the client. */
static void leaves_other_writers(void **state)
{
	static char junk[4096];
	struct report r;
	struct play p;
	size_t shown = 0;
	pid_t writers[16];
	int status;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		writers[i] = start_writer(p.guest_slave);
	report_ended(&r, ENDED_EXITED);
	r.exit_code = 4;
	fake_report(p.call.sock, &r);
	while (waitpid(p.c.pid, &status, WNOHANG) == 0) {
		struct pollfd caller = { .fd = p.master, .events = POLLIN };

		usleep(500); /* slower than the writer, which is never waited for then */
		if (poll(&caller, 1, 10) > 0)
			shown += (size_t)read(p.master, junk, sizeof(junk));
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	assert_true(shown < 256 << 10);
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		kill(writers[i], SIGKILL);
		waitpid(writers[i], NULL, 0);
	}
	kill(p.guest, SIGKILL);
	waitpid(p.guest, NULL, 0);
	close(p.guest_slave);
	fake_drop(&p.call);
	close(p.slave);
	close(p.master);
}

static void restores_the_terminal_when_the_governor_is_lost(void **state)
{
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	fake_drop(&p.call);
	client_expect(&p.c, 125);
	assert_restored(&p);
	kill(p.guest, SIGKILL);
	waitpid(p.guest, NULL, 0);
	close(p.guest_slave);
	close(p.slave);
	close(p.master);
}

static void passes_the_size_on(void **state)
{
	struct winsize size = { .ws_row = 10, .ws_col = 20 };
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	ioctl(p.master, TIOCSWINSZ, &size);
	kill(p.c.pid, SIGWINCH);
	for (int i = 0; i < 5000 && size.ws_row == 10; i++) {
		usleep(1000);
		ioctl(p.guest_slave, TIOCGWINSZ, &size);
		if (size.ws_row == 10 && size.ws_col == 20)
			break;
		size.ws_row = 10;
	}
	assert_int_equal(size.ws_col, 20);
	kill(p.c.pid, SIGUSR1); /* the kernel tells the guest; the client need not */
	assert_int_equal(take_signal(p.call.sock), SIGUSR1);
	end_play(&p, 0);
}

static void make_raw(int terminal)
{
	struct termios t;

	assert_int_equal(tcgetattr(terminal, &t), 0);
	cfmakeraw(&t);
	assert_int_equal(tcsetattr(terminal, TCSANOW, &t), 0);
}

static void keys_are_the_guests_signals(void **state)
{
	struct play p;
	int status;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	assert_int_equal(write(p.master, "\x03", 1), 1);
	assert_int_equal(waitpid(p.guest, &status, 0), p.guest);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	end_play(&p, 0);
}

static void keys_are_the_guests_input_when_it_wants_them(void **state)
{
	char text[8] = "";
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	make_raw(p.guest_slave);
	assert_int_equal(write(p.master, "\x03\x1a\x04z", 4), 4);
	read_until(p.guest_slave, "z", text, sizeof(text));
	assert_string_equal(text, "\x03\x1a\x04z");
	end_play(&p, 0);
}

/* Keys that the guest left, or answers of the terminal, are not for the shell's prompt. */
static void discards_what_was_not_read(void **state)
{
	static char keys[1024];
	struct report r;
	struct play p;
	int left = -1;

	memset(keys, 'k', sizeof(keys));
	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	make_raw(p.guest_slave); /* and never read: it fills, then the caller's terminal does */
	fcntl(p.master, F_SETFL, O_NONBLOCK);
	for (int full = 0; full < 50; usleep(1000))
		full = write(p.master, keys, sizeof(keys)) > 0 ? 0 : full + 1;
	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	fake_report(p.call.sock, &r);
	client_expect(&p.c, 0);
	assert_restored(&p);
	make_raw(p.slave);
	assert_int_equal(ioctl(p.slave, FIONREAD, &left), 0);
	assert_int_equal(left, 0);
	kill(p.guest, SIGKILL);
	waitpid(p.guest, NULL, 0);
	close(p.guest_slave);
	close(p.slave);
	close(p.master);
	fake_drop(&p.call);
}

static void wait_stopped(const struct play *p)
{
	int status;

	assert_int_equal(waitpid(p->c.pid, &status, WUNTRACED), p->c.pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	assert_restored(p);
}

static void go_on(const struct play *p)
{
	kill(p->c.pid, SIGCONT);
	assert_int_equal(take_signal(p->call.sock), SIGCONT);
	wait_raw(p, 1);
}

static void stops_by_key(void **state)
{
	char text[16];
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	assert_int_equal(write(p.master, "a\x1a", 2), 2);
	assert_int_equal(take_signal(p.call.sock), SIGTSTP);
	wait_stopped(&p);
	go_on(&p);
	assert_int_equal(write(p.master, "b\r", 2), 2);
	read_until(p.guest_slave, "\n", text, sizeof(text));
	assert_string_equal(text, "ab\n");
	end_play(&p, 0);
}

static void stops_by_signal(void **state)
{
	struct play p;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	kill(p.c.pid, SIGTSTP);
	assert_int_equal(take_signal(p.call.sock), SIGTSTP);
	wait_stopped(&p);
	go_on(&p);
	end_play(&p, 0);
}

static void shows_output_only(void **state)
{
	char text[64];
	struct play p;

	start_on_terminal(&p, *state, 0, 1);
	assert_int_equal(p.call.request.terminals, 2);
	assert_false(p.call.request.terminal.modes.c_oflag & OPOST);
	give_terminal(&p);
	dprintf(p.guest_slave, "line\n");
	read_until(p.master, "\n", text, sizeof(text));
	assert_string_equal(text, "line\r\n");
	assert_false(is_raw(p.slave));
	end_play(&p, 0);
}

static void echoes_with_output_elsewhere(void **state)
{
	char text[64];
	struct play p;

	start_on_terminal(&p, *state, 1, 0);
	assert_int_equal(p.call.request.terminals, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	assert_int_equal(write(p.master, "x", 1), 1);
	read_until(p.master, "x", text, sizeof(text));
	end_play(&p, 0);
}

static void hangs_up_with_the_callers_terminal(void **state)
{
	struct report r;
	struct play p;
	int status;

	start_on_terminal(&p, *state, 1, 1);
	give_terminal(&p);
	wait_raw(&p, 1);
	close(p.master);
	assert_int_equal(waitpid(p.guest, &status, 0), p.guest);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
	report_ended(&r, ENDED_EXITED);
	r.exit_code = 0;
	fake_report(p.call.sock, &r);
	client_expect(&p.c, 0);
	close(p.guest_slave);
	close(p.slave);
	fake_drop(&p.call);
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

/* A shell starts what runs in the background with two of them ignored, nohup(1) with the third. */
static void heed_signals(void)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(passes_exit_codes),
		RUN_TEST(dies_of_signals),
		RUN_TEST(says_which_limit),
		RUN_TEST(says_what_was_not_found),
		RUN_TEST(says_that_a_file_may_not_be_written),
		RUN_TEST(writes_the_whole_report),
		RUN_TEST(reports_to_descriptors),
		RUN_TEST(fails_when_the_report_cannot_be_written),
		RUN_TEST(refuses_a_symbolic_link),
		RUN_TEST(refuses_other_files),
		RUN_TEST(refuses_other_descriptors),
		RUN_TEST(sends_the_request),
		RUN_TEST(sends_its_parent),
		RUN_TEST(refuses_too_much_environment),
		RUN_TEST(leaves_limits_unset),
		RUN_TEST(reports_a_refusal),
		RUN_TEST(hears_a_refusal_before_the_request),
		RUN_TEST(reports_a_lost_governor),
		RUN_TEST(takes_nonsense_for_a_lost_governor),
		RUN_TEST(says_when_there_is_no_daemon),
		RUN_TEST(says_why_nobody_takes_the_connection),
		RUN_TEST(does_not_wait_in_a_full_queue_without_a_daemon),
		RUN_TEST(waits_for_a_daemon_that_is_being_started),
		RUN_TEST(ends_before_the_command_runs),
		RUN_TEST(passes_signals_on),
		RUN_TEST(closes_the_connection_when_killed),
		RUN_TEST(can_be_ended_when_stuck),
		RUN_TEST(ignores_what_its_caller_ignores),
		RUN_TEST(relays_terminals),
		RUN_TEST(shows_the_last_words),
		RUN_TEST(leaves_other_writers),
		RUN_TEST(restores_the_terminal_when_the_governor_is_lost),
		RUN_TEST(passes_the_size_on),
		RUN_TEST(keys_are_the_guests_signals),
		RUN_TEST(keys_are_the_guests_input_when_it_wants_them),
		RUN_TEST(discards_what_was_not_read),
		RUN_TEST(stops_by_key),
		RUN_TEST(stops_by_signal),
		RUN_TEST(shows_output_only),
		RUN_TEST(echoes_with_output_elsewhere),
		RUN_TEST(hangs_up_with_the_callers_terminal),
	};

	heed_signals();
	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
