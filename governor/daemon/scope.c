/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/daemon/part.h"
#include "governor/daemon/scope_message.h"
#include "governor/guest/cgroup.h"

#define SILENCE_USEC	(20 * USEC_PER_SEC) /* without any answer of systemd's */
#define START_USEC	(50 * USEC_PER_SEC) /* for a start, if it answers others */
#define CALL_USEC	(10 * USEC_PER_SEC) /* for the answer to one call */
#define STEP_USEC	USEC_PER_SEC	    /* until it is asked how a start gets on */
#define STEP_SOON_USEC	(USEC_PER_SEC / 5)  /* or where systemd is, when it did not answer */
#define STEP_LATE_USEC	(5 * USEC_PER_SEC)
#define JOB_PATH_MAX	128
#define DESCRIPTION_MAX 128

/* A start, from the question until its answer is known. The answer may get lost: systemd is
 * executed anew (daemon-reexec), the bus restarted, both are busy. Silence is never taken for a no.
 * Whether the call was heard is asked with a later one, GetUnit, since calls are served in their
 * order: when the unit is there it was, and the rest is a matter of waiting; when it is not,
 * StartTransientUnit is sent again. So never more than one of them waits in a queue of systemd's,
 * and none when the owner is called back for the last time and may reap the process. */
struct job {
	struct job *next;
	struct scopes *scopes;
	struct scope_spec spec; /* points to the four that follow */
	char name[SCOPE_NAME_MAX], slice[PART_UNIT_MAX], description[DESCRIPTION_MAX];
	struct limits limits;
	scope_callback callback;
	void *userdata;
	sd_bus_slot *call;	 /* not answered yet */
	sd_event_source *timer;	 /* the next step, if no answer comes before */
	uint64_t begin;		 /* CLOCK_MONOTONIC, in microseconds */
	char path[JOB_PATH_MAX]; /* systemd's job; "" while it is not known */
	bool heard;		 /* the unit was seen */
	bool late;		 /* the owner was told that it takes too long */
	struct error silence;	 /* why there was no answer */
};

struct scopes {
	sd_bus *bus;
	sd_event *event;
	struct job *jobs;
	uint64_t answered; /* when systemd last did, CLOCK_MONOTONIC */
};

/* ---- jobs ---- */

static void job_free(struct job *j)
{
	sd_event_source_disable_unref(j->timer);
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

static void job_step_in(struct job *j, uint64_t usec)
{
	sd_event_source_set_time_relative(j->timer, usec);
	sd_event_source_set_enabled(j->timer, SD_EVENT_ONESHOT);
}

static void job_failed(struct job *j, const char *how)
{
	struct error e = ERROR_NULL;

	job_done(j, error_set(&e, -EIO, "systemd could not start %s: %s", j->name, how), &e);
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
	sd_event_now(s->event, CLOCK_MONOTONIC, &s->answered);
	if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0)
		return 0;
	for (struct job *j = s->jobs; j; j = j->next) {
		if (strcmp(j->path, path) != 0)
			continue;
		if (strcmp(result, "done") == 0)
			job_done(j, 0, &e);
		else
			job_failed(j, result);
		return 0;
	}
	return 0;
}

/* ---- the bus ---- */

static int match_signals(struct scopes *s)
{
	return sd_bus_match_signal_async(s->bus, NULL, MANAGER_NAME, MANAGER_PATH,
					 MANAGER_INTERFACE, "JobRemoved", on_job_removed, NULL, s);
}

/* No answer will come for what was asked on the old connection. */
static void disconnect(struct scopes *s)
{
	for (struct job *j = s->jobs; j; j = j->next)
		j->call = sd_bus_slot_unref(j->call);
	s->bus = sd_bus_close_unref(s->bus);
}

static int connect_bus(struct scopes *s, struct error *e)
{
	int r;

	if (s->bus && sd_bus_is_open(s->bus) > 0)
		return 0;
	disconnect(s);
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

/* ---- asking ---- */

/* Errors that say nothing about the unit: the bus or systemd did not get to it. */
static bool is_silence(const sd_bus_error *error)
{
	static const char *const names[] = {
		SD_BUS_ERROR_NO_REPLY,	      SD_BUS_ERROR_DISCONNECTED,
		SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
		SD_BUS_ERROR_TIMEOUT,	      SD_BUS_ERROR_LIMITS_EXCEEDED,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (sd_bus_error_has_name(error, names[i]))
			return true;
	return false;
}

/* Was this an answer? If not, the question is put again after a pause. */
static bool is_answer(struct job *j, sd_bus_message *m)
{
	const sd_bus_error *error = sd_bus_message_get_error(m);

	j->call = sd_bus_slot_unref(j->call);
	if (!error || !is_silence(error)) {
		sd_event_now(j->scopes->event, CLOCK_MONOTONIC, &j->scopes->answered);
		return true;
	}
	error_set(&j->silence, -ETIMEDOUT, "%s", error->message ? error->message : error->name);
	job_step_in(j, j->late ? STEP_LATE_USEC : STEP_SOON_USEC);
	return false;
}

/* Without an owner the name is that of a systemd which is executed anew: not to be activated. */
static int send_call(struct scopes *s, sd_bus_message *m, sd_bus_slot **ret,
		     sd_bus_message_handler_t handler, void *userdata)
{
	int r = sd_bus_message_set_auto_start(m, false);

	return r < 0 ? r : sd_bus_call_async(s->bus, ret, m, handler, userdata, CALL_USEC);
}

static int call_systemd(struct job *j, sd_bus_message *m, sd_bus_message_handler_t handler)
{
	int r = send_call(j->scopes, m, &j->call, handler, j);

	sd_bus_message_unref(m);
	return r;
}

static int on_started(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct job *j = userdata;
	struct error e = ERROR_NULL;
	const sd_bus_error *error = sd_bus_message_get_error(m);
	const char *path;

	(void)unused;
	if (!is_answer(j, m))
		return 0;
	if (error)
		job_done(j, error_set(&e, -EIO, "systemd refused %s: %s", j->name, error->message),
			 &e);
	else if (sd_bus_message_read(m, "o", &path) < 0 || strlen(path) >= sizeof(j->path))
		job_done(j, error_set(&e, -EIO, "systemd's answer for %s makes no sense", j->name),
			 &e);
	else
		memcpy(j->path, path, strlen(path) + 1);
	return 0;
}

static int ask_start(struct job *j)
{
	sd_bus_message *m = NULL;
	int r = scope_message_start(j->scopes->bus, &j->spec, &m);

	return r < 0 ? r : call_systemd(j, m, on_started);
}

static bool is_member(const struct job *j)
{
	char path[PATH_TEXT_MAX];

	return scope_path(j->name, j->spec.pid, path, NULL) == 0;
}

/* The unit is there: whatever was asked before, systemd has dealt with it. */
static void on_there(struct job *j)
{
	j->heard = true;
	if (is_member(j)) {
		job_done(j, 0, &ERROR_NULL);
		return;
	}
	if (j->late)
		scope_stop(j->scopes, j->name);
	job_step_in(j, j->late ? STEP_LATE_USEC : STEP_USEC);
}

static void on_absent(struct job *j)
{
	if (j->late || j->heard || j->path[0])
		job_failed(j, "its unit is gone again");
	else if (ask_start(j) < 0)
		job_step_in(j, STEP_SOON_USEC);
}

static int on_unit(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct job *j = userdata;

	(void)unused;
	if (!is_answer(j, m))
		return 0;
	if (sd_bus_message_is_method_error(m, NULL))
		on_absent(j);
	else
		on_there(j);
	return 0;
}

static int ask_unit(struct job *j)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(j->scopes->bus, &m, MANAGER_NAME, MANAGER_PATH,
					       MANAGER_INTERFACE, "GetUnit");

	if (r >= 0)
		r = sd_bus_message_append(m, "s", j->name);
	if (r < 0) {
		sd_bus_message_unref(m);
		return r;
	}
	return call_systemd(j, m, on_unit);
}

static bool takes_too_long(const struct job *j, uint64_t now)
{
	uint64_t heard = j->scopes->answered > j->begin ? j->scopes->answered : j->begin;

	return now >= heard + SILENCE_USEC || now >= j->begin + START_USEC;
}

/* The owner need not wait any longer; the job goes on. */
static void say_late(struct job *j, uint64_t now)
{
	struct error e = ERROR_NULL;

	j->late = true;
	error_set(&e, -EINPROGRESS, "systemd did not start %s within %d s (%s)", j->name,
		  (int)((now - j->begin) / USEC_PER_SEC),
		  j->silence.text[0] ? j->silence.text : "its job is not done");
	j->callback(j->userdata, -EINPROGRESS, &e);
}

static int on_step(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct job *j = userdata;
	uint64_t now = usec;
	int r;

	(void)source;
	sd_event_now(j->scopes->event, CLOCK_MONOTONIC, &now);
	job_step_in(j, j->late ? STEP_LATE_USEC : STEP_USEC);
	if (!j->late && takes_too_long(j, now)) {
		say_late(j, now);
		return 0;
	}
	r = connect_bus(j->scopes, &j->silence);
	if (r == 0 && !j->call)
		ask_unit(j);
	return 0;
}

static int job_new(struct scopes *s, const struct scope_spec *spec, struct job **ret)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	snprintf(j->name, sizeof(j->name), "%s", spec->name);
	snprintf(j->slice, sizeof(j->slice), "%s", spec->slice);
	snprintf(j->description, sizeof(j->description), "%s", spec->description);
	j->limits = *spec->limits;
	j->spec = *spec;
	j->spec.name = j->name;
	j->spec.slice = j->slice;
	j->spec.description = j->description;
	j->spec.limits = &j->limits;
	j->scopes = s;
	sd_event_now(s->event, CLOCK_MONOTONIC, &j->begin);
	r = sd_event_add_time_relative(s->event, &j->timer, CLOCK_MONOTONIC, STEP_USEC, 0, on_step,
				       j);
	if (r < 0)
		job_free(j);
	else
		*ret = j;
	return r < 0 ? r : 0;
}

int scope_start(struct scopes *s, const struct scope_spec *spec, scope_callback callback,
		void *userdata, struct error *e)
{
	struct job *j = NULL;
	int r = connect_bus(s, e);

	if (r < 0)
		return r;
	r = job_new(s, spec, &j);
	if (r < 0)
		return error_errno(e, r, "%s", spec->name);
	j->callback = callback;
	j->userdata = userdata;
	r = ask_start(j);
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

int scope_ask_active(struct scopes *s, const char *name, sd_bus_message_handler_t handler,
		     void *userdata, sd_bus_slot **ret)
{
	_cleanup_free_ char *path = NULL;
	sd_bus_message *m = NULL;
	int r = connect_bus(s, NULL);

	if (r >= 0)
		r = sd_bus_path_encode(MANAGER_PATH "/unit", name, &path);
	if (r >= 0)
		r = sd_bus_message_new_method_call(s->bus, &m, MANAGER_NAME, path,
						   "org.freedesktop.DBus.Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", MANAGER_NAME ".Unit", "ActiveState");
	if (r >= 0)
		r = send_call(s, m, ret, handler, userdata);
	sd_bus_message_unref(m);
	return r;
}

bool scope_may_be_active(sd_bus_message *answer)
{
	const char *state;

	if (sd_bus_message_is_method_error(answer, NULL))
		return !sd_bus_message_is_method_error(answer, SD_BUS_ERROR_UNKNOWN_OBJECT) &&
		       !sd_bus_message_is_method_error(answer, MANAGER_NAME ".NoSuchUnit");
	return sd_bus_message_read(answer, "v", "s", &state) < 0 || strcmp(state, "active") == 0;
}

/* ---- looking ---- */

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
