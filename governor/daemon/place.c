/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

int place_id(struct run *r, struct error *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(e, -errno, "no random number");
	snprintf(r->id, sizeof(r->id), "%016" PRIx64, random);
	return 0;
}

int place_name(struct run *r, struct error *e)
{
	int ret = place_id(r, e);

	if (ret == 0)
		snprintf(r->scope, sizeof(r->scope), "harpe-%s.scope", r->id);
	return ret;
}

unsigned int place_part(const struct run *r)
{
	uint32_t n_scopes[PARTS_MAX] = { 0 };

	for (const struct run *o = r->d->runs; o; o = o->next)
		if (o->has_scope && o->slice == r->slice)
			n_scopes[o->part]++;
	return part_with_room(n_scopes, part_count(r->d->config->uid_count));
}

/* Settles where the scope will be. */
static int settle(struct run *r, struct error *e)
{
	char slice[PATH_TEXT_MAX];

	r->part = place_part(r);
	part_path(r->slice->path, r->slice->profile, r->part, slice);
	if ((size_t)snprintf(r->path, sizeof(r->path), "%s/%s", slice, r->scope) >= sizeof(r->path))
		return error_set(e, -ENAMETOOLONG, "the slice lies too deep");
	return 0;
}

int place_take(struct run *r, const char *description, scope_callback started, struct error *e)
{
	char slice[PART_UNIT_MAX];
	struct scope_spec spec = {
		.name = r->scope,
		.slice = slice,
		.description = description,
		.limits = &r->made,
	};
	int ret = settle(r, e);

	if (ret == 0)
		ret = identity_lease(r->d->pool, &r->uid, e);
	if (ret < 0)
		return ret;
	part_unit(r->slice->profile, r->part, slice);
	daemon_keep_part(r->d, r->slice, r->part);
	ret = holder_start(&r->holder);
	spec.pid = r->holder.pid;
	if (ret < 0)
		error_errno(e, ret, "no process to make a scope around");
	else
		ret = scope_start(r->d->scopes, &spec, started, r, e);
	if (ret < 0) {
		holder_stop(&r->holder);
		daemon_quarantine(r->d, r->uid);
		return ret;
	}
	r->has_scope = r->job = true;
	r->state = RUN_STARTING;
	run_set_timer(r, SETUP_USEC);
	return 0;
}

int place_check(struct run *r, struct error *e)
{
	char path[PATH_TEXT_MAX];
	struct stat st;
	int ret = scope_path(r->scope, r->holder.pid, path, e);

	if (ret < 0)
		return ret;
	if (strcmp(path, r->path) != 0)
		return error_set(e, -ESTALE, "systemd made %s instead of %s", path, r->path);
	if (stat(path, &st) < 0)
		return error_errno(e, -errno, "%s", path);
	r->scope_id = st.st_ino;
	daemon_watch_part(r->d, r->slice, r->part);
	return 0;
}

bool place_is_there(const struct run *r)
{
	struct stat st;

	return stat(r->path, &st) == 0 && st.st_ino == r->scope_id && !holder_is_dead(&r->holder);
}

void place_move(struct run *from, struct run *to)
{
	memcpy(to->scope, from->scope, sizeof(to->scope));
	memcpy(to->path, from->path, sizeof(to->path));
	to->slice = from->slice;
	to->part = from->part;
	to->scope_id = from->scope_id;
	to->made = from->made;
	to->born_usec = from->born_usec;
	to->served = from->served;
	to->epoch = from->epoch;
	to->holder = from->holder;
	from->holder = (struct holder){ 0 };
	to->has_scope = true;
}

void place_leave(struct run *r)
{
	scope_stop(r->d->scopes, r->scope);
	if (run_scope_is_gone(r))
		run_finish(r);
	else
		run_set_timer(r, SCOPE_USEC);
}
