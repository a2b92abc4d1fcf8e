/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/state.h"
#include "common/text.h"
#include "governor/daemon/access.h"
#include "governor/daemon/asks.h"
#include "governor/daemon/daemon_mounts.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/overlap.h"
#include "governor/daemon/runs.h"
#include "governor/daemon/slices.h"
#include "governor/daemon/slots.h"
#include "governor/daemon/spare.h"
#include "governor/daemon/sweep.h"
#include "governor/guest/cgroup.h"
#include "governor/guest/confine.h"
#include "governor/guest/view_ground.h"
#include "governor/supervisor/ledger.h"
#include "governor/supervisor/means.h"

#define STOP_USEC      (8 * USEC_PER_SEC) /* below the unit's TimeoutStopSec= */
#define FDSTORE_NAME   "firewall"
#define LISTEN_FD_NAME "clients"
#define LOOK_USEC      (USEC_PER_SEC / 10) /* after a change of the ruleset */

/* ---- what the service manager passes ---- */

struct passed {
	int listener, firewall;
};

static int take_passed(struct passed *ret, struct error *e)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	if (n < 0)
		return error_errno(e, n, "the service manager's descriptors cannot be taken");
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], LISTEN_FD_NAME) == 0 && ret->listener < 0)
			ret->listener = fd;
		else if (strcmp(names[i], FDSTORE_NAME) == 0 && ret->firewall < 0)
			ret->firewall = fd;
		else
			close(fd);
		free(names[i]);
	}
	free(names);
	if (ret->listener < 0)
		return error_set(
			e, -ENOTCONN,
			"harpe-gov.socket passed no socket; start harpe-gov.socket, not this "
			"program");
	/* A supervisor that finds the connection gone must not wait for another one. */
	if (fcntl(ret->listener, F_SETFL, O_NONBLOCK) < 0)
		return error_errno(e, -errno, "the listener cannot be made non-blocking");
	return 0;
}

/* An owned table goes when the last copy of its socket is closed: the service manager keeps one, so
 * that the table outlives a crash; FDPOLL=0, or it would drop a socket with an error pending. */
static int store_firewall(const struct daemon *d, struct error *e)
{
	int fd = firewall_fd(d->firewall);
	int r = sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDPOLL=0\nFDNAME=" FDSTORE_NAME, &fd, 1);

	return r <= 0 ? error_errno(e, r < 0 ? r : -ENOTCONN,
				    "the service manager does not keep the firewall's socket")
		      : 0;
}

/* There while the table would go with our socket: then, and only then, the end of the service is a
 * reason to load it again (harpe-gov-firewall-again.service). */
#define OWNED_FILE "/run/harpe-gov/owned"

static void mark_owned(void)
{
	int fd = open(OWNED_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		journal_error(OWNED_FILE ": cannot be written: %s", strerror(errno));
	else
		close(fd);
}

static int set_up_firewall(struct daemon *d, int passed_fd, struct error *e)
{
	int r = passed_fd >= 0 ? firewall_adopt(passed_fd, &d->firewall, e)
			       : firewall_open(&d->firewall, e);

	mark_owned();
	if (r == 0)
		r = firewall_load(d->firewall, &d->policy, true, e);
	if (r == 0 ? firewall_persists(d->firewall) : passed_fd < 0)
		unlink(OWNED_FILE); /* it stays, or is not ours */
	if (r == 0 && passed_fd < 0)
		r = store_firewall(d, e);
	return r;
}

/* ---- the ruleset ---- */

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	daemon_ruleset_changed(userdata);
	return 0;
}

/* Looking takes a moment when the table is large: one look for all changes of a moment. */
static int on_ruleset(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	int pending = SD_EVENT_OFF;

	(void)source;
	(void)revents;
	monitor_read(fd, &d->news);
	if (!d->news.changed)
		return 0;
	sd_event_source_get_enabled(d->look, &pending);
	if (pending != SD_EVENT_OFF)
		return 0;
	sd_event_source_set_time_relative(d->look, LOOK_USEC);
	return sd_event_source_set_enabled(d->look, SD_EVENT_ONESHOT);
}

static int watch_ruleset(struct daemon *d, struct error *e)
{
	int r;

	d->monitor = monitor_open(e);
	if (d->monitor < 0)
		return d->monitor;
	r = sd_event_add_io(d->event, NULL, d->monitor, EPOLLIN, on_ruleset, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->event, &d->look, CLOCK_MONOTONIC, 0, 0, on_look,
					       d);
	if (r >= 0)
		r = sd_event_source_set_enabled(d->look, SD_EVENT_OFF);
	return r < 0 ? error_errno(e, r, "the ruleset cannot be watched") : 0;
}

/* ---- events ---- */

static int on_stop_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)usec;
	journal_error("%u guest%s did not end in time", d->n_runs, PLURAL(d->n_runs));
	return sd_event_exit(d->event, 0);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)info;
	if (d->stopping)
		return 0;
	d->stopping = true;
	sd_notify(0, "STOPPING=1");
	spare_renew(d);
	runs_stop_all(d, ENDED_GOVERNOR_STOPPED);
	slots_drop(d);
	return sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, STOP_USEC, 0,
					  on_stop_timeout, d);
}

/* What supervisors that are started from now on map: with @view. A failure changes nothing. */
static int write_means(const struct daemon *d, const struct view_base *view, struct error *e)
{
	const struct guest_means means = { .version = d->means + 1,
					   .filters = d->filters,
					   .view = view };

	return means_store(&means, e);
}

static void take_means(struct daemon *d, const struct view_base *view, int fd)
{
	close_fd(&d->means_fd);
	d->means_fd = fd;
	d->means++;
	d->new_filter = false;
	d->view = *view;
}

/* The new policy goes to the kernel before the old configuration, which the old one points into, is
 * let go of. */
static int take_config(struct daemon *d, struct config **config, struct error *e)
{
	_cleanup_close_ int means = -1;
	struct config *old = d->config;
	struct view_base view = { 0 };
	int r = view_base_load(&(*config)->view_ro, &(*config)->view_hide, &view, e);

	if (r == 0 && (d->new_filter || memcmp(&d->view, &view, sizeof(view)) != 0))
		r = means = write_means(d, &view, e);
	if (r < 0)
		return r;
	d->config = *config;
	r = daemon_load_policy(d, e);
	if (r < 0) {
		d->config = old;
		return r;
	}
	if (means >= 0)
		take_means(d, &view, TAKE_FD(means));
	*config = old;
	slots_drop(d);
	slots_need(d);
	return 0;
}

static int compile_filters(struct daemon *d, const struct config *c, struct error *e)
{
	int r = 0;

	for (uint32_t i = 0; i < c->n_profiles && r == 0; i++) {
		unsigned int with = profile_filter(&c->profiles[i]);

		if (d->filters[with].filter)
			continue;
		r = confine_compile(with, &d->filters[with], e);
		d->new_filter = true;
	}
	return r;
}

int daemon_reload(struct daemon *d, struct error *e)
{
	_cleanup_(daemon_free_config) struct config *c = NULL;
	int r = daemon_read_config(&c, e);

	if (r == 0)
		r = access_resolve(c, e);
	if (r < 0)
		return r;
	if (c->first_uid != d->config->first_uid || c->uid_count != d->config->uid_count)
		return error_set(e, -EBUSY,
				 CONFIG_PATH ": [pool] first-uid and count change only with "
					     "\"systemctl restart harpe-gov\"");
	r = compile_filters(d, c, e);
	return r == 0 ? take_config(d, &c, e) : r;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct daemon *d = userdata;
	struct error e = ERROR_NULL;

	(void)source;
	(void)info;
	sd_notify(0, "RELOADING=1");
	if (daemon_reload(d, &e) < 0)
		journal_error("the configuration stays as it was: %s", e.text);
	else
		journal_info("the configuration was read again");
	spare_renew(d);
	daemon_keep_slices(d);
	sd_notify(0, "READY=1");
	asks_admit_waiting(d);
	return 0;
}

/* Runs after every round of events. */
static int on_idle(sd_event_source *source, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	return d->stopping && !d->runs ? sd_event_exit(d->event, 0) : 0;
}

static int add_sources(struct daemon *d, int listener, struct error *e)
{
	sd_event_source *idle = NULL;
	int r = spare_add_sources(d, listener);

	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGTERM, on_stop, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGHUP, on_reload, d);
	if (r >= 0)
		r = daemon_add_pool_source(d);
	if (r >= 0)
		r = slots_add_source(d);
	if (r >= 0)
		r = daemon_watch_mounts(d);
	if (r >= 0)
		r = sd_event_add_post(d->event, &idle, on_idle, d);
	if (r >= 0)
		r = sd_event_source_set_floating(idle, true);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true);
	sd_event_source_unref(idle);
	return r < 0 ? error_errno(e, r, "the event loop cannot be set up") : 0;
}

/* ---- from start to end ---- */

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGPIPE); /* EPIPE says it */
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int first_means(struct daemon *d, struct error *e)
{
	int fd = write_means(d, &d->view, e);

	if (fd >= 0)
		take_means(d, &d->view, fd);
	return fd < 0 ? fd : 0;
}

/* The one of this version, whatever an upgrade puts into its place. */
static int open_program(struct daemon *d, struct error *e)
{
	d->program = open(HARPE_GOV_SUPERVISOR, O_PATH | O_CLOEXEC);
	return d->program < 0 ? error_errno(e, -errno, HARPE_GOV_SUPERVISOR ": install it anew")
			      : 0;
}

/* What nothing can kill must not keep all others from running: its uid has processes, and so is not
 * used, and it is behind the firewall as before. */
static int sweep(const struct daemon *d, struct error *e)
{
	int r = sweep_ledger(d->slice_path, LEDGER_PATH, journal_run, e);

	if (r < 0)
		return r;
	r = sweep_slices(d->slice_path, e);
	if (r != -EBUSY)
		return r;
	journal_error("%s; uids that still have processes are not used", e->text);
	*e = (struct error)ERROR_NULL;
	return 0;
}

static int set_up(struct daemon *d, const struct passed *passed, struct error *e)
{
	int r = daemon_read_config(&d->config, e);

	if (r == 0)
		r = access_resolve(d->config, e);
	if (r == 0)
		r = overlap_check(d->config->first_uid, d->config->uid_count, e);
	if (r == 0)
		r = daemon_make_policy(d, e);
	if (r == 0)
		r = scopes_new(d->event, &d->scopes, e);
	if (r == 0)
		r = slices_check(d->config, e);
	if (r == 0)
		r = set_up_firewall(d, passed->firewall, e);
	if (r == 0)
		r = ledger_open(LEDGER_PATH, e);
	if (r == 0)
		r = sweep(d, e);
	if (r == 0)
		r = daemon_make_pool(d, e);
	if (r == 0)
		r = compile_filters(d, d->config, e);
	if (r == 0)
		r = view_base_load(&d->config->view_ro, &d->config->view_hide, &d->view, e);
	if (r == 0)
		r = d->ground = view_ground_make(e);
	if (r >= 0)
		r = confine_prepare(e);
	if (r == 0)
		r = first_means(d, e);
	if (r == 0)
		r = open_program(d, e);
	if (r == 0)
		r = watch_ruleset(d, e);
	return r == 0 ? add_sources(d, passed->listener, e) : r;
}

/* Hands the table back unowned, so that it stays when the socket is closed. */
static void give_firewall_back(struct daemon *d)
{
	struct error e = ERROR_NULL;

	if (firewall_load(d->firewall, &d->policy, false, &e) < 0)
		journal_error("the table cannot be handed back: %s", e.text);
	else
		unlink(OWNED_FILE);
}

static int loop(struct daemon *d, struct error *e)
{
	_cleanup_close_ int state = state_hold(STATE_FILE, e);
	int r;

	if (state < 0)
		return state;
	r = daemon_serve_slices(d, e);
	if (r < 0)
		return r;
	sd_notify(0, "READY=1");
	slots_need(d);
	journal_info("ready: uids %u to %u, filter of %u instructions", d->config->first_uid,
		     d->config->first_uid + d->config->uid_count - 1, d->filters[0].len);
	r = sd_event_loop(d->event);
	give_firewall_back(d);
	return r < 0 ? error_errno(e, r, "the event loop failed") : 0;
}

static void release(struct daemon *d)
{
	daemon_leave_slices(d);
	scopes_free(d->scopes);
	firewall_free(d->firewall);
	identity_pool_free(d->pool);
	for (size_t i = 0; i < CONFINE_PROGRAMS; i++)
		confine_free(&d->filters[i]);
	daemon_free_policy(d);
	daemon_free_config(&d->config);
	close_fd(&d->mountinfo);
	close_fd(&d->monitor);
	close_fd(&d->ground);
	close_fd(&d->means_fd);
	close_fd(&d->program);
	sd_event_source_unref(d->look);
	sd_event_source_unref(d->listener);
	sd_event_source_unref(d->need_spare);
	sd_event_source_unref(d->quarantine);
	sd_event_source_unref(d->slots);
	sd_event_unref(d->event);
}

int daemon_serve(struct error *e)
{
	struct daemon d = {
		.mountinfo = -1, .monitor = -1, .ground = -1, .means_fd = -1, .program = -1
	};
	struct passed passed = { .listener = -1, .firewall = -1 };
	int r = take_passed(&passed, e);

	if (r < 0)
		return r;
	r = block_signals();
	if (r == 0)
		r = sd_event_default(&d.event);
	if (r < 0)
		return error_errno(e, r, "the event loop cannot be made");
	r = set_up(&d, &passed, e);
	if (r == 0)
		r = loop(&d, e);
	release(&d);
	return r;
}
