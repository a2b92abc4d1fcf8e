/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/cgroup.h"

#define MANAGER_NAME	  "org.freedesktop.systemd1"
#define MANAGER_PATH	  "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"

#define STOP_TIMEOUT_USEC  (2 * USEC_PER_SEC) /* SIGKILL is the first signal already */
#define RUNTIME_GRACE_USEC (30 * USEC_PER_SEC)
#define JOB_PATH_MAX	   128

struct job {
	struct job *next;
	char name[SCOPE_NAME_MAX];
	scope_callback callback;
	void *userdata;
	sd_bus_slot *call;
	char path[JOB_PATH_MAX]; /* "" until systemd answered the call */
	struct scopes *scopes;
	bool lost; /* the connection that it was asked on is gone */
};

struct scopes {
	sd_bus *bus;
	sd_event *event;
	struct job *jobs;
};

/* ---- jobs ---- */

static void job_free(struct job *j)
{
	sd_bus_slot_unref(j->call);
	free(j);
}

static struct job *job_unlink(struct scopes *s, struct job *j)
{
	struct job **p = &s->jobs;

	while (*p && *p != j)
		p = &(*p)->next;
	if (*p)
		*p = j->next;
	return j;
}

static void job_done(struct job *j, int r, const struct error *e)
{
	scope_callback callback = j->callback;
	void *userdata = j->userdata;

	job_free(job_unlink(j->scopes, j));
	callback(userdata, r, e);
}

void scope_forget(struct scopes *s, const void *userdata)
{
	for (struct job *j = s->jobs, *next; j; j = next) {
		next = j->next;
		if (j->userdata == userdata)
			job_free(job_unlink(s, j));
	}
}

/* JobRemoved(u id, o job, s unit, s result). It comes after the answer to the call, since both come
 * from PID 1 in order. */
static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct scopes *s = userdata;
	const char *path, *unit, *result;
	struct error e = ERROR_NULL;
	uint32_t id;

	(void)unused;
	if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0)
		return 0;
	for (struct job *j = s->jobs; j; j = j->next) {
		if (strcmp(j->path, path) != 0)
			continue;
		if (strcmp(result, "done") == 0)
			job_done(j, 0, &e);
		else
			job_done(j,
				 error_set(&e, -EIO, "systemd could not start %s: job %s", unit,
					   result),
				 &e);
		return 0;
	}
	return 0;
}

static int on_started(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct job *j = userdata;
	struct error e = ERROR_NULL;
	const sd_bus_error *error = sd_bus_message_get_error(m);
	const char *path;

	(void)unused;
	if (error) {
		job_done(j, error_set(&e, -EIO, "systemd refused %s: %s", j->name, error->message),
			 &e);
		return 0;
	}
	if (sd_bus_message_read(m, "o", &path) < 0 || strlen(path) >= sizeof(j->path)) {
		job_done(j, error_set(&e, -EIO, "systemd's answer for %s makes no sense", j->name),
			 &e);
		return 0;
	}
	memcpy(j->path, path, strlen(path) + 1);
	return 0;
}

/* ---- the bus ---- */

static struct job *find_lost(struct scopes *s)
{
	struct job *j = s->jobs;

	while (j && !j->lost)
		j = j->next;
	return j;
}

/* No answer will come for what was asked on the old connection. The callbacks may want the bus
 * again and ask anew: those jobs are not lost. */
static void fail_jobs(struct scopes *s)
{
	struct error e = ERROR_NULL;
	struct job *j;

	error_set(&e, -ECONNRESET, "the connection to systemd was lost");
	for (j = s->jobs; j; j = j->next)
		j->lost = true;
	while ((j = find_lost(s)))
		job_done(j, -ECONNRESET, &e);
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	(void)m;
	(void)unused;
	fail_jobs(userdata);
	return 0;
}

static int match_signals(struct scopes *s)
{
	int r = sd_bus_match_signal_async(s->bus, NULL, MANAGER_NAME, MANAGER_PATH,
					  MANAGER_INTERFACE, "JobRemoved", on_job_removed, NULL, s);

	return r < 0 ? r
		     : sd_bus_match_signal(s->bus, NULL, "org.freedesktop.DBus.Local",
					   "/org/freedesktop/DBus/Local",
					   "org.freedesktop.DBus.Local", "Disconnected",
					   on_disconnected, s);
}

static int connect_bus(struct scopes *s, struct error *e)
{
	int r;

	if (s->bus && sd_bus_is_open(s->bus) > 0)
		return 0;
	s->bus = sd_bus_close_unref(s->bus);
	fail_jobs(s);
	if (s->bus) /* a callback was faster */
		return 0;
	r = sd_bus_open_system(&s->bus);
	if (r < 0)
		return error_errno(e, r,
				   "no connection to the system bus; is dbus.service running?");
	r = sd_bus_attach_event(s->bus, s->event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = match_signals(s);
	return r < 0 ? error_errno(e, r, "the system bus cannot be used") : 0;
}

int scopes_new(sd_event *event, struct scopes **ret, struct error *e)
{
	struct scopes *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_errno(e, -ENOMEM, "scopes");
	s->event = event;
	r = connect_bus(s, e);
	if (r < 0) {
		scopes_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void scopes_free(struct scopes *s)
{
	if (!s)
		return;
	while (s->jobs)
		job_free(job_unlink(s, s->jobs));
	sd_bus_flush_close_unref(s->bus);
	free(s);
}

/* ---- starting ---- */

static uint64_t backstop_usec(const struct limits *l)
{
	uint64_t time = l->value[LIMIT_TIME];

	return time == LIMIT_INFINITY ? LIMIT_INFINITY : time + RUNTIME_GRACE_USEC;
}

/* What every scope has, whatever its limits: systemd's own last lines of defence are that the scope
 * is stopped with the daemon (BindsTo and After) and killed at once when it is stopped. */
static int append_fixed(sd_bus_message *m, const struct scope_spec *spec)
{
	int r = sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)", "PIDs", "au", 1,
				      (uint32_t)spec->pid, "Slice", "s", spec->slice, "Description",
				      "s", spec->description, "CollectMode", "s",
				      "inactive-or-failed", "BindsTo", "as", 1, SERVICE, "After",
				      "as", 1, SERVICE, "DefaultDependencies", "b", 1);

	if (r < 0)
		return r;
	return sd_bus_message_append(m, "(sv)(sv)(sv)(sv)", "DelegateControllers", "as", 4, "cpu",
				     "memory", "pids", "io", "KillSignal", "i", SIGKILL,
				     "TimeoutStopUSec", "t", STOP_TIMEOUT_USEC, "TasksMax", "t",
				     UINT64_MAX);
}

/* UINT64_MAX is "no limit" on both sides. */
static int append_limits(sd_bus_message *m, const struct limits *l)
{
	return sd_bus_message_append(
		m, "(sv)(sv)(sv)(sv)(sv)", "MemoryMax", "t", l->value[LIMIT_MEMORY],
		"MemorySwapMax", "t", l->value[LIMIT_SWAP], "CPUQuotaPerSecUSec", "t",
		l->value[LIMIT_CPU], "IOWeight", "t", l->value[LIMIT_IO_WEIGHT], "RuntimeMaxUSec",
		"t", backstop_usec(l));
}

static int build_call(struct scopes *s, const struct scope_spec *spec, sd_bus_message **ret)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(s->bus, &m, MANAGER_NAME, MANAGER_PATH,
					       MANAGER_INTERFACE, "StartTransientUnit");

	if (r >= 0)
		r = sd_bus_message_append(m, "ss", spec->name, "fail");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = append_fixed(m, spec);
	if (r >= 0)
		r = append_limits(m, spec->limits);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r < 0) {
		sd_bus_message_unref(m);
		return r;
	}
	*ret = m;
	return 0;
}

int scope_start(struct scopes *s, const struct scope_spec *spec, scope_callback callback,
		void *userdata, struct error *e)
{
	sd_bus_message *m = NULL;
	struct job *j;
	int r = connect_bus(s, e);

	if (r < 0)
		return r;
	r = build_call(s, spec, &m);
	if (r < 0)
		return error_errno(e, r, "the call for %s cannot be built", spec->name);
	j = calloc(1, sizeof(*j));
	if (!j) {
		sd_bus_message_unref(m);
		return error_errno(e, -ENOMEM, "%s", spec->name);
	}
	snprintf(j->name, sizeof(j->name), "%s", spec->name);
	j->callback = callback;
	j->userdata = userdata;
	j->scopes = s;
	r = sd_bus_call_async(s->bus, &j->call, m, on_started, j, 0);
	sd_bus_message_unref(m);
	if (r < 0) {
		job_free(j);
		return error_errno(e, r, "systemd cannot be asked for %s", spec->name);
	}
	j->next = s->jobs;
	s->jobs = j;
	return 0;
}

void scope_stop(struct scopes *s, const char *name)
{
	if (connect_bus(s, NULL) < 0)
		return;
	sd_bus_call_method_async(s->bus, NULL, MANAGER_NAME, MANAGER_PATH, MANAGER_INTERFACE,
				 "StopUnit", NULL, NULL, "ss", name, "replace");
}

/* ---- looking ---- */

/* What is in IPAddressAllow= or IPAddressDeny= (a(iayu): family, address, prefix length). */
struct ip_rules {
	int all, any, loopback; /* how many; of a whole family; of loopback alone */
};

static bool is_loopback(int family, const uint8_t *address, size_t size, uint32_t prefix)
{
	if (family == AF_INET)
		return size == 4 && address[0] == 127 && prefix >= 8;
	return family == AF_INET6 && size == 16 && prefix == 128 &&
	       memcmp(address, &in6addr_loopback, size) == 0;
}

static int count_rule(sd_bus_message *m, struct ip_rules *rules)
{
	const void *address = NULL;
	uint32_t prefix = 0;
	size_t size = 0;
	int family = 0, r = sd_bus_message_read(m, "i", &family);

	if (r >= 0)
		r = sd_bus_message_read_array(m, 'y', &address, &size);
	if (r >= 0)
		r = sd_bus_message_read(m, "u", &prefix);
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r < 0)
		return r;
	rules->all++;
	rules->any += prefix == 0;
	rules->loopback += is_loopback(family, address, size, prefix);
	return 0;
}

static int count_rules(sd_bus_message *m, struct ip_rules *ret)
{
	int r = sd_bus_message_enter_container(m, 'a', "(iayu)");

	*ret = (struct ip_rules){ 0 };
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "iayu")) > 0)
		r = count_rule(m, ret);
	return r;
}

static int get_rules(struct scopes *s, const char *slice, const char *property,
		     struct ip_rules *ret, struct error *e)
{
	sd_bus_message *m = NULL;
	char *path = NULL;
	int r = sd_bus_path_encode(MANAGER_PATH "/unit", slice, &path);

	if (r >= 0)
		r = sd_bus_get_property(s->bus, MANAGER_NAME, path, MANAGER_NAME ".Slice", property,
					NULL, &m, "a(iayu)");
	if (r >= 0)
		r = count_rules(m, ret);
	sd_bus_message_unref(m);
	free(path);
	return r < 0 ? error_errno(e, r, "%s: its %s= cannot be read", slice, property) : 0;
}

int scopes_check_ip_rules(struct scopes *s, const struct profile *profile, struct error *e)
{
	const char *const slices[] = { profile->slice, SLICE, "-.slice" };
	struct ip_rules rules;
	int r = get_rules(s, profile->slice, "IPAddressDeny", &rules, e);

	if (r < 0)
		return r;
	if (rules.any < 2) /* IPv4 and IPv6 */
		return error_set(e, -ESTALE,
				 "%s: IPAddressDeny=any is missing; see systemctl cat %s",
				 profile->slice, profile->slice);
	for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
		r = get_rules(s, slices[i], "IPAddressAllow", &rules, e);
		if (r < 0)
			return r;
		if (rules.all > (profile->own_network ? rules.loopback : 0))
			return error_set(e, -ESTALE,
					 "%s: IPAddressAllow= would win over the guests' "
					 "IPAddressDeny=any; remove it",
					 slices[i]);
	}
	return 0;
}

int scope_path(const char *name, pid_t pid, char path[PATH_TEXT_MAX], struct error *e)
{
	char file[64], text[PATH_TEXT_MAX];
	const char *last;
	ssize_t n;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	n = read_file_at(AT_FDCWD, file, text, sizeof(text));
	last = n < 0 ? NULL : strrchr(text, '/');
	if (!last || strncmp(text, "0::/", 4) != 0 || strcmp(last + 1, name) != 0)
		return error_set(e, -ESRCH, "process %d is not in %s", pid, name);
	if ((size_t)snprintf(path, PATH_TEXT_MAX, "%s%s", CGROUP_ROOT, text + 3) >= PATH_TEXT_MAX)
		return error_set(e, -ENAMETOOLONG, "%s lies too deep", name);
	return 0;
}

/* bpf(2), BPF_PROG_QUERY: how many programs judge what leaves the cgroup. */
static int count_programs(int cgroup_fd, uint32_t attach_type)
{
	union bpf_attr attr = { 0 };

	attr.query.target_fd = (uint32_t)cgroup_fd;
	attr.query.attach_type = attach_type;
	if (syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr)) < 0)
		return -errno;
	return (int)attr.query.prog_cnt;
}

int scope_check_ip_deny(const char *path, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = fd < 0 ? -errno : count_programs(fd, BPF_CGROUP_INET_EGRESS);

	if (n < 0)
		return error_errno(e, -ESTALE, "%s: its BPF programs cannot be looked at (%s)",
				   path, strerror(-n));
	if (n == 0)
		return error_set(e, -ESTALE,
				 "%s: IPAddressDeny=any is not in force; systemd needs BPF for it",
				 path);
	return 0;
}
