/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `harpe-gov run`. The client asks, hands over descriptors and waits for one message; the
 * supervisor is the parent of the guest. When the client dies the supervisor sees the connection
 * close and kills the guest. Signals to the client are the guest's: it decides what they do, and
 * the client ends as the guest does. Before the guest runs there is nobody to decide: those that
 * end a program end the run, however long systemd, the daemon or a place take.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/fd.h"
#include "common/report.h"
#include "governor/client/connect.h"
#include "governor/client/explain.h"
#include "governor/client/relay.h"
#include "governor/client/report_file.h"
#include "governor/client/signals.h"
#include "governor/client/verb.h"
#include "governor/client/view_request.h"

#define STATUS_FAILED 125 /* the governor failed, or the command line is wrong */
#define TMP_SIZE_MIN  4096
#define GIVE_UP_MS    3000 /* for the supervisor to clean up */

enum {
	RUN_NAME = LIMIT_COUNT,
	RUN_REPORT,
	RUN_WAIT,
	RUN_PARENT,
	RUN_NET,
	RUN_EXPLAIN,
	RUN_RO,
	RUN_RW,
	RUN_PIN,
	RUN_HIDE,
	RUN_TMP_SIZE,
	RUN_OPTIONS
};

static struct option_list view_options;

static const struct option run_options[RUN_OPTIONS] = {
	[LIMIT_MEMORY] = { .limit = &limit_table[LIMIT_MEMORY] },
	[LIMIT_SWAP] = { .limit = &limit_table[LIMIT_SWAP] },
	[LIMIT_CPU] = { .limit = &limit_table[LIMIT_CPU] },
	[LIMIT_PIDS] = { .limit = &limit_table[LIMIT_PIDS] },
	[LIMIT_TIME] = { .limit = &limit_table[LIMIT_TIME] },
	[LIMIT_CPU_TIME] = { .limit = &limit_table[LIMIT_CPU_TIME] },
	[LIMIT_IO_WEIGHT] = { .limit = &limit_table[LIMIT_IO_WEIGHT] },
	[LIMIT_IO_READ] = { .limit = &limit_table[LIMIT_IO_READ] },
	[LIMIT_IO_WRITE] = { .limit = &limit_table[LIMIT_IO_WRITE] },
	[RUN_NAME] = { .name = "name",
		       .value = "NAME",
		       .help = "name for ps, kill and the report" },
	[RUN_REPORT] = { .name = "report",
			 .value = "FILE|fd:N",
			 .help = "write the report there, as JSON" },
	[RUN_WAIT] = { .name = "wait",
		       .value = "DURATION",
		       .help = "wait that long for a place, if there is none" },
	[RUN_PARENT] = { .name = "with-parent", .help = "end when the process that called ends" },
	[RUN_NET] = { .name = "net",
		      .value = "PROFILE",
		      .help = "network: isolated, drop, reject or a profile" },
	[RUN_EXPLAIN] = { .name = "explain",
			  .help = "start nothing, print what would be in force" },
	[RUN_RO] = { .name = "ro",
		     .value = "PATH",
		     .help = "show it, read-only; may be repeated",
		     .list = &view_options },
	[RUN_RW] = { .name = "rw",
		     .value = "DIR",
		     .help = "give it, as the guest's own; may be repeated",
		     .list = &view_options },
	[RUN_PIN] = { .name = "pin",
		      .value = "NAME[:ro]",
		      .help = "an entry of that DIR that stays",
		      .list = &view_options },
	[RUN_HIDE] = { .name = "hide",
		       .value = "PATH",
		       .help = "empty it; may be repeated",
		       .list = &view_options },
	[RUN_TMP_SIZE] = { .name = "tmp-size",
			   .value = "SIZE",
			   .help = "of /tmp and the like (default: memory)" },
};

struct run {
	struct request request;
	struct report report;
	struct report_file file;
	struct relay relay;
	int fds[WIRE_FDS_MAX]; /* as in enum run_fd; the standard streams are borrowed */
	int null;	       /* sent in place of terminals */
	int sock;
	int running;	  /* the command does */
	int early;	  /* the signal that ended the run before it did */
	sigset_t waiting; /* the caller's signal mask, in force while waiting */
};

/* ---- the request ---- */

static int parse_limits(struct limits *limits, const char *const values[], struct error *e)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		struct error why;
		int r = values[i] ? limit_parse(i, values[i], &limits->value[i], &why) : 0;

		if (r < 0)
			return error_set(e, r, "--%s", why.text);
	}
	return 0;
}

static int parse_request(struct request *q, const char *const values[], char **argv,
			 struct error *e)
{
	int r = parse_limits(&q->limits, values, e);

	if (r < 0)
		return r;
	if (values[RUN_NAME] && !name_valid(values[RUN_NAME]))
		return error_set(e, -EINVAL,
				 "--name: \"%.72s\" is not 1 to %d of A-Z a-z 0-9 . _ - "
				 "starting with none of . -",
				 values[RUN_NAME], GUEST_NAME_MAX);
	if (values[RUN_NAME])
		strcpy(q->name, values[RUN_NAME]);
	if (values[RUN_WAIT] && unit_parse(UNIT_DURATION, values[RUN_WAIT], &q->wait_usec) < 0)
		return error_set(e, -EINVAL, "--wait: \"%.72s\" is not %s", values[RUN_WAIT],
				 unit_expected(UNIT_DURATION));
	if (values[RUN_NET] && !profile_name_valid(values[RUN_NET]))
		return error_set(
			e, -EINVAL,
			"--net: \"%.72s\" is no network profile's name: 1 to %d of a-z 0-9",
			values[RUN_NET], PROFILE_NAME_MAX);
	if (values[RUN_NET])
		strcpy(q->net, values[RUN_NET]);
	if (values[RUN_TMP_SIZE] &&
	    (unit_parse(UNIT_SIZE, values[RUN_TMP_SIZE], &q->tmp_bytes) < 0 ||
	     q->tmp_bytes < TMP_SIZE_MIN))
		return error_set(e, -EINVAL, "--tmp-size: \"%.72s\" is not %s; 4K is the least",
				 values[RUN_TMP_SIZE], unit_expected(UNIT_SIZE));
	if (values[RUN_REPORT] && !values[RUN_REPORT][0])
		return error_set(
			e, -EINVAL,
			"--report: \"\" is no file: write a path, or fd:3 for a descriptor");
	q->with_parent = values[RUN_PARENT] != NULL;
	if (!argv[0] && !values[RUN_EXPLAIN])
		return error_set(e, -EINVAL, "no command to run: see harpe-gov run --help");
	command_text(argv, q->command);
	return 0;
}

static int collect_rlimits(struct request *q, struct error *e)
{
	for (int i = 0; i < GUEST_RLIMITS; i++)
		if (getrlimit(i, &q->rlimits[i]) < 0)
			return error_errno(e, -errno, "cannot read resource limit %d", i);
	q->umask = umask(0);
	umask(q->umask);
	return 0;
}

static int open_for_guest(int *fd, const char *path, int flags, struct error *e)
{
	*fd = open(path, flags | O_CLOEXEC);
	if (*fd < 0)
		return error_errno(e, -errno, "cannot open %s for the guest", path);
	return 0;
}

/* The number may be that of another process by the time that it is looked up, but not if it is
 * still our parent's afterwards. */
static int open_parent(struct run *run, struct error *e)
{
	pid_t parent = getppid();
	int fd;

	if (parent == 0)
		return error_set(e, -ESRCH,
				 "--with-parent: the parent is outside of this PID namespace");
	fd = run->fds[RUN_FD_COUNT] = (int)syscall(SYS_pidfd_open, parent, 0);
	if (getppid() != parent) {
		run->report.ended = ENDED_CALLER_GONE;
		return error_set(e, -ESRCH, "its parent ended before the command ran");
	}
	if (fd < 0)
		return error_errno(e, -errno, "--with-parent: process %d cannot be watched",
				   (int)parent);
	return 0;
}

/* In place of a terminal goes /dev/null: not even the supervisor gets the caller's. */
static int collect_streams(struct run *run, struct error *e)
{
	relay_open(&run->relay, &run->request);
	if (run->request.terminals) {
		int r = open_for_guest(&run->null, "/dev/null", O_RDWR, e);

		if (r < 0)
			return r;
	}
	for (int i = 0; i < 3; i++)
		run->fds[RUN_FD_STDIN + i] = run->request.terminals & (1u << i) ? run->null : i;
	return 0;
}

static int collect_fds(struct run *run, char **argv, struct error *e)
{
	int r;

	r = run->fds[RUN_FD_STRINGS] = strings_pack(argv, environ, e);
	if (r < 0)
		return r;
	r = open_for_guest(&run->fds[RUN_FD_CWD], ".", O_PATH | O_DIRECTORY, e);
	if (r < 0)
		return r;
	r = open_for_guest(&run->fds[RUN_FD_MNTNS], "/proc/self/ns/mnt", O_RDONLY, e);
	if (r < 0)
		return r;
	return collect_streams(run, e);
}

static void close_sent(struct run *run)
{
	close_fd(&run->fds[RUN_FD_STRINGS]);
	close_fd(&run->fds[RUN_FD_CWD]);
	close_fd(&run->fds[RUN_FD_MNTNS]);
	for (size_t i = RUN_FD_COUNT; i < WIRE_FDS_MAX; i++)
		close_fd(&run->fds[i]);
	close_fd(&run->null);
	run->null = -1;
	for (int i = 0; i < WIRE_FDS_MAX; i++)
		run->fds[i] = -1;
}

/* ---- the run ---- */

static int ask(struct run *run, const char *socket, char **argv, struct error *e)
{
	int r;

	r = collect_rlimits(&run->request, e);
	if (r < 0)
		return r;
	r = run->sock = connect_daemon(socket, e);
	if (r < 0)
		return r;
	signals_catch(&run->waiting);
	signal(SIGPIPE, SIG_IGN);
	r = collect_fds(run, argv, e);
	if (r < 0)
		return r;
	r = send_request(run->sock, WIRE_RUN, &run->request, run->fds, request_n_fds(&run->request),
			 e);
	close_sent(run);
	return r;
}

static int take_report(struct run *run, const void *buf, size_t len, struct error *e)
{
	return wire_decode(report_fields, report_n_fields, buf, len, &run->report, e);
}

static int take_refusal(struct run *run, const void *buf, size_t len, struct error *e)
{
	struct answer answer = {};
	int r = wire_decode(answer_fields, answer_n_fields, buf, len, &answer, e);

	if (r < 0)
		return r;
	run->report.ended = ENDED_SETUP_FAILED;
	strcpy(run->report.error, answer.text);
	return 0;
}

/* One that finds the connection full of others is dropped, as a signal that is pending already. */
static void pass_signal(const struct run *run, int number)
{
	struct signal_order order = { .number = (uint32_t)number };
	WIRE_BUFFER(buf);
	ssize_t n =
		wire_encode(WIRE_SIGNAL, signal_fields, signal_n_fields, &order, buf, sizeof(buf));

	if (n > 0)
		send(run->sock, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* As a program stops at ^Z: all of the guest, then the client, and all of it goes on together. */
static void stop(struct run *run, pid_t whom)
{
	pass_signal(run, SIGTSTP);
	relay_leave(&run->relay);
	signals_stop(whom);
	relay_enter(&run->relay);
	pass_signal(run, SIGCONT);
}

static void serve_signal(struct run *run, int number)
{
	if (number == SIGTSTP) {
		stop(run, getpid());
		return;
	}
	if (number == SIGCONT)
		relay_enter(&run->relay);
	if (!run->running && signal_is_deadly(number)) {
		run->early = number;
		return;
	}
	if (number != SIGWINCH || !relay_resize(&run->relay))
		pass_signal(run, number);
}

/* -EINTR: a signal ended the run. */
static int wait_readable(struct run *run)
{
	enum relay_event event;
	int number;

	while ((event = relay_wait(&run->relay, run->sock, &run->waiting)) != RELAY_MESSAGE) {
		if (event == RELAY_STOP)
			stop(run, 0);
		while ((number = signals_next()) != 0 && !run->early)
			serve_signal(run, number);
		if (run->early)
			return -EINTR;
	}
	return 0;
}

/* The next message that says how the run ended. Returns its length. */
static ssize_t next_message(struct run *run, void *buf, struct error *e)
{
	for (;;) {
		_cleanup_close_ int fd = -1;
		ssize_t n = wait_readable(run);
		int type;

		if (n == 0)
			n = receive_answer(run->sock, buf, &fd, e);
		if (n <= 0)
			return n;
		type = wire_type(buf, (size_t)n, NULL);
		if (type == WIRE_RUNNING)
			run->running = 1;
		else if (type == WIRE_TERMINAL && fd >= 0)
			relay_start(&run->relay, TAKE_FD(fd));
		else
			return n;
	}
}

static int wait_answer(struct run *run, struct error *e)
{
	WIRE_BUFFER(buf);
	ssize_t n = next_message(run, buf, e);
	int type;

	relay_drain(&run->relay, &run->waiting);
	relay_close(&run->relay);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return error_set(e, -ECONNRESET, "the connection to it was closed");
	type = wire_type(buf, (size_t)n, e);
	if (type == WIRE_REPORT)
		return take_report(run, buf, (size_t)n, e);
	if (type == WIRE_REFUSED)
		return take_refusal(run, buf, (size_t)n, e);
	return type < 0 ? type : error_set(e, -EPROTO, "it sent a message of type %d", type);
}

/* What the client knows by itself: enough for a report when the supervisor sends none. */
static void prepare_report(struct run *run)
{
	report_clear(&run->report);
	strcpy(run->report.name, run->request.name);
	strcpy(run->report.command, run->request.command);
	run->report.caller_uid = getuid();
	run->report.ended = ENDED_SETUP_FAILED;
}

/* The connection says no more: whether the guest ran is not known. */
static void lose_governor(struct run *run)
{
	run->report.ended = ENDED_GOVERNOR_LOST;
	run->report.guest_ran = REPORT_RAN_UNKNOWN;
}

/* A signal ended the run before the command ran, as far as was known here. The supervisor, if there
 * is one already, cleans up and says whether that is true. */
static void give_up(struct run *run)
{
	struct pollfd p = { .fd = run->sock, .events = POLLIN };
	WIRE_BUFFER(buf);
	ssize_t n;

	run->report.guest_ran = REPORT_RAN_UNKNOWN;
	shutdown(run->sock, SHUT_WR);
	while (poll(&p, 1, GIVE_UP_MS) > 0 && (n = receive_answer(run->sock, buf, NULL, NULL)) > 0)
		if (wire_type(buf, (size_t)n, NULL) == WIRE_REPORT)
			take_report(run, buf, (size_t)n, NULL);
	run->report.ended = ENDED_SIGNALED;
	run->report.signal = (uint64_t)run->early;
}

/* Report, sentence, status: the order in which the caller can rely on them. */
static int finish(struct run *run)
{
	const struct report *report = &run->report;
	char sentence[2 * ERROR_TEXT_MAX];
	struct error e;
	int r;

	r = report_file_write(&run->file, report, &e);
	signals_release();
	if (report_sentence(report, sentence, sizeof(sentence)))
		complain(sentence);
	if (r < 0) {
		complain(e.text);
		return STATUS_FAILED;
	}
	return report_exit_status(report);
}

static int run_guest(struct run *run, const char *socket, char **argv)
{
	struct error e = ERROR_NULL;
	int r = 0;

	prepare_report(run);
	prctl(PR_SET_DUMPABLE, 0);
	if (run->request.with_parent)
		r = open_parent(run, &e);
	if (r == 0)
		r = ask(run, socket, argv, &e);
	if (r == 0) {
		r = wait_answer(run, &e);
		if (run->early)
			give_up(run);
		else if (r < 0)
			lose_governor(run);
	}
	if (r < 0 && !run->early)
		strcpy(run->report.error, e.text);
	return finish(run);
}

static void run_close(struct run *run)
{
	close_sent(run);
	relay_close(&run->relay);
	report_file_close(&run->file);
	close_fd(&run->sock);
}

/* What the guest gets first: the report must not lie in it. */
static int open_files(struct run *run, const char *report, struct error *e)
{
	int *dirs = run->fds + request_first_view_fd(&run->request);
	int r = view_request_open(run->request.view, dirs, e);

	if (r == 0 && report)
		r = view_request_check_report(run->request.view, dirs, report, e);
	return r == 0 && report ? report_file_open(&run->file, report, e) : r;
}

static int run_main(const char *socket, const char *const values[], char **argv)
{
	_cleanup_(run_close) struct run run = {
		.file = REPORT_FILE_NULL,
		.relay = RELAY_NULL,
		.null = -1,
		.sock = -1,
	};
	struct error e;
	int r;

	for (int i = 0; i < WIRE_FDS_MAX; i++)
		run.fds[i] = -1;
	request_clear(&run.request);
	r = parse_request(&run.request, values, argv, &e);
	if (r == 0)
		r = view_request_parse(&view_options, run.request.view, &e);
	if (r == 0 && values[RUN_EXPLAIN])
		r = explain(socket, &run.request, &e);
	else if (r == 0)
		r = open_files(&run, values[RUN_REPORT], &e);
	if (r == 0 && values[RUN_EXPLAIN])
		return 0;
	if (r == 0)
		return run_guest(&run, socket, argv);
	complain(e.text);
	return STATUS_FAILED;
}

const struct verb verb_run = {
	.name = "run",
	.operands = "[OPTION...] [--] COMMAND [ARGUMENT...]",
	.summary = "Run COMMAND as a guest: limited, under its own uid, without network",
	.details = "The defaults are those that are built in; harpe-gov.conf(5) may say others.\n"
		   "Exit status: the command's own; of a signal if the command died of one;\n"
		   "124 a limit ended it, 125 the governor failed, 126 COMMAND cannot be run,\n"
		   "127 COMMAND was not found. The report tells these from the command's own.\n",
	.set = { run_options, RUN_OPTIONS, 1 },
	.usage_status = STATUS_FAILED,
	.main = run_main,
};
