/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the probes are aimed at: files, Unix sockets, a process and objects of the caller's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "governor/verify/verify.h"

#define KEY_FOR_ALL 0x3f3f3f3f /* all rights for everybody */

static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm" };

/* ---- aims ---- */

static void aim_add(struct prepared *p, enum aim aim, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void aim_add(struct prepared *p, enum aim aim, const char *format, ...)
{
	char *text = p->aim[aim];
	size_t used = strlen(text);
	va_list ap;

	if (used > 0 && used < VERIFY_AIM_MAX - 1)
		text[used++] = ',';
	va_start(ap, format);
	vsnprintf(text + used, VERIFY_AIM_MAX - used, format, ap);
	va_end(ap);
}

static void lacks(struct prepared *p, enum aim aim, const char *what)
{
	snprintf(p->why_not[aim], VERIFY_REASON_MAX, "%.100s: %s", what, strerror(errno));
}

/* ---- files ---- */

static int make_file(const char *path, mode_t mode)
{
	_cleanup_close_ int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || write_whole(fd, "secret\n", 7) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static void add_file(struct prepared *p, enum aim aim, mode_t mode, const char *directory,
		     const char *name)
{
	char path[2 * VERIFY_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (make_file(path, mode) < 0)
		lacks(p, aim, path);
	else
		aim_add(p, aim, "%s", path);
}

static int make_directory(char *path, const char *parent, const char *what, struct error *e)
{
	snprintf(path, VERIFY_PATH_MAX, "%s/%s-XXXXXX", parent, what);
	if (!mkdtemp(path) || chmod(path, 0755) < 0) {
		int r = error_errno(e, -errno, "%s cannot be made", path);

		path[0] = '\0';
		return r;
	}
	return 0;
}

static void prepare_home(struct prepared *p)
{
	const char *home = getenv("HOME");
	char ssh[VERIFY_PATH_MAX + 8];
	struct error e = ERROR_NULL;

	if (!home || home[0] != '/' || make_directory(p->home, home, ".harpe-gov-verify", &e) < 0) {
		for (enum aim aim = AIM_HOME; aim <= AIM_SSH; aim++)
			snprintf(p->why_not[aim], VERIFY_REASON_MAX, "no file in a home: %.120s",
				 e.text[0] ? e.text : "HOME is not set");
		return;
	}
	add_file(p, AIM_HOME, 0600, p->home, "private");
	add_file(p, AIM_HOME, 0644, p->home, "readable");
	add_file(p, AIM_ENV, 0644, p->home, ".env");
	snprintf(ssh, sizeof(ssh), "%s/.ssh", p->home);
	if (mkdir(ssh, 0755) < 0)
		lacks(p, AIM_SSH, ssh);
	else
		add_file(p, AIM_SSH, 0644, ssh, "id_ed25519");
}

static void prepare_places(struct prepared *p)
{
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(name, sizeof(name), "harpe-gov-verify-%s-file", p->nonce);
		add_file(p, AIM_PLACES, 0666, places[i], name);
		aim_add(p, AIM_LEFT, "%s/harpe-gov-verify-%s-left", places[i], p->nonce);
	}
}

static int prepare_files(struct prepared *p, struct error *e)
{
	int r = make_directory(p->work, "/tmp", "harpe-gov-verify", e);

	if (r == 0)
		r = make_directory(p->other, "/tmp", "harpe-gov-verify-other", e);
	if (r < 0)
		return r;
	add_file(p, AIM_OWN, 0644, p->work, "own");
	add_file(p, AIM_LOG, 0666, p->work, "audit.jsonl");
	add_file(p, AIM_OTHER, 0644, p->other, "of-another-run");
	prepare_home(p);
	prepare_places(p);
	return 0;
}

/* ---- Unix sockets ---- */

static void add_unix(struct prepared *p, size_t i, enum aim aim, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	p->unix_fd[i] = fd;
	if (len >= sizeof(sun.sun_path)) { /* of a long home */
		errno = ENAMETOOLONG;
		lacks(p, aim, path);
		return;
	}
	memcpy(sun.sun_path, path, len);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, (socklen_t)len) < 0 ||
	    (path[0] != '@' && chmod(path, 0666) < 0) || listen(fd, 8) < 0)
		lacks(p, aim, path);
	else
		aim_add(p, aim, "%s", path);
}

static void prepare_unix(struct prepared *p)
{
	char path[VERIFY_PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/socket", p->home[0] ? p->home : p->other);
	add_unix(p, 0, AIM_PATH, path);
	snprintf(path, sizeof(path), "/tmp/harpe-gov-verify-%s-socket", p->nonce);
	add_unix(p, 1, AIM_PATH, path);
	snprintf(path, sizeof(path), "@harpe-gov-verify-%s", p->nonce);
	add_unix(p, 2, AIM_ABSTRACT, path);
}

/* ---- a process ---- */

static void be_victim(int fd) __attribute__((noreturn));
static void be_victim(int fd)
{
	sigset_t set;
	int number;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (sigwait(&set, &number) == 0 && write(fd, "s", 1) != 1)
			_exit(1);
}

static void prepare_victim(struct prepared *p)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		lacks(p, AIM_VICTIM, "no pipe");
		return;
	}
	p->victim_fd = fds[0];
	p->victim = fork();
	if (p->victim == 0)
		be_victim(fds[1]);
	close(fds[1]);
	if (p->victim < 0)
		lacks(p, AIM_VICTIM, "no process");
	else
		aim_add(p, AIM_VICTIM, "%d", (int)p->victim);
}

bool victim_was_signalled(const struct prepared *p)
{
	struct pollfd polled = { .fd = p->victim_fd, .events = POLLIN };

	return poll(&polled, 1, 0) > 0;
}

/* ---- objects without a place ---- */

static void prepare_sysv(struct prepared *p)
{
	p->shm = shmget(p->key, 4096, IPC_CREAT | IPC_EXCL | 0666);
	p->msg = msgget(p->key, IPC_CREAT | IPC_EXCL | 0666);
	p->sem = semget(p->key, 1, IPC_CREAT | IPC_EXCL | 0666);
	if (p->shm < 0 || p->msg < 0 || p->sem < 0)
		lacks(p, AIM_SYSV, "no System V object");
	aim_add(p, AIM_SYSV, "%d", p->key);
	aim_add(p, AIM_MADE, "%d", p->key + 1);
}

static void prepare_mqueue(struct prepared *p)
{
	char name[64];
	mqd_t queue;

	snprintf(name, sizeof(name), "/harpe-gov-verify-%s", p->nonce);
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0666, NULL);
	if (queue == (mqd_t)-1) {
		lacks(p, AIM_MQUEUE, "no message queue");
		return;
	}
	mq_close(queue);
	aim_add(p, AIM_MQUEUE, "%s", name);
}

/* In the keyring of this process, with which it goes. */
static void prepare_key(struct prepared *p)
{
	long key = syscall(SYS_add_key, "user", p->nonce, "secret", 6, KEY_SPEC_PROCESS_KEYRING);

	if (key < 0 || syscall(SYS_keyctl, KEYCTL_SETPERM, key, KEY_FOR_ALL) < 0)
		lacks(p, AIM_KEY, "no key");
	else
		aim_add(p, AIM_KEY, "%ld", key);
}

/* ---- all ---- */

static void start_empty(struct prepared *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->unix_fd); i++)
		p->unix_fd[i] = -1;
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		p->listener[i].fd = -1;
	p->victim_fd = -1;
	p->shm = p->msg = p->sem = -1;
}

int prepare(struct prepared *p, const char *target, struct error *e)
{
	uint64_t random = 0;
	int r;

	start_empty(p);
	snprintf(p->target, sizeof(p->target), "%s", target ?: "");
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(e, -errno, "no random number");
	snprintf(p->nonce, sizeof(p->nonce), "%016" PRIx64, random);
	p->key = (int)(random & 0x7ffffffe) | 0x10000;
	r = prepare_files(p, e);
	if (r < 0)
		return r;
	prepare_unix(p);
	prepare_victim(p);
	prepare_sysv(p);
	prepare_mqueue(p);
	prepare_key(p);
	prepare_network(p);
	return 0;
}

/* ---- and away again ---- */

static void remove_in(const char *directory, const char *const names[], size_t n)
{
	char path[2 * VERIFY_PATH_MAX];

	if (!directory[0])
		return;
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		if (unlink(path) < 0 && errno == EISDIR)
			rmdir(path);
	}
	rmdir(directory);
}

static void remove_files(struct prepared *p)
{
	static const char *const work[] = { "own", "audit.jsonl" },
				 *const other[] = { "of-another-run", "socket" },
				 *const home[] = { "private",	      "readable", ".env",
						   ".ssh/id_ed25519", ".ssh",	  "socket" };
	static const char *const ends[] = { "file", "left", "socket" };
	char path[VERIFY_PATH_MAX];

	remove_in(p->work, work, ARRAY_SIZE(work));
	remove_in(p->other, other, ARRAY_SIZE(other));
	remove_in(p->home, home, ARRAY_SIZE(home));
	for (size_t i = 0; p->nonce[0] && i < ARRAY_SIZE(places); i++)
		for (size_t j = 0; j < ARRAY_SIZE(ends); j++) {
			snprintf(path, sizeof(path), "%s/harpe-gov-verify-%s-%s", places[i],
				 p->nonce, ends[j]);
			unlink(path);
		}
}

void prepare_undo(struct prepared *p)
{
	remove_files(p);
	if (p->shm >= 0)
		shmctl(p->shm, IPC_RMID, NULL);
	if (p->msg >= 0)
		msgctl(p->msg, IPC_RMID, NULL);
	if (p->sem >= 0)
		semctl(p->sem, 0, IPC_RMID);
	if (p->aim[AIM_MQUEUE][0])
		mq_unlink(p->aim[AIM_MQUEUE]);
	if (p->victim > 0 && kill(p->victim, SIGKILL) == 0)
		waitpid(p->victim, NULL, 0);
	close_fd(&p->victim_fd);
	for (size_t i = 0; i < ARRAY_SIZE(p->unix_fd); i++)
		close_fd(&p->unix_fd[i]);
	for (size_t i = 0; i < VERIFY_LISTENERS; i++)
		close_fd(&p->listener[i].fd);
}
