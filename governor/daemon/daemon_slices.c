/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slices of the profiles as the daemon serves them: a pin in each part that is used keeps its
 * controllers on, and a watch tells when a scope in it is gone.
 */
#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "governor/daemon/daemon.h"
#include "governor/daemon/journal.h"
#include "governor/daemon/run.h"
#include "governor/daemon/runs.h"

static int on_change(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	struct part *part = userdata;

	(void)source;
	if (event->len == 0 || !(event->mask & IN_DELETE))
		return 0;
	if (pin_lost(&part->pin, part->d->scopes, event->name))
		return 0; /* the next run brings another */
	runs_scope_gone(part->d, event->name);
	return 0;
}

/* The directory that is there now: it is another one when the slice was made anew. */
static int watch(struct part *part, const char *path, uint64_t id)
{
	if (part->watched == id)
		return 0;
	part->watched = id; /* tried once, whatever comes of it */
	part->watch = sd_event_source_disable_unref(part->watch);
	return sd_event_add_inotify(part->d->event, &part->watch, path, IN_DELETE | IN_ONLYDIR,
				    on_change, part);
}

static struct part *part_of(struct daemon *d, struct profile_slice *slice, unsigned int number)
{
	struct part *part = &slice->parts[number];

	part->d = d;
	return part;
}

/* Those that are served already stay as they are. */
int daemon_serve_slices(struct daemon *d, struct error *e)
{
	int ret = 0;

	for (size_t i = 0; i < d->n_slices; i++) {
		struct profile_slice *s = d->slices[i];
		int r = watch(part_of(d, s, 0), s->path, s->id);

		if (r < 0)
			ret = error_errno(e, r, "%s cannot be watched", s->path);
		daemon_keep_part(d, s, 0);
	}
	return ret;
}

void daemon_keep_slices(struct daemon *d)
{
	struct error e = ERROR_NULL;

	if (daemon_serve_slices(d, &e) < 0)
		journal_error("%s", e.text);
}

void daemon_keep_part(struct daemon *d, struct profile_slice *slice, unsigned int number)
{
	struct part *part = part_of(d, slice, number);
	char unit[PART_UNIT_MAX];

	pin_keep(&part->pin, d->scopes, part_unit(slice->profile, number, unit));
}

void daemon_watch_part(struct daemon *d, struct profile_slice *slice, unsigned int number)
{
	char path[PATH_TEXT_MAX];
	struct error e = ERROR_NULL;
	struct stat st;
	int r;

	part_path(slice->path, slice->profile, number, path);
	r = stat(path, &st) < 0 ? -errno : watch(part_of(d, slice, number), path, st.st_ino);
	if (r < 0) {
		error_errno(&e, r, "%s cannot be watched", path);
		journal_error("%s", e.text);
	}
}

void daemon_leave_slices(struct daemon *d)
{
	for (size_t i = 0; i < d->n_slices; i++)
		for (unsigned int j = 0; j < PARTS_MAX; j++) {
			sd_event_source_disable_unref(d->slices[i]->parts[j].watch);
			pin_stop(&d->slices[i]->parts[j].pin);
		}
}
