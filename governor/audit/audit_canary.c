/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One packet for each layer of the network, to a listener of the audit's own on loopback. What
 * arrives counts, and what the layer itself has counted; the first packet of all is one that nobody
 * may stop, so that a listener which hears nothing proves something.
 *
 * The rule by uid sees a guest's, which the daemon starts as any other. The rule by slice sees that
 * of a process of root's in a cgroup of its own below the slice: it has no uid of the pool, and no
 * filter of systemd's, which only scopes have. That filter comes behind both rules: no packet of a
 * process that it is attached to gets as far.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "governor/audit/audit.h"
#include "governor/guest/cgroup.h"

#define WAIT_MS	   300 /* loopback delivers at once */
#define GROUP	   CGROUP_ROOT "/" SLICE "/harpe-drop.slice/harpe-canary"
#define REPORT_MAX 65536

struct listener {
	int fd;
	uint16_t port;
};

/* ---- the listener ---- */

static int listen_on_loopback(struct listener *l)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(sin);

	l->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    getsockname(l->fd, (struct sockaddr *)&sin, &size) < 0)
		return -errno;
	l->port = ntohs(sin.sin_port);
	return 0;
}

/* Sends one byte from a socket that is made now. */
static int send_one(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || sendto(fd, "c", 1, 0, (struct sockaddr *)&sin, sizeof(sin)) < 0)
		return -errno;
	return 0;
}

/* Has something arrived? Takes all of it. */
static bool hears(const struct listener *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	char byte;
	bool heard = false;

	poll(&p, 1, WAIT_MS);
	while (recv(l->fd, &byte, 1, 0) >= 0)
		heard = true;
	return heard;
}

/* A listener that was shown to hear, or what is missing as an UNKNOWN. */
static bool listener_open(struct listener *l, struct finding *f)
{
	int r = listen_on_loopback(l);

	if (r == 0)
		r = send_one(l->port);
	if (r < 0)
		finding_add(f, VERDICT_UNKNOWN, "no listener on loopback: %s", strerror(-r));
	else if (!hears(l))
		finding_add(f, VERDICT_UNKNOWN,
			    "a packet of the audit's own does not arrive at its "
			    "listener on loopback either");
	else
		return true;
	return false;
}

/* ---- the rule by uid ---- */

static void run_guest(int report_fd, uint16_t port)
{
	char report[32], script[64];

	snprintf(report, sizeof(report), "--report=fd:%d", report_fd);
	snprintf(script, sizeof(script), "echo c >/dev/udp/127.0.0.1/%u", port);
	if (chdir("/") < 0 || dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO) < 0 ||
	    dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || dup2(STDIN_FILENO, STDERR_FILENO) < 0)
		_exit(125);
	execl(HARPE_GOV, HARPE_GOV, "run", "--net=drop", "--name=audit-canary", "--time=10s",
	      report, "--", "/bin/bash", "-c", script, (char *)NULL);
	_exit(125);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* What the report counts as dropped of the guest's uid: 0 when it did not run. */
static json_int_t reported_drops(int fd, bool *ret_ran)
{
	static char text[REPORT_MAX];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	json_t *root = json_loadb(text, n > 0 ? (size_t)n : 0, 0, NULL);
	json_int_t drops =
		json_integer_value(json_object_get(json_object_get(root, "drops"), "uid"));

	*ret_ran = json_is_true(json_object_get(root, "guest_ran"));
	json_decref(root);
	return drops;
}

static void look_uid_rule(const struct audit *a, struct finding *f)
{
	_cleanup_close_ int report = memfd_create("report", 0);
	struct listener l = { .fd = -1 };
	bool ran, arrived;
	json_int_t drops;
	pid_t pid;

	(void)a;
	if (report >= 0 && listener_open(&l, f)) {
		pid = fork();
		if (pid == 0)
			run_guest(report, l.port);
		if (pid > 0)
			wait_for(pid);
		arrived = hears(&l);
		drops = reported_drops(report, &ran);
		if (arrived)
			finding_add(f, VERDICT_FAIL, "a guest's packet arrived");
		else if (!ran)
			finding_add(f, VERDICT_UNKNOWN,
				    "no guest could be run: harpe-gov run "
				    "--net=drop -- /bin/bash");
		else if (drops == 0)
			finding_add(f, VERDICT_UNKNOWN,
				    "a guest's packet did not arrive, but the "
				    "table did not drop it: something else did");
		else
			finding_add(f, VERDICT_PASS,
				    "a guest's packet did not arrive; the table counts %lld of its "
				    "uid",
				    (long long)drops);
	}
	close_fd(&l.fd);
}

/* ---- the rule by slice ---- */

/* In a child: enters the cgroup, so that the socket is made in there. EPERM is how a drop shows. */
static void send_from_slice(uint16_t port)
{
	int r = write_file_at(AT_FDCWD, GROUP "/cgroup.procs", "0");

	if (r < 0)
		_exit(1);
	r = send_one(port);
	_exit(r == 0 || r == -EPERM ? 0 : 1);
}

static int stray_drops(uint64_t *ret, struct error *e)
{
	struct firewall *fw = NULL;
	struct stat st;
	int r = stat(GROUP, &st) < 0 ? error_errno(e, -errno, GROUP) : firewall_open(&fw, e);

	if (r == 0)
		r = firewall_stray_drops(fw, st.st_ino, ret, e);
	firewall_free(fw);
	return r;
}

static void judge_slice(const struct listener *l, int status, struct finding *f)
{
	struct error e = ERROR_NULL;
	uint64_t drops = 0;

	if (hears(l))
		finding_add(f, VERDICT_FAIL, "a packet from a cgroup below the slice arrived");
	else if (status != 0)
		finding_add(f, VERDICT_UNKNOWN, "no packet could be sent from " GROUP);
	else if (stray_drops(&drops, &e) < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", e.text);
	else if (drops == 0)
		finding_add(f, VERDICT_UNKNOWN,
			    "it did not arrive, but the table did not drop it: "
			    "something else did");
	else
		finding_add(f, VERDICT_PASS,
			    "a packet of root's from the slice did not arrive; the table counts "
			    "%" PRIu64 " of its cgroup",
			    drops);
}

static void look_slice_rule(const struct audit *a, struct finding *f)
{
	struct listener l = { .fd = -1 };
	pid_t pid;

	(void)a;
	if (mkdir(GROUP, 0755) < 0 && errno != EEXIST) {
		finding_add(f, VERDICT_UNKNOWN, GROUP " cannot be made: %s", strerror(errno));
		return;
	}
	if (listener_open(&l, f)) {
		pid = fork();
		if (pid == 0)
			send_from_slice(l.port);
		judge_slice(&l, pid > 0 ? wait_for(pid) : 1, f);
	}
	rmdir(GROUP);
	close_fd(&l.fd);
}

/* ---- systemd's filter ---- */

static void look_filter(const struct audit *a, struct finding *f)
{
	(void)a;
	finding_add(
		f, VERDICT_UNKNOWN,
		"it cannot be tried alone: the table drops what would reach it. See HG-BPF-001");
}

const struct audit_check audit_canary_checks[] = {
	{ "HG-NET-001", "The rule by uid drops what a guest sends",
	  "a guest with --net drop that sends to a listener on loopback; the drops in its report",
	  "What the rules say was compared; this is what they do.",
	  "If it arrived: systemctl stop harpe-gov.socket, and report it. Else see what else "
	  "drops: harpe-gov firewall explain",
	  look_uid_rule },
	{ "HG-NET-002", "The rule by slice drops what has no uid of the pool",
	  "a process of root's in a cgroup of its own below harpe-drop.slice that sends to a "
	  "listener on loopback; the table's counter of that cgroup",
	  "It is what stops sockets without an owner, such as those that the kernel makes for "
	  "AF_SMC or keeps after close(2).",
	  "If it arrived: systemctl stop harpe-gov.socket, and report it", look_slice_rule },
	{ "HG-NET-003", "Systemd's address filter drops what a guest sends",
	  "nothing: the layers before it cannot be taken away from it",
	  "A layer that was not seen at work is not called good.", "Nothing can be done",
	  look_filter },
	{ 0 },
};
