/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/report.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"

const char *const ended_names[ENDED_COUNT] = {
	[ENDED_EXITED] = "exited",
	[ENDED_SIGNALED] = "signaled",
	[ENDED_MEMORY] = "memory",
	[ENDED_CPU_TIME] = "cpu-time",
	[ENDED_WALL_CLOCK] = "wall-clock",
	[ENDED_KILLED] = "killed",
	[ENDED_CALLER_GONE] = "caller-gone",
	[ENDED_POLICY_LOST] = "policy-lost",
	[ENDED_SETUP_FAILED] = "setup-failed",
	[ENDED_GOVERNOR_STOPPED] = "governor-stopped",
	[ENDED_GOVERNOR_LOST] = "governor-lost",
	[ENDED_UNKILLABLE] = "unkillable",
};

#define FIELD(attr, kind, member) WIRE_FIELD(attr, kind, struct report, member)

const struct wire_field report_fields[] = {
	FIELD(1, WIRE_STRING, id),
	FIELD(2, WIRE_STRING, name),
	FIELD(3, WIRE_STRING, command),
	FIELD(4, WIRE_STRING, profile),
	FIELD(5, WIRE_U32, ended),
	FIELD(6, WIRE_U32, guest_ran),
	FIELD(7, WIRE_U64, exit_code),
	FIELD(8, WIRE_U64, signal),
	FIELD(9, WIRE_U64, uid),
	FIELD(10, WIRE_U64, caller_uid),
	FIELD(11, WIRE_U64, started_usec),
	FIELD(12, WIRE_U64, wall_usec),
	FIELD(13, WIRE_U64, cpu_usec),
	FIELD(14, WIRE_U64, cpu_user_usec),
	FIELD(15, WIRE_U64, cpu_system_usec),
	FIELD(16, WIRE_U64, throttled_usec),
	FIELD(17, WIRE_U64, memory_peak),
	FIELD(18, WIRE_U64, memory_oom_kills),
	FIELD(19, WIRE_U64, pids_peak),
	FIELD(20, WIRE_U64, pids_refused),
	FIELD(21, WIRE_U64, left_processes),
	FIELD(22, WIRE_U64, drops_uid),
	FIELD(23, WIRE_U64, drops_slice),
	FIELD(24, WIRE_U64, limits.value[LIMIT_MEMORY]),
	FIELD(25, WIRE_U64, limits.value[LIMIT_SWAP]),
	FIELD(26, WIRE_U64, limits.value[LIMIT_CPU]),
	FIELD(27, WIRE_U64, limits.value[LIMIT_PIDS]),
	FIELD(28, WIRE_U64, limits.value[LIMIT_TIME]),
	FIELD(29, WIRE_U64, limits.value[LIMIT_CPU_TIME]),
	FIELD(30, WIRE_STRING, error),
	FIELD(31, WIRE_U64, memory_limit_hits),
	FIELD(32, WIRE_U64, limits.value[LIMIT_IO_WEIGHT]),
	FIELD(33, WIRE_U64, limits.value[LIMIT_IO_READ]),
	FIELD(34, WIRE_U64, limits.value[LIMIT_IO_WRITE]),
	FIELD(35, WIRE_BYTES, asked),
	FIELD(36, WIRE_U64, swap_peak),
	FIELD(37, WIRE_U64, memory_anon),
	FIELD(38, WIRE_U64, memory_shmem),
	FIELD(39, WIRE_U64, memory_cache),
	FIELD(40, WIRE_U64, io_read),
	FIELD(41, WIRE_U64, io_written),
	FIELD(42, WIRE_U64, unroutable),
	FIELD(43, WIRE_STRING, scope),
	WIRE_ORIGINS(128, struct report, origins),
};
const size_t report_n_fields = ARRAY_SIZE(report_fields);

void report_clear(struct report *r)
{
	*r = (struct report){ .ended = ENDED_GOVERNOR_LOST };
	for (size_t i = 0; i < report_n_fields; i++)
		if (report_fields[i].kind == WIRE_U64)
			memcpy((char *)r + report_fields[i].offset, &(uint64_t){ REPORT_UNKNOWN },
			       sizeof(uint64_t));
	limits_clear(&r->limits);
	limits_clear(&r->asked);
}

/* ---- JSON ---- */

static json_t *make_text(const char *text)
{
	char escaped[4 * ERROR_TEXT_MAX];

	return text[0] ? json_string(text_escape(text, escaped, sizeof(escaped))) : json_null();
}

static json_t *make_number(uint64_t value)
{
	return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static json_t *member_schema(const struct report *r, size_t offset)
{
	(void)r;
	(void)offset;
	return json_integer(REPORT_SCHEMA);
}

static json_t *member_text(const struct report *r, size_t offset)
{
	return make_text((const char *)r + offset);
}

static json_t *member_number(const struct report *r, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)r + offset, sizeof(value));
	return make_number(value);
}

static json_t *member_ended(const struct report *r, size_t offset)
{
	(void)offset;
	return r->ended < ENDED_COUNT ? json_string(ended_names[r->ended]) : json_null();
}

static json_t *member_ran(const struct report *r, size_t offset)
{
	(void)offset;
	return r->guest_ran > 1 ? json_null() : json_boolean(r->guest_ran);
}

static json_t *make_limit(uint64_t value)
{
	return value == LIMIT_INFINITY ? json_string("max") : make_number(value);
}

/* One member per limit, by @make from @of. */
static json_t *each_limit(const void *of, json_t *(*make)(const void *of, int limit))
{
	json_t *object = json_object();
	int failed = 0;

	for (int i = 0; i < LIMIT_COUNT; i++)
		failed |= json_object_set_new(object, limit_table[i].json, make(of, i));
	if (!failed)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *limit_value(const void *limits, int limit)
{
	return make_limit(((const struct limits *)limits)->value[limit]);
}

json_t *limits_json(const struct limits *limits)
{
	return each_limit(limits, limit_value);
}

static json_t *limit_details(const void *report, int limit)
{
	const struct report *r = report;

	return json_pack("{s:o, s:o, s:o}", "asked", make_limit(r->asked.value[limit]), "effective",
			 make_limit(r->limits.value[limit]), "origin",
			 make_text(r->origins.text[limit]));
}

static json_t *member_limits(const struct report *r, size_t offset)
{
	(void)offset;
	return limits_json(&r->limits);
}

static json_t *member_details(const struct report *r, size_t offset)
{
	(void)offset;
	return each_limit(r, limit_details);
}

struct member {
	const char *group; /* the object it is in; NULL: the report itself */
	const char *key;
	json_t *(*make)(const struct report *r, size_t offset);
	size_t offset;
};

#define MEMBER(group, key, make, member)                                                           \
	{                                                                                          \
		group, key, make, offsetof(struct report, member)                                  \
	}

static const struct member members[] = {
	{ NULL, "schema", member_schema, 0 },
	MEMBER(NULL, "id", member_text, id),
	MEMBER(NULL, "name", member_text, name),
	MEMBER(NULL, "command", member_text, command),
	MEMBER(NULL, "ended", member_ended, ended),
	MEMBER(NULL, "exit_code", member_number, exit_code),
	MEMBER(NULL, "signal", member_number, signal),
	MEMBER(NULL, "guest_ran", member_ran, guest_ran),
	MEMBER(NULL, "uid", member_number, uid),
	MEMBER(NULL, "caller_uid", member_number, caller_uid),
	MEMBER(NULL, "profile", member_text, profile),
	MEMBER(NULL, "scope", member_text, scope),
	MEMBER(NULL, "started_usec", member_number, started_usec),
	MEMBER(NULL, "wall_usec", member_number, wall_usec),
	MEMBER("cpu", "usage_usec", member_number, cpu_usec),
	MEMBER("cpu", "user_usec", member_number, cpu_user_usec),
	MEMBER("cpu", "system_usec", member_number, cpu_system_usec),
	MEMBER("cpu", "throttled_usec", member_number, throttled_usec),
	MEMBER("memory", "peak_bytes", member_number, memory_peak),
	MEMBER("memory", "oom_kills", member_number, memory_oom_kills),
	MEMBER("memory", "limit_hits", member_number, memory_limit_hits),
	MEMBER("memory", "swap_peak_bytes", member_number, swap_peak),
	MEMBER("memory", "anon_bytes", member_number, memory_anon),
	MEMBER("memory", "shmem_bytes", member_number, memory_shmem),
	MEMBER("memory", "cache_bytes", member_number, memory_cache),
	MEMBER("io", "read_bytes", member_number, io_read),
	MEMBER("io", "written_bytes", member_number, io_written),
	MEMBER("pids", "peak", member_number, pids_peak),
	MEMBER("pids", "refused_forks", member_number, pids_refused),
	MEMBER("pids", "left_at_end", member_number, left_processes),
	MEMBER("drops", "uid", member_number, drops_uid),
	MEMBER("drops", "slice", member_number, drops_slice),
	MEMBER("drops", "unroutable", member_number, unroutable),
	MEMBER(NULL, "limits", member_limits, limits),
	MEMBER(NULL, "limit_details", member_details, limits),
	MEMBER(NULL, "error", member_text, error),
};

/* The object that @group names, made when it is not there yet. Borrowed. */
static json_t *group_object(json_t *root, const char *group)
{
	if (!group)
		return root;
	if (!json_object_get(root, group))
		json_object_set_new(root, group, json_object());
	return json_object_get(root, group);
}

static char *dump_line(const json_t *root)
{
	_cleanup_free_ char *text = json_dumps(root, JSON_COMPACT);
	char *line;

	if (!text || asprintf(&line, "%s\n", text) < 0)
		return NULL;
	return line;
}

/* NULL when out of memory. */
static json_t *report_object(const struct report *r)
{
	json_t *root = json_object();
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		failed |= json_object_set_new(group_object(root, members[i].group), members[i].key,
					      members[i].make(r, members[i].offset));
	if (!failed)
		return root;
	json_decref(root);
	return NULL;
}

char *report_json(const struct report *r)
{
	json_t *root = report_object(r);
	char *line = root ? dump_line(root) : NULL;

	json_decref(root);
	return line;
}

/* ---- flat ---- */

struct flat {
	report_take take;
	void *userdata;
	char name[128];
};

/* Appends "_KEY" in upper case to the name, @used long; returns its length. */
static size_t name_member(struct flat *f, size_t used, const char *key)
{
	if (used > 0 && used < sizeof(f->name) - 1)
		f->name[used++] = '_';
	for (; *key && used < sizeof(f->name) - 1; key++)
		f->name[used++] = (char)toupper((unsigned char)*key);
	f->name[used] = '\0';
	return used;
}

static void take_value(struct flat *f, const json_t *value)
{
	char number[32];

	if (json_is_string(value)) {
		f->take(f->userdata, f->name, json_string_value(value));
	} else if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		f->take(f->userdata, f->name, number);
	} else if (json_is_boolean(value)) {
		f->take(f->userdata, f->name, json_is_true(value) ? "true" : "false");
	}
}

static void flatten(struct flat *f, size_t used, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		size_t now = name_member(f, used, key);

		if (json_is_object(value))
			flatten(f, now, value); /* as deep as the members: two */
		else
			take_value(f, value);
	}
}

int report_flat(const struct report *r, report_take take, void *userdata)
{
	struct flat f = { .take = take, .userdata = userdata };
	json_t *root = report_object(r);

	if (!root)
		return -ENOMEM;
	flatten(&f, 0, root);
	json_decref(root);
	return 0;
}

/* ---- the sentence ---- */

struct shown {
	char text[32];
};

static const char *show(enum unit_kind kind, uint64_t value, struct shown *s)
{
	if (value == REPORT_UNKNOWN || value == LIMIT_UNSET)
		return "unknown";
	return unit_format(kind, value, s->text, sizeof(s->text));
}

static void say_memory(const struct report *r, char *buf, size_t size)
{
	struct shown limit, kills, peak;

	if (r->memory_limit_hits == 0) {
		snprintf(buf, size,
			 "the kernel killed the guest, which was below its own memory limit of %s: "
			 "all "
			 "guests together, or the host, ran out of memory (peak %s)",
			 show(UNIT_SIZE, r->limits.value[LIMIT_MEMORY], &limit),
			 show(UNIT_SIZE, r->memory_peak, &peak));
		return;
	}
	snprintf(buf, size,
		 "memory limit of %s reached: the guest was killed (%s kill%s by the kernel, "
		 "peak %s)",
		 show(UNIT_SIZE, r->limits.value[LIMIT_MEMORY], &limit),
		 show(UNIT_COUNT, r->memory_oom_kills, &kills), PLURAL(r->memory_oom_kills),
		 show(UNIT_SIZE, r->memory_peak, &peak));
}

static void say_cpu_time(const struct report *r, char *buf, size_t size)
{
	struct shown limit, used, wall;

	snprintf(buf, size,
		 "CPU time limit of %s reached: the guest was killed (used %s of CPU in %s)",
		 show(UNIT_DURATION, r->limits.value[LIMIT_CPU_TIME], &limit),
		 show(UNIT_DURATION, r->cpu_usec, &used), show(UNIT_DURATION, r->wall_usec, &wall));
}

static void say_wall_clock(const struct report *r, char *buf, size_t size)
{
	struct shown limit, used;

	snprintf(buf, size, "wall-clock limit of %s reached: the guest was killed (used %s of CPU)",
		 show(UNIT_DURATION, r->limits.value[LIMIT_TIME], &limit),
		 show(UNIT_DURATION, r->cpu_usec, &used));
}

/* What is said of the rest; the error follows when there is one. */
static const char *const plain_sentences[ENDED_COUNT] = {
	[ENDED_EXITED] = "the command ended",
	[ENDED_KILLED] = "killed by an operator: \"harpe-gov kill\", or its scope was stopped",
	[ENDED_CALLER_GONE] = "the caller went away: the guest was killed",
	[ENDED_POLICY_LOST] = "the firewall was no longer in force: the guest was killed",
	[ENDED_SETUP_FAILED] = "set-up failed, nothing ran",
	[ENDED_GOVERNOR_STOPPED] = "the governor was stopped: the guest was killed",
	[ENDED_GOVERNOR_LOST] = "the governor died during the run: the guest is killed with it",
	[ENDED_UNKILLABLE] = "processes of the guest did not go away after SIGKILL",
};

static void say_plain(const struct report *r, char *buf, size_t size)
{
	const char *sentence = plain_sentences[r->ended];

	if (r->ended == ENDED_SETUP_FAILED && (r->exit_code == 126 || r->exit_code == 127))
		sentence = "nothing ran";
	snprintf(buf, size, "%s%s%s", sentence, r->error[0] ? ": " : "", r->error);
}

/* Of a command that was killed by a signal of somebody else's nothing is said. */
static void (*const sayers[ENDED_COUNT])(const struct report *, char *, size_t) = {
	[ENDED_EXITED] = say_plain,	      [ENDED_MEMORY] = say_memory,
	[ENDED_CPU_TIME] = say_cpu_time,      [ENDED_WALL_CLOCK] = say_wall_clock,
	[ENDED_KILLED] = say_plain,	      [ENDED_CALLER_GONE] = say_plain,
	[ENDED_POLICY_LOST] = say_plain,      [ENDED_SETUP_FAILED] = say_plain,
	[ENDED_GOVERNOR_STOPPED] = say_plain, [ENDED_GOVERNOR_LOST] = say_plain,
	[ENDED_UNKILLABLE] = say_plain,
};

const char *report_sentence(const struct report *r, char *buf, size_t size)
{
	if (r->ended >= ENDED_COUNT || !sayers[r->ended])
		return NULL;
	if (r->ended == ENDED_EXITED && !r->error[0])
		return NULL; /* its status is its own affair */
	sayers[r->ended](r, buf, size);
	return buf;
}

/* ---- the exit status ---- */

static int setup_status(const struct report *r)
{
	return r->exit_code == 126 || r->exit_code == 127 ? (int)r->exit_code : 125;
}

int report_exit_status(const struct report *r)
{
	switch (r->ended) {
	case ENDED_EXITED:
		return r->exit_code <= 255 ? (int)r->exit_code : 125;
	case ENDED_SIGNALED:
		return r->signal > 0 && r->signal < _NSIG ? -(int)r->signal : 125;
	case ENDED_MEMORY:
	case ENDED_CPU_TIME:
	case ENDED_WALL_CLOCK:
		return 124;
	case ENDED_KILLED:
	case ENDED_CALLER_GONE:
		return -SIGKILL;
	case ENDED_SETUP_FAILED:
		return setup_status(r);
	default:
		return 125;
	}
}
