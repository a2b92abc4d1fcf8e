/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon answers to a supervisor, as far as neither systemd nor a firewall is needed for
 * it.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governor/daemon/asks.h"

enum { ALICE = 1001 };

/* Alice has a guest, and a second connection; she may have one guest at once. */
struct house {
	struct config config;
	struct daemon daemon;
	struct profile_slice slices[PROFILE_BUILT_IN];
	struct run guest, run;
	int supervisor; /* its end of the pair of @run */
};

static void add_slices(struct house *h)
{
	for (size_t i = 0; i < PROFILE_BUILT_IN; i++) {
		strcpy(h->slices[i].profile, h->config.profiles[i].name);
		strcpy(h->slices[i].path, "/sys/fs/cgroup/harpe.slice/of-a-test");
		h->daemon.slices[h->daemon.n_slices++] = &h->slices[i];
	}
}

static void add_runs(struct house *h)
{
	h->guest = (struct run){ .d = &h->daemon, .next = &h->run, .pair = -1 };
	h->run = (struct run){ .d = &h->daemon, .serial = 1 };
	h->guest.caller.uid = h->run.caller.uid = ALICE;
	h->guest.state = RUN_RUNNING;
	h->guest.has_scope = true;
	h->daemon.runs = &h->guest;
	h->daemon.n_runs = 2;
}

static int set_up(void **state)
{
	struct house *h = calloc(1, sizeof(*h));
	int ends[2];

	if (!h || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	config_defaults(&h->config);
	h->config.access[0].max_guests = 1;
	h->daemon.config = &h->config;
	add_slices(h);
	add_runs(h);
	h->run.pair = ends[0];
	h->supervisor = ends[1];
	*state = h;
	if (identity_pool_new(h->config.first_uid, 1, &h->daemon.pool) < 0 ||
	    sd_event_new(&h->daemon.event) < 0)
		return -1;
	return sd_event_add_time_relative(h->daemon.event, &h->run.timer, CLOCK_MONOTONIC, 0, 0,
					  NULL, NULL) < 0;
}

static int tear_down(void **state)
{
	struct house *h = *state;

	sd_event_source_disable_unref(h->run.timer);
	sd_event_unref(h->daemon.event);
	identity_pool_free(h->daemon.pool);
	close(h->run.pair);
	close(h->supervisor);
	free(h);
	return 0;
}

static void start_waiting(struct house *h, const char *net)
{
	struct pair_ask ask = { .verb = PAIR_START, .start.wait_usec = USEC_PER_SEC };

	limits_clear(&ask.start.limits);
	strcpy(ask.start.net, net);
	assert_int_equal(asks_serve(&h->run, &ask), 0);
	assert_int_equal(h->run.state, RUN_WAITING);
}

static void assert_refused(struct house *h, const char *part)
{
	struct pair_reply reply;

	assert_int_equal(recv(h->supervisor, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	assert_int_equal(reply.verb, PAIR_REFUSED);
	assert_int_equal(reply.to, PAIR_START);
	if (!strstr(reply.refused.text, part))
		fail_msg("no \"%s\" in \"%s\"", part, reply.refused.text);
	assert_int_equal(h->run.state, RUN_CONNECTED);
	assert_false(h->run.has_scope);
}

/* Somebody killed the guest, and systemd does not say whether it was itself. */
static void ends_what_systemd_says_nothing_of(void **state)
{
	struct house *h = *state;
	struct pair_reply reply;

	h->run.state = RUN_RUNNING;
	h->run.supervisor = getpid();
	h->run.has_scope = h->run.journaled = true;
	h->run.report.ended = ENDED_SIGNALED;
	ask_end_unanswered(&h->run);
	assert_int_equal(recv(h->supervisor, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	assert_true(reply.verb == PAIR_OK && reply.to == PAIR_END);
	assert_int_equal(reply.end.ended, ENDED_SIGNALED);
	assert_true(h->run.state == RUN_OVER && !h->run.has_scope);
}

static void free_the_place(struct house *h)
{
	h->guest.has_scope = false;
	h->guest.state = RUN_OVER;
	asks_admit_waiting(&h->daemon);
}

static void refuses_a_profile_forbidden_meanwhile(void **state)
{
	struct house *h = *state;
	struct members *profiles = &h->config.access[0].profiles;

	start_waiting(h, "drop");
	strcpy(profiles->name[profiles->n++], "isolated");
	free_the_place(h);
	assert_refused(h, "--net: drop is none of the profiles");
}

static void refuses_above_a_ceiling_lowered_meanwhile(void **state)
{
	struct house *h = *state;

	start_waiting(h, "");
	h->config.ceiling.value[LIMIT_MEMORY] = h->config.defaults.value[LIMIT_MEMORY] / 2;
	free_the_place(h);
	assert_refused(h, "--memory: ");
}

static void takes_the_default_of_now(void **state)
{
	struct house *h = *state;

	start_waiting(h, "");
	assert_string_equal(h->run.slice->profile, "isolated");
	strcpy(h->config.net, "reject");
	free_the_place(h);
	assert_string_equal(h->run.slice->profile, "reject");
	assert_int_equal(h->run.state, RUN_WAITING); /* no uid is clean yet */
}

/* ---- listing ---- */

/* So many as the supervisor is prepared for, and no more wait in the pair than fit. */
static void lists_some_at_a_time(void **state)
{
	struct pair_ask ask = { .verb = PAIR_NEXT };
	struct run others[PAIR_ROWS + 1] = {};
	struct house *h = *state;
	struct pair_reply reply;

	for (uint32_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = h->guest;
		others[i].serial = i + 2;
		others[i].slice = &h->slices[0];
		others[i].next = i + 1 < ARRAY_SIZE(others) ? &others[i + 1] : NULL;
		others[i].caller.uid = i == 1 ? ALICE + 1 : ALICE;
	}
	strcpy(others[PAIR_ROWS].asked.name, "job");
	h->run.next = &others[0];
	assert_int_equal(asks_serve(&h->run, &ask), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (i == 1)
			continue; /* somebody else's */
		assert_int_equal(pair_receive(h->supervisor, &reply, sizeof(reply)), 0);
		assert_int_equal(reply.verb, PAIR_OK);
		assert_int_equal(reply.next.cursor, i + 2);
	}
	assert_int_equal(recv(h->supervisor, &reply, sizeof(reply), MSG_DONTWAIT), -1);
	ask.next.cursor = reply.next.cursor - 1;
	strcpy(ask.next.target, "job");
	assert_int_equal(asks_serve(&h->run, &ask), 0);
	assert_int_equal(pair_receive(h->supervisor, &reply, sizeof(reply)), 0);
	assert_int_equal(reply.next.cursor, PAIR_ROWS + 2);
	assert_int_equal(pair_receive(h->supervisor, &reply, sizeof(reply)), 0);
	assert_int_equal(reply.verb, PAIR_NONE);
}

static pid_t leave(struct run *r, int pair)
{
	pid_t pid = fork();

	(void)r;
	(void)pair;
	if (pid == 0)
		_exit(0);
	return pid;
}

/* A process whose end nobody would learn of is not left. */
static void leaves_no_process_that_it_cannot_watch(void **state)
{
	struct house *h = *state;
	struct run r = { .d = &h->daemon, .pair = -1 };
	sd_event *event = h->daemon.event;

	h->daemon.event = NULL;
	assert_true(run_start(&r, leave, NULL) < 0);
	h->daemon.event = event;
	assert_int_equal(r.supervisor, 0);
	assert_int_equal(r.pair, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_what_systemd_says_nothing_of, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refuses_a_profile_forbidden_meanwhile, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refuses_above_a_ceiling_lowered_meanwhile, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(takes_the_default_of_now, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lists_some_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(leaves_no_process_that_it_cannot_watch, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
