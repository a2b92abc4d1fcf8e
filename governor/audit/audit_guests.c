/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live guests, each by itself, and what lives where only guests may. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/text.h"
#include "governor/audit/audit.h"
#include "governor/daemon/slices.h"
#include "governor/guest/cgroup_limits.h"

/* ---- systemd's address filter ---- */

static void judge_bpf(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	struct error e = ERROR_NULL;

	(void)a;
	if (scope_check_ip_deny(row->cgroup, &e) < 0 && audit_guest_runs(row))
		finding_add(f, VERDICT_FAIL, "guest %s: %s", row->id, e.text);
}

static void look_bpf(const struct audit *a, struct finding *f)
{
	audit_say_guests(a, judge_bpf, f);
}

static void look_ip_rules(const struct audit *a, struct finding *f)
{
	struct error e = ERROR_NULL;
	int r = a->config.r;

	if (r == 0)
		r = slices_check(a->wanted.config, &e);
	else
		e = a->config.e;
	if (r == -ESTALE)
		finding_add(f, VERDICT_FAIL, "%s", e.text);
	else if (r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", e.text);
	else
		finding_add(f, VERDICT_PASS,
			    "systemd holds IPAddressDeny=any for the slices of %" PRIu32
			    " profiles, and nothing in them or above allows more",
			    a->wanted.config->n_profiles);
}

const struct audit_check audit_bpf_checks[] = {
	{ "HG-BPF-001", "Systemd's address filter is attached to every live guest's scope",
	  "the BPF programs of each guest's cgroup, by bpf(2)",
	  "It is the layer that is left when the table is gone; without BPF systemd goes on "
	  "without "
	  "it.",
	  "End the guest (harpe-gov kill ID); systemctl daemon-reload; see journalctl -b _PID=1",
	  look_bpf },
	{ "HG-BPF-002",
	  "Nothing but a profile's own list is allowed by the slices above its guests",
	  "IPAddressDeny= and IPAddressAllow= of each profile's slice, its child slices, " SLICE
	  " and -.slice, by D-Bus",
	  "systemd adds up what all slices above allow, and that wins over what is denied.",
	  "systemctl cat the slice that is named; take the line away; systemctl daemon-reload",
	  look_ip_rules },
	{ 0 },
};

/* ---- who serves ---- */

static void look_daemon(const struct audit *a, struct finding *f)
{
	if (a->daemon == 0)
		finding_add(f, VERDICT_FAIL, "no harpe-govd serves");
	else if (a->rows.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "harpe-govd (%d) does not tell its guests: %s",
			    a->daemon, a->rows.e.text);
	else
		finding_add(f, VERDICT_PASS, "harpe-govd (%d) answers and has %zu guest%s",
			    a->daemon, a->after.n, PLURAL(a->after.n));
}

/* ---- processes ---- */

static bool processes_known(const struct audit *a, struct finding *f)
{
	if (a->processes.r < 0)
		finding_add(f, VERDICT_UNKNOWN, "%s", a->processes.e.text);
	return a->processes.r == 0;
}

/* @id is the scope's: that of its first guest. */
static bool is_scope_of(const struct guest_row *row, const char *id)
{
	char name[SCOPE_NAME_MAX + AUDIT_ID_MAX];

	snprintf(name, sizeof(name), "harpe-%s.scope", id);
	return strcmp(row_scope(row), name) == 0;
}

static bool has_scope(const struct rows *rows, const char *id)
{
	for (size_t i = 0; i < rows->n; i++)
		if (is_scope_of(&rows->row[i], id))
			return true;
	return false;
}

/* Gone meanwhile, or another process by now? */
static bool is_still_there(const struct audit_process *p)
{
	char path[64], text[2 * AUDIT_GROUP_MAX];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", p->pid);
	return read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 && strstr(text, p->group);
}

static void describe(const struct audit_process *p, char *buf, size_t size)
{
	snprintf(buf, size, "process %d (%s, uid %" PRIu32 ") in %s", p->pid, p->name, p->uid[0],
		 p->group[0] ? p->group : "an unknown cgroup");
}

static void look_strays(const struct audit *a, struct finding *f)
{
	char id[AUDIT_ID_MAX], text[ERROR_TEXT_MAX];
	size_t n = 0;

	if (!processes_known(a, f))
		return;
	for (size_t i = 0; i < a->n_processes; i++) {
		const struct audit_process *p = &a->process[i];

		if (!audit_has_pool_uid(a, p))
			continue;
		n++;
		describe(p, text, sizeof(text));
		if (!audit_parse_group(p->group, id) && is_still_there(p))
			finding_add(f, VERDICT_FAIL, "%s", text);
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS,
			    "%zu process%s with a uid of the pool, in guests' scopes", n,
			    n == 1 ? "" : "es");
}

/* The scopes that keep the controllers on hold one sleeping process of the daemon's. */
static bool is_pin(const struct audit_process *p)
{
	const char *at = strstr(p->group, ".slice/harpe-pin-");

	return at && p->uid[0] == 0;
}

/* The ID of any scope of ours, whatever lies below it. */
static bool scope_of(const char *group, char id[AUDIT_ID_MAX])
{
	const char *at = strstr(group, ".slice/harpe-"), *last = NULL;

	for (; at; at = strstr(at + 1, ".slice/harpe-"))
		last = at;
	return last && sscanf(last, ".slice/harpe-%63[0-9a-f].scope", id) == 1 &&
	       strstr(last, ".scope");
}

static bool is_known(const struct audit *a, const struct audit_process *p)
{
	char id[AUDIT_ID_MAX];

	return is_pin(p) ||
	       (scope_of(p->group, id) && (has_scope(&a->before, id) || has_scope(&a->after, id)));
}

static bool is_in_slice(const struct audit_process *p)
{
	return strncmp(p->group, "/" SLICE, strlen("/" SLICE)) == 0;
}

static void look_strangers(const struct audit *a, struct finding *f)
{
	char text[ERROR_TEXT_MAX];
	size_t n = 0;

	if (!processes_known(a, f))
		return;
	if (a->rows.r < 0) {
		finding_add(f, VERDICT_UNKNOWN, "which guests there are is not known: %s",
			    a->rows.e.text);
		return;
	}
	for (size_t i = 0; i < a->n_processes; i++) {
		const struct audit_process *p = &a->process[i];

		n += is_in_slice(p);
		if (!is_in_slice(p) || is_known(a, p) || !is_still_there(p))
			continue;
		describe(p, text, sizeof(text));
		finding_add(f, VERDICT_FAIL, "%s", text);
	}
	if (f->n == 0)
		finding_add(f, VERDICT_PASS,
			    "all of the %zu process%s there are guests' or the "
			    "daemon's",
			    n, n == 1 ? "" : "es");
}

/* ---- each guest ---- */

static void judge_member(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	char path[64], group[2 * AUDIT_GROUP_MAX], want[PATH_TEXT_MAX + 16];

	(void)a;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup", row->main_pid);
	snprintf(want, sizeof(want), "0::%s/guest", row->cgroup + strlen(CGROUP_ROOT));
	if (read_file_at(AT_FDCWD, path, group, sizeof(group)) < 0)
		group[0] = '\0';
	if (strstr(group, want) == NULL && audit_guest_runs(row))
		finding_add(f, VERDICT_FAIL,
			    "guest %s: its process %" PRIu32 " is in %s, not in %s", row->id,
			    row->main_pid, group[0] ? group : "an unknown cgroup", want);
}

static void look_members(const struct audit *a, struct finding *f)
{
	audit_say_guests(a, judge_member, f);
}

static void judge_limits(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	struct error e = ERROR_NULL;
	int r = cgroup_recheck(row->cgroup, &row->own, &row->limits, &e);

	(void)a;
	if (r < 0 && audit_guest_runs(row))
		finding_add(f, r == -ESTALE ? VERDICT_FAIL : VERDICT_UNKNOWN, "guest %s: %s",
			    row->id, e.text);
}

static void look_limits(const struct audit *a, struct finding *f)
{
	audit_say_guests(a, judge_limits, f);
}

/* ---- each guest's processes ---- */

static bool is_of(const struct audit_process *p, const struct guest_row *row)
{
	char id[AUDIT_ID_MAX];

	return audit_parse_group(p->group, id) && is_scope_of(row, id);
}

static bool has_other_uid(const struct audit_process *p, uint32_t uid)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->uid); i++)
		if (p->uid[i] != uid)
			return true;
	return false;
}

/* Is it in a user namespace of its own making? */
static bool is_in_own_userns(const struct audit_process *p)
{
	struct stat host, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", p->pid);
	return stat("/proc/self/ns/user", &host) == 0 && stat(path, &theirs) == 0 &&
	       (host.st_dev != theirs.st_dev || host.st_ino != theirs.st_ino);
}

/* Those of a user namespace that its profile lets it make are good for nothing outside of that. */
static bool has_capabilities(const struct audit *a, const struct guest_row *row,
			     const struct audit_process *p)
{
	const struct profile *profile =
		a->config.r < 0 ? NULL : config_profile(a->wanted.config, row->profile);

	return p->capabilities != 0 &&
	       !(profile && profile->user_namespaces && is_in_own_userns(p));
}

static bool is_unconfined(const struct audit *a, const struct guest_row *row,
			  const struct audit_process *p)
{
	return !p->no_new_privs || !p->filtered || has_capabilities(a, row, p);
}

static void judge_uids(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	char text[ERROR_TEXT_MAX];

	for (size_t i = 0; i < a->n_processes; i++) {
		const struct audit_process *p = &a->process[i];

		if (!is_of(p, row) || !has_other_uid(p, row->uid) || !is_still_there(p))
			continue;
		describe(p, text, sizeof(text));
		finding_add(f, VERDICT_FAIL, "guest %s has uid %" PRIu32 ", but %s", row->id,
			    row->uid, text);
	}
}

static void judge_confined(const struct audit *a, const struct guest_row *row, struct finding *f)
{
	char text[ERROR_TEXT_MAX];

	for (size_t i = 0; i < a->n_processes; i++) {
		const struct audit_process *p = &a->process[i];

		if (!is_of(p, row) || !is_unconfined(a, row, p) || !is_still_there(p))
			continue;
		describe(p, text, sizeof(text));
		finding_add(f, VERDICT_FAIL,
			    "guest %s: %s: no_new_privs %d, seccomp filter %d, capabilities "
			    "%" PRIx64,
			    row->id, text, p->no_new_privs, p->filtered, p->capabilities);
	}
}

static void look_uids(const struct audit *a, struct finding *f)
{
	if (processes_known(a, f))
		audit_say_guests(a, judge_uids, f);
}

static void look_confined(const struct audit *a, struct finding *f)
{
	if (processes_known(a, f))
		audit_say_guests(a, judge_confined, f);
}

#define PROC  "/proc/PID/status and cgroup of every process"
#define END_G "harpe-gov kill ID; find out who changed it"

const struct audit_check audit_guest_checks[] = {
	{ "HG-RUN-001", "A daemon serves and tells its guests",
	  "/run/harpe-gov/state, the daemon's socket",
	  "Without it nobody owns the table, and nobody ends a guest in time.",
	  "systemctl status harpe-gov; journalctl -u harpe-gov", look_daemon },
	{ "HG-RUN-002", "No process has a uid of the pool outside of a guest's scope", PROC,
	  "Such a process is not limited, and whatever guest gets its uid can be read and changed "
	  "by it.",
	  "Kill it; find out who started it: nobody but harpe-govd may use these uids",
	  look_strays },
	{ "HG-RUN-003", "No process is in the guests' slices that is not a guest's", PROC,
	  "It shares what all guests share, and the firewall takes it for one.",
	  "Find out who put it there; systemctl stop its unit", look_strangers },
	{ "HG-RUN-004", "Every live guest is in the scope that was made for it",
	  "/proc/PID/cgroup of each guest's first process",
	  "A process that was moved out of its scope has none of its limits.", END_G,
	  look_members },
	{ "HG-RUN-005", "The limits of every live guest are those that it started with",
	  "memory.max, memory.swap.max, cpu.max, pids.max and io.max of each guest's cgroup and of "
	  "all above it",
	  "A limit that was raised is not there when it is needed.", END_G, look_limits },
	{ "HG-RUN-006", "Every process of a live guest has the guest's uid and no other", PROC,
	  "With another uid it is not told apart from other users of the host.", END_G, look_uids },
	{ "HG-RUN-007", "Every process of a live guest is confined",
	  PROC ": NoNewPrivs, Seccomp, Cap*; /proc/PID/ns/user",
	  "Without no_new_privs a setuid file gives it its owner's rights; without the filter it "
	  "can open sockets that no firewall sees.",
	  END_G, look_confined },
	{ 0 },
};
