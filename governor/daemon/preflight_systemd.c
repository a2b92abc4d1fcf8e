/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/preflight_systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/units.h"
#include "governor/daemon/preflight.h"
#include "governor/daemon/profile.h"
#include "governor/daemon/scope_message.h"

#define BUS_NAME  "org.freedesktop.DBus"
#define BUS_PATH  "/org/freedesktop/DBus"
#define UNIT_PATH MANAGER_PATH "/unit"
#define KEY	  "DisableControllers"
#define FILE_MAX  65536

/* ---- questions with a time limit ---- */

struct conversation {
	sd_bus *bus;
	uint64_t end; /* CLOCK_MONOTONIC, microseconds */
};

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	sd_bus_message **answer = userdata;

	(void)unused;
	*answer = sd_bus_message_ref(m);
	return 1;
}

static int wait_answer(struct conversation *c, sd_bus_message **answer)
{
	while (!*answer) {
		uint64_t now = clock_usec(CLOCK_MONOTONIC);
		int r = sd_bus_process(c->bus, NULL);

		if (r == 0 && now >= c->end)
			return -ETIMEDOUT;
		if (r == 0)
			r = sd_bus_wait(c->bus, c->end - now);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

/* sd_bus_call() would wait for the greeting of the bus as long as that likes. */
static int ask(struct conversation *c, sd_bus_message *question, sd_bus_message **ret)
{
	sd_bus_message *answer = NULL;
	sd_bus_slot *slot = NULL;
	int r = sd_bus_call_async(c->bus, &slot, question, on_answer, &answer, 0);

	if (r >= 0)
		r = wait_answer(c, &answer);
	sd_bus_slot_unref(slot);
	if (r >= 0 && sd_bus_message_get_error(answer))
		r = -sd_bus_message_get_errno(answer);
	if (r < 0)
		sd_bus_message_unref(answer);
	else
		*ret = answer;
	return r < 0 ? r : 0;
}

static int ask_bus(struct conversation *c)
{
	sd_bus_message *question = NULL, *answer = NULL;
	int r = sd_bus_message_new_method_call(c->bus, &question, BUS_NAME, BUS_PATH, BUS_NAME,
					       "GetId");

	if (r >= 0)
		r = ask(c, question, &answer);
	sd_bus_message_unref(question);
	sd_bus_message_unref(answer);
	return r;
}

/* A property of @slice, entered: the next thing to be read from *ret is of type @type. */
static int get(struct conversation *c, const char *slice, const char *interface,
	       const char *property, const char *type, sd_bus_message **ret)
{
	sd_bus_message *question = NULL;
	_cleanup_free_ char *path = NULL;
	int r = sd_bus_path_encode(UNIT_PATH, slice, &path);

	if (r >= 0)
		r = sd_bus_message_new_method_call(c->bus, &question, MANAGER_NAME, path,
						   BUS_NAME ".Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_append(question, "ss", interface, property);
	if (r >= 0)
		r = ask(c, question, ret);
	if (r >= 0)
		r = sd_bus_message_enter_container(*ret, 'v', type);
	sd_bus_message_unref(question);
	return r;
}

static int get_list(struct conversation *c, const char *slice, const char *interface,
		    const char *property, char ***ret)
{
	sd_bus_message *m = NULL;
	int r = get(c, slice, interface, property, "as", &m);

	if (r >= 0)
		r = sd_bus_message_read_strv(m, ret);
	sd_bus_message_unref(m);
	return r < 0 ? r : 0;
}

static void free_list(char ***list)
{
	for (char **s = *list; s && *s; s++)
		free(*s);
	free(*list);
}

/* ---- who takes a controller away ---- */

/* The rest of an assignment, NULL when the line is none. */
static const char *assigned(const char *line)
{
	line += strspn(line, " \t");
	if (strncmp(line, KEY, strlen(KEY)) != 0)
		return NULL;
	line += strlen(KEY);
	line += strspn(line, " \t");
	return *line == '=' ? line + 1 : NULL;
}

static bool line_has(const char *value, const char *controller)
{
	const char *end = value + strcspn(value, "\n");

	while (value < end) {
		size_t n;

		value += strspn(value, " \t");
		n = strcspn(value, " \t\n");
		if (n > 0 && n == strlen(controller) && strncmp(value, controller, n) == 0)
			return true;
		value += n;
	}
	return false;
}

bool preflight_disables(const char *text, const char *controller)
{
	while (text) {
		const char *value = assigned(text);

		if (value && line_has(value, controller))
			return true;
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return false;
}

static bool file_disables(const char *path, const char *controller)
{
	_cleanup_free_ char *text = malloc(FILE_MAX);

	return text && read_file_at(AT_FDCWD, path, text, FILE_MAX) > 0 &&
	       preflight_disables(text, controller);
}

/* The last of the slice's files that does it: it is the one that counts. "" when none is found. */
static void find_file(struct conversation *c, const char *slice, const char *controller, char *path,
		      size_t size)
{
	_cleanup_(free_list) char **drop_ins = NULL;
	sd_bus_message *m = NULL;
	const char *fragment = "";

	path[0] = '\0';
	if (get(c, slice, MANAGER_NAME ".Unit", "FragmentPath", "s", &m) >= 0 &&
	    sd_bus_message_read(m, "s", &fragment) >= 0 && file_disables(fragment, controller))
		snprintf(path, size, "%s", fragment);
	sd_bus_message_unref(m);
	if (get_list(c, slice, MANAGER_NAME ".Unit", "DropInPaths", &drop_ins) < 0)
		return;
	for (char **d = drop_ins; d && *d; d++)
		if (file_disables(*d, controller))
			snprintf(path, size, "%s", *d);
}

static int refuse(struct conversation *c, const char *slice, const char *controller,
		  struct error *e)
{
	char path[256];

	find_file(c, slice, controller, path, sizeof(path));
	if (!path[0])
		return error_set(e, -ENOENT,
				 "the %s controller is not available in %s: take " KEY
				 "= away (systemctl cat %s), then systemctl daemon-reload",
				 controller, slice, slice);
	return error_set(e, -ENOENT,
			 "the %s controller is not available in %s: take " KEY
			 "= away from %s, then systemctl daemon-reload",
			 controller, slice, path);
}

static int silent(int r, struct error *e)
{
	if (r == -ETIMEDOUT)
		return error_set(
			e, r,
			"systemd (PID 1) does not answer within %d s: see what stops it, such "
			"as a full disk or a hung mount, or reboot",
			PREFLIGHT_SYSTEMD_SEC);
	return error_errno(e, r,
			   "systemd (PID 1) does not answer on the system bus: systemctl "
			   "daemon-reexec");
}

static int check_slice(struct conversation *c, const char *slice, struct error *e)
{
	_cleanup_(free_list) char **disabled = NULL;
	int r = get_list(c, slice, MANAGER_NAME ".Slice", KEY, &disabled);

	if (r < 0)
		return silent(r, e);
	for (char **d = disabled; d && *d; d++)
		for (size_t i = 0; preflight_needed[i]; i++)
			if (strcmp(*d, preflight_needed[i]) == 0)
				return refuse(c, slice, *d, e);
	return 0;
}

static int check_slices(struct conversation *c, struct error *e)
{
	int r = check_slice(c, "-.slice", e);

	if (r == 0)
		r = check_slice(c, SLICE, e);
	for (size_t i = 0; r == 0 && i < PROFILE_BUILT_IN; i++)
		r = check_slice(c, built_in_profiles[i].slice, e);
	return r;
}

static int check_bus(struct conversation *c, struct error *e)
{
	int r = sd_bus_open_system(&c->bus);

	if (r >= 0)
		r = ask_bus(c);
	if (r == -ETIMEDOUT)
		return error_set(e, r,
				 "the system bus does not answer within %d s: systemctl restart "
				 "dbus.service",
				 PREFLIGHT_SYSTEMD_SEC);
	return r < 0 ? error_errno(e, r,
				   "no connection to the system bus "
				   "(/run/dbus/system_bus_socket): systemctl start dbus.socket")
		     : 0;
}

int preflight_systemd(struct error *e)
{
	struct conversation c = {
		.end = clock_usec(CLOCK_MONOTONIC) + PREFLIGHT_SYSTEMD_SEC * USEC_PER_SEC,
	};
	int r = check_bus(&c, e);

	if (r == 0)
		r = check_slices(&c, e);
	sd_bus_close_unref(c.bus);
	return r;
}
