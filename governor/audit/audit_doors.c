/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doors that no packet filter sees: sockets of the host's by which somebody else sends for a guest.
 * A live guest is looked into through /proc/PID/root, where it decides what lies at a path, so only
 * what is the host's own, by device and inode, counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"
#include "governor/guest/confine.h"

#define SOCKETS_MAX	65536 /* files below /run that are looked at */
#define UNIX_LINE_MAX	512
#define PATH_SHOWN_MAX	512
#define PATH_THEIRS_MAX 1100

/* ---- what a guest sees at a path ---- */

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Does the guest see the host's @path? 1, 0, or a negative errno. */
static int sees(const struct guest_row *row, const char *path, const struct stat *host)
{
	char theirs[PATH_THEIRS_MAX];
	struct stat st;

	snprintf(theirs, sizeof(theirs), "/proc/%" PRIu32 "/root%s", row->main_pid, path);
	if (lstat(theirs, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	return same(&st, host);
}

/* ---- private directories ---- */

static void judge_private(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	static const char *const paths[] = { "/",	 "/proc",    "/run",	"/tmp",
					     "/var/tmp", "/dev/shm", "/dev/pts" };

	(void)a;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stat host;
		int r = stat(paths[i], &host) < 0 ? 0 : sees(row, paths[i], &host);

		if (r != 0 && audit_guest_runs(row))
			finding_add(f, r > 0 ? VERDICT_FAIL : VERDICT_UNKNOWN,
				    r > 0 ? "guest %s sees the host's %s%s" : "guest %s: %s: %s",
				    row->id, paths[i], r > 0 ? "" : strerror(-r));
	}
}

static void look_private(const struct audit *a, struct finding *f)
{
	audit_say_guests(a, judge_private, f);
}

/* ---- doors by name ---- */

static const struct door {
	const char *path, *what;
	bool is_root; /* who may connect is root on the host */
} doors[] = {
	{ "/run/systemd/resolve/io.systemd.Resolve", "systemd-resolved looks names up", false },
	{ "/run/dbus/system_bus_socket", "the system bus, with systemd-resolved behind it", false },
	{ "/run/nscd/socket", "nscd looks names up", false },
	{ "/run/avahi-daemon/socket", "avahi looks names up", false },
	{ "/run/docker.sock", "docker", true },
	{ "/run/containerd/containerd.sock", "containerd", true },
	{ "/run/podman/podman.sock", "podman", true },
	{ "/run/crio/crio.sock", "CRI-O", true },
	{ "/run/libvirt/libvirt-sock", "libvirt", true },
	{ "/run/systemd/private", "systemd itself", true },
};

static void judge_door(const struct audit *a, const struct door *door, const struct stat *st,
		       struct finding *f)
{
	for (size_t i = 0; i < a->before.n; i++) {
		const struct guest_row *row = &a->before.row[i];
		int r = row->state == GUEST_RUNNING ? sees(row, door->path, st) : 0;

		if (r != 0 && audit_guest_runs(row))
			finding_add(f, r > 0 ? VERDICT_FAIL : VERDICT_UNKNOWN,
				    "guest %s %s %s (%s)", row->id,
				    r > 0 ? "sees" : "cannot be looked into for", door->path,
				    door->what);
	}
}

static void look_doors(const struct audit *a, struct finding *f)
{
	size_t n = 0;

	if (a->rows.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "which guests there are is not known: %s",
			    a->rows.e.text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		struct stat st;

		if (stat(doors[i].path, &st) < 0)
			continue;
		n++;
		judge_door(a, &doors[i], &st, f);
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "%zu of %zu are there, no guest sees one", n,
			    ARRAY_SIZE(doors));
}

/* ---- rights ---- */

static void look_rights(const struct audit *a, struct finding *f)
{
	size_t n = 0;

	if (a->config.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "%s", a->config.e.text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		struct stat st;

		if (!doors[i].is_root || stat(doors[i].path, &st) < 0)
			continue;
		n++;
		/* libvirt's asks polkit; the others ask nobody. */
		if ((st.st_mode & S_IWOTH && strstr(doors[i].path, "libvirt") == NULL) ||
		    audit_is_pool_uid(a, st.st_uid) || audit_is_pool_uid(a, st.st_gid))
			finding_add(f, VERDICT_FAIL, "%s (%s) is open to all: mode %04o, %u:%u",
				    doors[i].path, doors[i].what, st.st_mode & 07777, st.st_uid,
				    st.st_gid);
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "%zu are there, none is open to guests", n);
}

/* ---- all sockets below /run ---- */

static void judge_socket(struct audit_walk *w, const char *path, const struct stat *st)
{
	char shown[PATH_SHOWN_MAX];

	if (!S_ISSOCK(st->st_mode) || !(st->st_mode & S_IWOTH))
		return;
	w->n_chosen++;
	for (size_t i = 0; i < w->a->before.n; i++) {
		const struct guest_row *row = &w->a->before.row[i];
		int r = row->state == GUEST_RUNNING ? sees(row, path, st) : 0;

		if (r != 0 && audit_guest_runs(row))
			finding_add(w->f, r > 0 ? VERDICT_FAIL : VERDICT_UNKNOWN, "guest %s %s %s",
				    row->id, r > 0 ? "sees" : "cannot be looked into for",
				    text_escape(path, shown, sizeof(shown)));
	}
}

static void look_sockets(const struct audit *a, struct finding *f)
{
	struct audit_walk w = { .a = a, .f = f, .found = judge_socket, .max = SOCKETS_MAX };

	if (a->rows.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "which guests there are is not known: %s",
			    a->rows.e.text);
		return;
	}
	audit_walk(&w, "/run");
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "%zu are open to all on the host, no guest sees one",
			    w.n_chosen);
}

/* ---- abstract sockets ---- */

/* "Num: RefCount Protocol Flags Type St Inode Path"; flag 0x10000: it listens. A name that the
 * kernel chose is five hexadecimal digits. */
void audit_abstract_name(const char *line, char ret[AUDIT_SOCKET_MAX])
{
	unsigned int flags, type;
	const char *at = strchr(line, '@');

	ret[0] = '\0';
	if (!at || sscanf(line, "%*x: %*x %*x %x %x", &flags, &type) != 2)
		return;
	if (!(flags & 0x10000) && type != SOCK_DGRAM)
		return;
	if (strcspn(at + 1, "\n") == 5 && strspn(at + 1, "0123456789abcdef") == 5)
		return;
	snprintf(ret, AUDIT_SOCKET_MAX, "%.*s", (int)strcspn(at, "\n"), at);
}

/* How many live guests share the host's network namespace, and so its abstract sockets. */
static void count_shared(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	struct stat host, theirs;
	char path[64];

	(void)a;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/net", row->main_pid);
	if (stat("/proc/1/ns/net", &host) < 0 || stat(path, &theirs) < 0 || same(&host, &theirs))
		f->n++;
}

static void name_sockets(FILE *file, size_t guests, struct finding *f)
{
	char line[UNIX_LINE_MAX], name[AUDIT_SOCKET_MAX], shown[4 * AUDIT_SOCKET_MAX];

	while (fgets(line, sizeof(line), file)) {
		audit_abstract_name(line, name);
		if (name[0])
			finding_add(f, VERDICT_UNKNOWN,
				    "%s can be connected to by %zu guest%s: what is behind it may "
				    "send for them",
				    text_escape(name, shown, sizeof(shown)), guests,
				    PLURAL(guests));
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS, "there is none");
}

static void look_abstract(const struct audit *a, struct finding *f)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/net/unix", "re");
	struct finding shared = { 0 };

	if (a->rows.r < 0 || !file) {
		finding_add(f, VERDICT_UNKNOWN, "%s",
			    a->rows.r < 0 ? a->rows.e.text : "/proc/net/unix cannot be read");
		return;
	}
	audit_guests(a, count_shared, &shared);
	if (shared.n == 0)
		finding_add(f, VERDICT_PASS, "no live guest shares the host's network namespace");
	else if (confine_has_scopes())
		finding_add(f, VERDICT_PASS, "Landlock keeps all guests from them");
	else
		name_sockets(file, shared.n, f);
}

#define END_G "harpe-gov kill ID; report it: the guest's view is not what it must be"

const struct audit_check audit_door_checks[] = {
	{ "HG-DOOR-001",
	  "Every live guest has a root, /proc, /run, /tmp, /var/tmp, /dev/shm and /dev/pts of its "
	  "own",
	  "these directories in /proc/PID/root, by device and inode",
	  "The host's sockets lie in /run: whoever sees them asks others to send.", END_G,
	  look_private },
	{ "HG-DOOR-002", "No live guest sees a socket that looks names up or starts programs",
	  "the sockets of systemd-resolved, D-Bus, nscd, avahi, docker, containerd, podman, CRI-O, "
	  "libvirt and systemd in /proc/PID/root",
	  "A DNS query leaves the host with data of the guest's choice in it, sent by somebody "
	  "whom the firewall lets.",
	  END_G, look_doors },
	{ "HG-DOOR-003", "No socket that makes its user root is open to all",
	  "mode and owner of the sockets of docker, containerd, podman, CRI-O, libvirt and systemd",
	  "Should a guest ever see it, it is root.", "chmod o-w it; give it to a group of its own",
	  look_rights },
	{ "HG-DOOR-004", "No live guest sees a socket below /run that is open to all",
	  "all sockets below /run with write permission for others, up to 65536 files; the same "
	  "paths in /proc/PID/root",
	  "What listens there may send for a guest.", END_G, look_sockets },
	{ "HG-DOOR-005", "No live guest can reach an abstract socket of the host's",
	  "/proc/net/unix; /proc/PID/ns/net of each guest; whether the kernel has Landlock's "
	  "scopes",
	  "Abstract sockets have no permissions and no place in the view: a network namespace "
	  "closes them, or Linux 6.12. What listens there, and for whom it sends, cannot be seen "
	  "from "
	  "outside.",
	  "Use the profile isolated, or let the service listen at a path below /run",
	  look_abstract },
	{ 0 },
};
