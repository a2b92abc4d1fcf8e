/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fake.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/unit/test.h"

#define ARGS_MAX 32

int fake_setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(f->dir, "/tmp/harpe-gov-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->socket, sizeof(f->socket), "%s/socket", f->dir);
	snprintf(f->report, sizeof(f->report), "%s/report", f->dir);
	strcpy(address.sun_path, f->socket);
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	*state = f;
	return bind(f->listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	       listen(f->listener, 8) < 0;
}

int fake_teardown(void **state)
{
	struct fake *f = *state;

	close_fd(&f->listener);
	unlink(f->report);
	unlink(f->socket);
	rmdir(f->dir);
	free(f);
	return 0;
}

#define FD_LAST 255 /* of those that a test opens */

/* As execve(2) does, which the client usually comes by. */
static void close_on_exec(void)
{
	for (int fd = STDERR_FILENO + 1; fd <= FD_LAST; fd++)
		if (fcntl(fd, F_GETFD) > 0)
			close(fd);
}

static void run_child(const struct fake *f, const struct verb *verb, const char *const args[],
		      const int stdio[3])
{
	const char *argv[ARGS_MAX] = {};
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 3; i++)
		dup2(stdio[i], i);
	close_on_exec();
	for (size_t i = 0; args[i]; i++)
		argv[i] = args[i];
	status = verb_call(verb, f->socket, (char **)argv);
	fflush(stdout);
	if (status < 0)
		status = die_of(-status);
	_exit(status);
}

void client_start(struct client *c, const struct fake *f, const struct verb *verb,
		  const char *const args[], const int stdio[3])
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	fflush(stdout);
	if (!stdio)
		assert_true(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
	*c = (struct client){ .out = out[0], .err = err[0] };
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0)
		run_child(f, verb, args, stdio ? stdio : (int[]){ null, out[1], err[1] });
	close(null);
	close_fd(&out[1]);
	close_fd(&err[1]);
}

/* All that is there: the test may hold the guest's ends, so there need not be an end. */
static void read_all(int *fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n = *fd < 0 ? 0 : 1;

	fcntl(*fd, F_SETFL, O_NONBLOCK);
	while (n > 0 && used < size - 1) {
		n = read(*fd, text + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	text[used] = '\0';
	close_fd(fd);
	*fd = -1;
}

int client_wait(struct client *c)
{
	int status = -1;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	read_all(&c->out, c->out_text, sizeof(c->out_text));
	read_all(&c->err, c->err_text, sizeof(c->err_text));
	return status;
}

void client_expect(struct client *c, int status)
{
	int got = client_wait(c);

	if (!WIFEXITED(got) || WEXITSTATUS(got) != status)
		fail_msg("status %#x instead of exit %d; stderr: %s", got, status, c->err_text);
}

void fake_take(const struct fake *f, struct call *call)
{
	WIRE_BUFFER(buf);
	ssize_t n;

	call->sock = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(call->sock >= 0);
	n = wire_receive(call->sock, buf, sizeof(buf), call->fds, &call->n_fds);
	assert_true(n > 0);
	call->type = wire_type(buf, (size_t)n, NULL);
	request_clear(&call->request);
	assert_int_equal(
		wire_decode(request_fields, request_n_fields, buf, (size_t)n, &call->request, NULL),
		0);
	assert_int_equal(request_check(&call->request, NULL), 0);
}

void fake_drop(struct call *call)
{
	while (call->n_fds > 0)
		close(call->fds[--call->n_fds]);
	close(call->sock);
}

static void send_object(int sock, enum wire_type type, const struct wire_field *fields, size_t n,
			const void *object)
{
	WIRE_BUFFER(buf);
	ssize_t len = wire_encode(type, fields, n, object, buf, sizeof(buf));

	assert_true(len > 0);
	assert_int_equal(wire_send(sock, buf, (size_t)len, NULL, 0), 0);
}

void fake_report(int sock, const struct report *r)
{
	send_object(sock, WIRE_REPORT, report_fields, report_n_fields, r);
}

void fake_answer(int sock, enum wire_type type, uint64_t count, const char *text)
{
	struct answer a = { .count = count };

	strcpy(a.text, text);
	send_object(sock, type, answer_fields, answer_n_fields, &a);
}
