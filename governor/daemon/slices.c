/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/slices.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "common/fd.h"
#include "governor/daemon/part.h"
#include "governor/daemon/scope_message.h"
#include "governor/guest/cgroup.h"

#define UNIT_EXISTS MANAGER_NAME ".UnitExists"

#define ROUNDS	 500
#define ROUND_NS 10000000 /* 10 ms */

static size_t address_size(int family)
{
	return family == AF_INET ? 4 : 16;
}

/* ---- which rules there must be ---- */

static bool is_loopback(const struct ip_rule *rule)
{
	if (rule->family == AF_INET)
		return rule->address[0] == IN_LOOPBACKNET && rule->prefix >= 8;
	return rule->prefix == 128 && memcmp(rule->address, &in6addr_loopback, 16) == 0;
}

static bool is_of_entry(const struct allow *a, const struct ip_rule *rule)
{
	return a->family == rule->family && a->prefix == rule->prefix &&
	       memcmp(a->address, rule->address, address_size(rule->family)) == 0;
}

bool slices_rule_is_due(const struct profile *p, const struct ip_rule *rule)
{
	if (p->own_network)
		return is_loopback(rule);
	for (size_t i = 0; i < p->n_entries; i++)
		if (is_of_entry(&p->entries[i], rule))
			return true;
	return false;
}

/* ---- making ---- */

static int append_rule(sd_bus_message *m, int family, const void *address, uint32_t prefix)
{
	int r = sd_bus_message_open_container(m, 'r', "iayu");

	if (r >= 0)
		r = sd_bus_message_append(m, "i", family);
	if (r >= 0)
		r = sd_bus_message_append_array(m, 'y', address, address_size(family));
	if (r >= 0)
		r = sd_bus_message_append(m, "u", prefix);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_any(sd_bus_message *m, const struct profile *p)
{
	static const uint8_t zero[16];
	int r = append_rule(m, AF_INET, zero, 0);

	(void)p;
	return r < 0 ? r : append_rule(m, AF_INET6, zero, 0);
}

static int append_entries(sd_bus_message *m, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->n_entries && r >= 0; i++)
		r = append_rule(m, p->entries[i].family, p->entries[i].address,
				p->entries[i].prefix);
	return r;
}

static int append_nothing(sd_bus_message *m, const struct profile *p)
{
	(void)m;
	(void)p;
	return 0;
}

/* An empty list first: what is appended is added to what systemd has. */
static const struct {
	const char *name;
	int (*append)(sd_bus_message *m, const struct profile *p);
} properties[] = {
	{ "IPAddressAllow", append_nothing },
	{ "IPAddressDeny", append_any },
	{ "IPAddressAllow", append_entries },
};

static int append_property(sd_bus_message *m, const struct profile *p, size_t which)
{
	int r = sd_bus_message_open_container(m, 'r', "sv");

	if (r >= 0)
		r = sd_bus_message_append(m, "s", properties[which].name);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', "a(iayu)");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(iayu)");
	if (r >= 0)
		r = properties[which].append(m, p);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = sd_bus_message_close_container(m);
	return r;
}

static int append_properties(sd_bus_message *m, const struct profile *p)
{
	int r = sd_bus_message_open_container(m, 'a', "(sv)");

	for (size_t i = 0; i < ARRAY_SIZE(properties) && r >= 0; i++)
		r = append_property(m, p, i);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int start_slice(sd_bus *bus, const struct profile *p, sd_bus_error *error)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, MANAGER_NAME, MANAGER_PATH,
					       MANAGER_INTERFACE, "StartTransientUnit");

	if (r >= 0)
		r = sd_bus_message_append(m, "ss", p->slice, "replace");
	if (r >= 0)
		r = append_properties(m, p);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r >= 0)
		r = sd_bus_call(bus, m, 0, error, NULL);
	sd_bus_message_unref(m);
	return r;
}

static int change_slice(sd_bus *bus, const struct profile *p, sd_bus_error *error)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, MANAGER_NAME, MANAGER_PATH,
					       MANAGER_INTERFACE, "SetUnitProperties");

	if (r >= 0)
		r = sd_bus_message_append(m, "sb", p->slice, 1); /* until the next boot */
	if (r >= 0)
		r = append_properties(m, p);
	if (r >= 0)
		r = sd_bus_call(bus, m, 0, error, NULL);
	sd_bus_message_unref(m);
	return r;
}

static int wait_for_cgroup(const struct profile *p, struct error *e)
{
	struct timespec pause = { .tv_nsec = ROUND_NS };
	char path[PATH_TEXT_MAX];
	struct stat st;

	snprintf(path, sizeof(path), CGROUP_ROOT "/" SLICE "/%s", p->slice);
	for (int i = 0; i < ROUNDS; i++) {
		if (stat(path, &st) == 0)
			return 0;
		nanosleep(&pause, NULL);
	}
	return error_set(e, -ETIMEDOUT, "%s: systemd has not made it within 5 s", p->slice);
}

static int make_slice(sd_bus *bus, const struct config *c, const struct profile *p, struct error *e)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = start_slice(bus, p, &error);

	(void)c;
	if (sd_bus_error_has_name(&error, UNIT_EXISTS)) {
		sd_bus_error_free(&error);
		r = change_slice(bus, p, &error);
	}
	if (r < 0)
		error_set(e, r, "%s: systemd refuses it: %s", p->slice,
			  error.message ?: strerror(-r));
	else
		r = wait_for_cgroup(p, e);
	sd_bus_error_free(&error);
	return r;
}

/* ---- looking ---- */

static int read_rule(sd_bus_message *m, struct ip_rule *ret)
{
	const void *address = NULL;
	size_t size = 0;
	int r = sd_bus_message_read(m, "i", &ret->family);

	if (r >= 0)
		r = sd_bus_message_read_array(m, 'y', &address, &size);
	if (r >= 0)
		r = sd_bus_message_read(m, "u", &ret->prefix);
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r >= 0 && size != address_size(ret->family))
		r = -EBADMSG;
	if (r >= 0)
		memcpy(ret->address, address, size);
	return r;
}

typedef void (*rule_found)(void *userdata, const struct ip_rule *rule);

static int each_rule(sd_bus *bus, const char *slice, const char *property, rule_found found,
		     void *userdata, struct error *e)
{
	sd_bus_message *m = NULL;
	_cleanup_free_ char *path = NULL;
	struct ip_rule rule;
	int r = sd_bus_path_encode(MANAGER_PATH "/unit", slice, &path);

	if (r >= 0)
		r = sd_bus_get_property(bus, MANAGER_NAME, path, MANAGER_NAME ".Slice", property,
					NULL, &m, "a(iayu)");
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(iayu)");
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "iayu")) > 0) {
		r = read_rule(m, &rule);
		if (r >= 0)
			found(userdata, &rule);
	}
	sd_bus_message_unref(m);
	return r < 0 ? error_errno(e, r, "%s: its %s= cannot be read", slice, property) : 0;
}

static void count_any(void *userdata, const struct ip_rule *rule)
{
	int *any = userdata;

	*any += rule->prefix == 0;
}

struct comparison {
	const struct profile *profile;
	bool in_slice; /* or in one above, where nothing is due */
	size_t undue;
};

static void count_undue(void *userdata, const struct ip_rule *rule)
{
	struct comparison *c = userdata;

	c->undue += !(c->in_slice && slices_rule_is_due(c->profile, rule));
}

static int check_allowed(sd_bus *bus, const struct profile *p, const char *slice, bool in_slice,
			 struct error *e)
{
	struct comparison c = { .profile = p, .in_slice = in_slice };
	int r = each_rule(bus, slice, "IPAddressAllow", count_undue, &c, e);

	if (r < 0 || c.undue == 0)
		return r;
	return error_set(e, -ESTALE,
			 "%s: IPAddressAllow= would win over the guests' IPAddressDeny=any; "
			 "remove it",
			 slice);
}

/* The slice of the profile, and the child slices that its guests can come to lie in, which need not
 * be there yet: drop-ins are. */
static int check_parts(sd_bus *bus, const struct config *c, const struct profile *p,
		       struct error *e)
{
	char unit[PART_UNIT_MAX];
	int r = 0;

	for (unsigned int i = 0; i < part_count(c->uid_count) && r == 0; i++)
		r = check_allowed(bus, p, part_unit(p->name, i, unit), true, e);
	return r;
}

static int check_slice(sd_bus *bus, const struct config *c, const struct profile *p,
		       struct error *e)
{
	int any = 0, r = each_rule(bus, p->slice, "IPAddressDeny", count_any, &any, e);

	if (r == 0 && any < 2) /* IPv4 and IPv6 */
		return error_set(e, -ESTALE,
				 "%s: IPAddressDeny=any is missing; see systemctl cat %s", p->slice,
				 p->slice);
	if (r == 0)
		r = check_parts(bus, c, p, e);
	if (r == 0)
		r = check_allowed(bus, p, SLICE, false, e);
	return r < 0 ? r : check_allowed(bus, p, "-.slice", false, e);
}

/* ---- all of them ---- */

static int each_profile(const struct config *c, bool built_in,
			int (*f)(sd_bus *bus, const struct config *c, const struct profile *p,
				 struct error *e),
			struct error *e)
{
	sd_bus *bus = NULL;
	int r = sd_bus_open_system(&bus);

	if (r < 0)
		return error_errno(e, r,
				   "no connection to the system bus; is dbus.service running?");
	r = 0;
	for (uint32_t i = built_in ? 0 : PROFILE_BUILT_IN; i < c->n_profiles && r == 0; i++)
		r = f(bus, c, &c->profiles[i], e);
	sd_bus_flush_close_unref(bus);
	return r;
}

int slices_make(const struct config *c, struct error *e)
{
	return c->n_profiles > PROFILE_BUILT_IN ? each_profile(c, false, make_slice, e) : 0;
}

int slices_check(const struct config *c, struct error *e)
{
	return each_profile(c, true, check_slice, e);
}
