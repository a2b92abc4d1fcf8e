/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/confine.h"

#define CONTROL_FD 3
#define STRINGS_FD 4
#define FIRST_FREE 5

#define EXIT_CANNOT_RUN 126 /* as a shell: found, not runnable */
#define EXIT_NOT_FOUND	127

static void send_message(int control, enum child_event event, uint32_t exit_code,
			 const struct error *error)
{
	struct child_message m = { .event = event, .exit_code = exit_code };

	if (error)
		m.error = *error;
	send(control, &m, sizeof(m), MSG_NOSIGNAL);
}

static void fail(int control, enum child_event event, uint32_t exit_code, const struct error *error)
	__attribute__((noreturn));
static void fail(int control, enum child_event event, uint32_t exit_code, const struct error *error)
{
	send_message(control, event, exit_code, error);
	_exit(1);
}

/* Moves @fd out of the way of the low numbers. */
static int raise_fd(int fd, struct error *e)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	return high < 0 ? error_errno(e, -errno, "descriptor %d cannot be kept", fd) : high;
}

/* 0, 1, 2 are the guest's; CONTROL_FD and STRINGS_FD close at exec; nothing else stays open. */
static int arrange_descriptors(const struct child_plan *plan, struct error *e)
{
	int high[5];

	for (int i = 0; i < 5; i++) {
		int fd = i < 3 ? plan->stdio[i] : i == 3 ? plan->control : plan->strings_fd;

		high[i] = raise_fd(fd, e);
		if (high[i] < 0)
			return high[i];
	}
	for (int i = 0; i < 5; i++)
		if (dup3(high[i], i, i < 3 ? 0 : O_CLOEXEC) < 0 && errno != EINVAL)
			return error_errno(e, -errno, "descriptor %d cannot be placed", i);
	if (close_range(FIRST_FREE, ~0U, 0) < 0)
		return error_errno(e, -errno, "descriptors cannot be closed");
	return 0;
}

static int become_guest(const struct child_plan *plan, struct error *e)
{
	int r = confine_reset_process(plan->umask_bits, e);

	if (r < 0)
		return r;
	r = view_build(plan->cwd, plan->tmp_bytes, e);
	if (r < 0)
		return r;
	r = confine_rlimits(plan->rlimits, e);
	if (r < 0)
		return r;
	r = confine_identity(plan->uid, e);
	if (r < 0)
		return r;
	r = view_enter_cwd(plan->cwd, e);
	if (r < 0)
		return r;
	return confine_syscalls(plan->filter, e);
}

/* The interpreter that a script names in its first line, "" when it is no script. */
static void script_interpreter(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	char *start;

	if (n < 2 || buf[0] != '#' || buf[1] != '!') {
		buf[0] = '\0';
		return;
	}
	buf[n] = '\0';
	start = buf + 2 + strspn(buf + 2, " \t");
	start[strcspn(start, " \t\n")] = '\0';
	memmove(buf, start, strlen(start) + 1);
}

static void explain_exec(const char *command, int error_number, struct error *e)
{
	char interpreter[256];

	script_interpreter(command, interpreter, sizeof(interpreter));
	if (error_number == ENOENT && interpreter[0])
		error_set(e, -ENOENT, "%s: its interpreter %s is not there", command, interpreter);
	else if (error_number == ENOENT)
		error_set(e, -ENOENT, "%s: command not found", command);
	else
		error_errno(e, -error_number, "%s: cannot be run", command);
}

static void run_command(char **argv, char **envp) __attribute__((noreturn));
static void run_command(char **argv, char **envp)
{
	struct error e = ERROR_NULL;
	int error_number;

	environ = envp; /* execvp(3) searches the guest's PATH, not ours */
	execvp(argv[0], argv);
	error_number = errno;
	explain_exec(argv[0], error_number, &e);
	fail(CONTROL_FD, CHILD_EXEC_FAILED,
	     error_number == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, &e);
}

void child_main(const struct child_plan *plan)
{
	struct error e = ERROR_NULL;
	char **argv, **envp, go = 0;

	if (become_guest(plan, &e) < 0 || arrange_descriptors(plan, &e) < 0)
		fail(plan->control, CHILD_FAILED, 0, &e);
	if (strings_unpack(STRINGS_FD, &argv, &envp) < 0 || !argv[0]) {
		error_set(&e, -EINVAL, "the command's arguments are malformed");
		fail(CONTROL_FD, CHILD_FAILED, 0, &e);
	}
	send_message(CONTROL_FD, CHILD_READY, 0, NULL);
	if (recv(CONTROL_FD, &go, 1, 0) != 1 || go != CHILD_GO)
		_exit(1);
	run_command(argv, envp);
}
