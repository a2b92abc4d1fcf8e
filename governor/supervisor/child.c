/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/guest/confine.h"
#include "governor/guest/descriptors.h"
#include "governor/guest/network.h"

/* Descriptors while the guest is being made: the first three are the guest's, the rest close at
 * exec. */
enum { STDIO_FDS = 3, FDS_MAX = STDIO_FDS + 6 + VIEW_ITEMS_MAX + 1 };

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

/* Where the descriptors are that stay, in the order of their new numbers. */
static int list_descriptors(struct child_plan *plan, int *list[FDS_MAX])
{
	struct handed *h = plan->view.handed;
	int n = 0;

	for (int i = 0; i < STDIO_FDS; i++)
		list[n++] = &plan->stdio[i];
	list[n++] = &plan->control;
	list[n++] = &plan->strings_fd;
	list[n++] = &plan->view.start.ground;
	list[n++] = &plan->view.prepared;
	list[n++] = &plan->terminal->mount;
	list[n++] = &h->cwd;
	for (size_t i = 0; i < h->n_trees; i++)
		list[n++] = &h->trees[i].tree;
	return n;
}

/* First of all, and before the caller's limit on their number: nothing of the supervisor's stays.
 */
static int arrange_descriptors(struct child_plan *plan, struct error *e)
{
	int *list[FDS_MAX], n = list_descriptors(plan, list);
	int r = keep_descriptors(list, n, 0, 0);

	return r < 0 ? error_errno(e, r, "descriptors cannot be placed") : 0;
}

/* The first of 0, 1 and 2 that is the guest's terminal. */
static int terminal_stream(const struct child_plan *plan)
{
	int i = 0;

	while (!(plan->terminals & 1u << i))
		i++;
	return i;
}

/* Root's part first; the umask after the view's directories were made. The filter while it is still
 * root's: the kernel sets no bound to root's (net.core.bpf_jit_limit), so others cannot use it up.
 * The working directory as the guest. */
static int become_guest(const struct child_plan *plan, struct error *e)
{
	int r = confine_reset_process(e);

	if (r == 0 && plan->own_network && plan->spaces.net < 0)
		r = network_loopback_up(e);
	if (r == 0)
		r = view_build(&plan->view, e);
	if (r == 0 && plan->terminals)
		r = terminal_enter(plan->terminal->mount, terminal_stream(plan), e);
	umask(plan->umask_bits & 0777);
	if (r == 0)
		r = confine_scopes(e);
	if (r == 0)
		r = confine_rlimits(plan->rlimits, plan->file_bytes, e);
	if (r == 0)
		r = confine_syscalls(plan->filter, e);
	if (r == 0)
		r = confine_identity(plan->uid, e);
	return r == 0 ? view_enter_cwd(plan->view.handed, e) : r;
}

/* The arguments come from the caller: only now, as the guest, are they looked at. */
static int unpack(int fd, char ***ret_argv, char ***ret_envp, struct error *e)
{
	int r = strings_unpack(fd, ret_argv, ret_envp);

	if (r == 0 && !(*ret_argv)[0])
		r = -EINVAL;
	return r < 0 ? error_errno(e, r, "the command's arguments cannot be taken") : 0;
}

/* The interpreter that a script names in its first line, "" when it is no script. */
static void script_interpreter(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;
	char *start;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, buf, size - 1);
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

	interpreter[0] = '\0';
	if (strchr(command, '/')) /* else it was searched for, who knows where */
		script_interpreter(command, interpreter, sizeof(interpreter));
	if (error_number == ENOENT && interpreter[0])
		error_set(e, -ENOENT, "%s: its interpreter %s is not there", command, interpreter);
	else if (error_number == ENOENT)
		error_set(e, -ENOENT, "%s: command not found", command);
	else
		error_errno(e, -error_number, "%s: cannot be run", command);
}

static void run_command(int control, char **argv, char **envp) __attribute__((noreturn));
static void run_command(int control, char **argv, char **envp)
{
	struct error e = ERROR_NULL;
	int error_number;

	environ = envp; /* execvp(3) searches the guest's PATH, not ours */
	execvp(argv[0], argv);
	error_number = errno;
	explain_exec(argv[0], error_number, &e);
	fail(control, CHILD_EXEC_FAILED, error_number == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN,
	     &e);
}

void child_main(struct child_plan *plan)
{
	struct error e = ERROR_NULL;
	char **argv, **envp, go = 0;

	if (spaces_enter(&plan->spaces, &e) < 0 || arrange_descriptors(plan, &e) < 0 ||
	    become_guest(plan, &e) < 0 || unpack(plan->strings_fd, &argv, &envp, &e) < 0)
		fail(plan->control, CHILD_FAILED, 0, &e);
	send_message(plan->control, CHILD_READY, 0, NULL);
	if (recv(plan->control, &go, 1, 0) != 1 || go != CHILD_GO)
		_exit(1);
	run_command(plan->control, argv, envp);
}
