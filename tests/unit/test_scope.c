/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting scopes, against a bus and a systemd that answer as the test says, or do not. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "governor/daemon/scope.h"
#include "governor/daemon/scope_message.h"

#define SYSTEM	 "org.freedesktop.DBus"
#define JOB	 MANAGER_PATH "/job/7"
#define PATIENCE (10 * USEC_PER_SEC)

/* One letter per call of StartTransientUnit or GetUnit that comes in. */
enum reply {
	DONE = 'd',	/* a job, which is done */
	FAILED = 'f',	/* a job, which fails */
	JOB_ONLY = 'j', /* a job, of which nothing is heard */
	REFUSED = 'r',	/* an error of systemd's own */
	ABSENT = 'a',	/* there is no such unit */
	THERE = 't',	/* there is */
	LOST = 'l',	/* the bus has to say that no answer will come */
	NOBODY = 'n',	/* or that nobody is there */
	CUT = 'c',	/* the connection is cut */
};

struct play {
	sd_event *event;
	sd_bus *bus; /* the other end of the client's */
	int listener;
	const char *plan; /* the answers to come */
	char asked[32];	  /* what was asked: S and G */
	int result, n_results;
	struct error error;
};

/* ---- the other end ---- */

static void send_removed(sd_bus *bus, const char *result)
{
	sd_bus_message *m = NULL;

	assert_true(sd_bus_message_new_signal(bus, &m, MANAGER_PATH, MANAGER_INTERFACE,
					      "JobRemoved") >= 0);
	assert_true(sd_bus_message_set_sender(m, MANAGER_NAME) >= 0);
	assert_true(sd_bus_message_append(m, "uoss", 7, JOB, "x.scope", result) >= 0);
	assert_true(sd_bus_send(bus, m, NULL) >= 0);
	sd_bus_message_unref(m);
}

static void reply_job(sd_bus_message *m, const char *result)
{
	assert_true(sd_bus_reply_method_return(m, "o", JOB) >= 0);
	if (result)
		send_removed(sd_bus_message_get_bus(m), result);
}

static void answer(struct play *p, sd_bus_message *m, enum reply a)
{
	switch (a) {
	case DONE:
		reply_job(m, "done");
		break;
	case FAILED:
		reply_job(m, "failed");
		break;
	case JOB_ONLY:
		reply_job(m, NULL);
		break;
	case THERE:
		sd_bus_reply_method_return(m, "o", MANAGER_PATH "/unit/x");
		break;
	case REFUSED:
		sd_bus_reply_method_errorf(m, SD_BUS_ERROR_ACCESS_DENIED, "not you");
		break;
	case ABSENT:
		sd_bus_reply_method_errorf(m, MANAGER_NAME ".NoSuchUnit", "not loaded");
		break;
	case LOST:
		sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NO_REPLY, "it disconnected");
		break;
	case NOBODY:
		sd_bus_reply_method_errorf(m, SD_BUS_ERROR_SERVICE_UNKNOWN, "no such name");
		break;
	case CUT:
		p->bus = sd_bus_close_unref(p->bus);
		break;
	}
}

/* The plan is the state itself, or one letter. */
static int answer_active(struct play *p, sd_bus_message *m)
{
	if (strcmp(p->plan, "a") == 0)
		return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_UNKNOWN_OBJECT, "not loaded");
	if (strcmp(p->plan, "l") == 0)
		return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NO_REPLY, "it disconnected");
	return sd_bus_reply_method_return(m, "v", "s", p->plan);
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct play *p = userdata;
	int start = sd_bus_message_is_method_call(m, MANAGER_INTERFACE, "StartTransientUnit");

	(void)unused;
	if (sd_bus_message_is_method_call(m, SYSTEM, "Hello"))
		return sd_bus_reply_method_return(m, "s", ":1.1") < 0 ? -EIO : 1;
	if (sd_bus_message_is_method_call(m, SYSTEM, NULL))
		return sd_bus_reply_method_return(m, NULL) < 0 ? -EIO : 1;
	if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "Get") &&
	    strcmp(sd_bus_message_get_path(m), MANAGER_PATH "/unit/x_2escope") == 0)
		return answer_active(p, m);
	if (!start && !sd_bus_message_is_method_call(m, MANAGER_INTERFACE, "GetUnit"))
		return 0;
	assert_true(strlen(p->asked) + 1 < sizeof(p->asked));
	p->asked[strlen(p->asked)] = start ? 'S' : 'G';
	if (*p->plan)
		answer(p, m, (enum reply) * p->plan++);
	return 1;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct play *p = userdata;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	sd_id128_t id =
		SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, 14, 15, 16);

	(void)source;
	(void)revents;
	assert_true(client >= 0);
	p->bus = sd_bus_close_unref(p->bus);
	assert_true(sd_bus_new(&p->bus) >= 0);
	assert_true(sd_bus_set_fd(p->bus, client, client) >= 0);
	assert_true(sd_bus_set_server(p->bus, 1, id) >= 0);
	assert_true(sd_bus_start(p->bus) >= 0);
	assert_true(sd_bus_attach_event(p->bus, p->event, 0) >= 0);
	assert_true(sd_bus_add_filter(p->bus, NULL, on_call, p) >= 0);
	return 0;
}

static void play_begin(struct play *p, struct scopes **ret, const char *plan)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct error e = ERROR_NULL;
	char variable[32 + sizeof(address.sun_path)];
	socklen_t size = sizeof(address.sun_family);

	*p = (struct play){ .plan = plan };
	assert_true(sd_event_new(&p->event) >= 0);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&address, size), 0); /* abstract */
	assert_int_equal(listen(p->listener, 4), 0);
	size = sizeof(address);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&address, &size), 0);
	snprintf(variable, sizeof(variable), "unix:abstract=%s", address.sun_path + 1);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", variable, 1);
	assert_true(sd_event_add_io(p->event, NULL, p->listener, EPOLLIN, on_connect, p) >= 0);
	assert_int_equal(scopes_new(p->event, ret, &e), 0);
}

static void play_end(struct play *p, struct scopes *s)
{
	scopes_free(s);
	sd_bus_close_unref(p->bus);
	sd_event_unref(p->event);
	close(p->listener);
}

/* ---- this end ---- */

static void on_result(void *userdata, int r, const struct error *e)
{
	struct play *p = userdata;

	p->result = r;
	p->error = *e;
	p->n_results++;
}

static void start(struct play *p, struct scopes *s)
{
	static const struct limits limits = { .value = { 1 << 24, 0, USEC_PER_SEC, 1, 1, 1 } };
	struct scope_spec spec = {
		.name = "x.scope",
		.slice = "x.slice",
		.description = "x",
		.pid = getpid(),
		.limits = &limits,
	};
	struct error e = ERROR_NULL;

	assert_int_equal(scope_start(s, &spec, on_result, p, &e), 0);
}

static void wait_result(struct play *p)
{
	uint64_t begin, now;

	assert_true(sd_event_now(p->event, CLOCK_MONOTONIC, &begin) >= 0);
	do {
		assert_true(sd_event_run(p->event, USEC_PER_SEC) >= 0);
		sd_event_now(p->event, CLOCK_MONOTONIC, &now);
	} while (p->n_results == 0 && now < begin + PATIENCE);
	assert_int_equal(p->n_results, 1);
}

static void starts_what_can_be_started(void **state)
{
	static const struct {
		const char *plan, *asked;
		int result;
		const char *words;
	} cases[] = {
		{ "d", "S", 0, "" },
		{ "f", "S", -EIO, "x.scope: failed" },
		{ "r", "S", -EIO, "refused x.scope: not you" },
		/* nobody was there: not heard, so it is asked again */
		{ "nad", "SGS", 0, "" },
		{ "lnnad", "SGGGS", 0, "" },
		{ "laladx", "SGSGS", 0, "" },
		{ "cad", "SGS", 0, "" },
		{ "lcad", "SGGS", 0, "" },
		/* asked again and refused */
		{ "lar", "SGS", -EIO, "refused" },
		/* heard, and then gone: not asked again */
		{ "lta", "SGG", -EIO, "gone again" },
		{ "ja", "SG", -EIO, "gone again" },
		{ "jla", "SGG", -EIO, "gone again" },
	};

	int fds = open_fds();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scopes *s = NULL;
		struct play p;

		play_begin(&p, &s, cases[i].plan);
		start(&p, s);
		wait_result(&p);
		assert_string_equal(p.asked, cases[i].asked);
		assert_int_equal(p.result, cases[i].result);
		assert_non_null(strstr(p.error.text, cases[i].words));
		play_end(&p, s);
	}
	assert_int_equal(open_fds(), fds);
}

static void forgets(void **state)
{
	struct scopes *s = NULL;
	struct play p;

	(void)state;
	play_begin(&p, &s, "d");
	start(&p, s);
	scope_forget(s, &p);
	for (int i = 0; i < 20; i++)
		assert_true(sd_event_run(p.event, 10000) >= 0);
	assert_int_equal(p.n_results, 0);
	play_end(&p, s);
}

static int on_active(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct play *p = userdata;

	(void)unused;
	p->result = scope_may_be_active(m);
	p->n_results++;
	return 0;
}

static void knows_what_is_stopped(void **state)
{
	static const struct {
		const char *plan;
		bool active;
	} cases[] = {
		{ "active", true },    { "deactivating", false },
		{ "inactive", false }, { "failed", false },
		{ "a", false },	       { "l", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sd_bus_slot *question = NULL;
		struct scopes *s = NULL;
		struct play p;

		play_begin(&p, &s, cases[i].plan);
		assert_true(scope_ask_active(s, "x.scope", on_active, &p, &question) >= 0);
		wait_result(&p);
		assert_int_equal(p.result, cases[i].active);
		sd_bus_slot_unref(question);
		play_end(&p, s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_what_can_be_started),
		cmocka_unit_test(forgets),
		cmocka_unit_test(knows_what_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
