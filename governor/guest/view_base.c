/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/guest/view_base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"

/* hier(7). All but the first and the last are symbolic links where /usr is merged. */
static const char *const built_in[] = { "/usr",	  "/bin",   "/sbin",   "/lib",
					"/lib32", "/lib64", "/libx32", "/etc" };

_Static_assert(ARRAY_SIZE(built_in) + VIEW_PATHS_MAX <= VIEW_BASE_MAX, "all of them fit");

const char *view_path_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (strncmp(path, top, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

const char *view_own_place(const char *path)
{
	static const char *const whole[] = { "/tmp", "/var/tmp", "/dev/shm", "/run", "/" };
	static const char *const trees[] = { "/proc", "/dev" };

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (strcmp(path, whole[i]) == 0)
			return whole[i];
	if (view_path_below(path, "/dev/shm"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		if (view_path_below(path, trees[i]))
			return trees[i];
	return NULL;
}

static int look_at(const char *path, bool may_link, struct view_place *ret)
{
	struct stat st;
	ssize_t n;

	*ret = (struct view_place){ .is_directory = true };
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	n = may_link ? readlink(path, ret->link, sizeof(ret->link) - 1) : -1;
	if (n >= (ssize_t)sizeof(ret->link) - 1)
		n = 0; /* it may be longer: where it leads is bound instead */
	ret->link[n > 0 ? n : 0] = '\0';
	if (n > 0)
		return 0;
	if (stat(path, &st) < 0)
		return -errno;
	ret->is_directory = S_ISDIR(st.st_mode);
	return 0;
}

/* The view has the same links as the host at most where it shows the same: what lies behind one is
 * shown by its own name. */
static int refuse_link(const char *path, struct error *e)
{
	_cleanup_free_ char *real = realpath(path, NULL);

	if (!real || strcmp(real, path) == 0)
		return 0;
	return error_set(e, -ELOOP, "[view] ro: %s leads over a symbolic link: write %s", path,
			 real);
}

int view_base_load(const struct view_paths *ro, const struct view_paths *hidden,
		   struct view_base *ret, struct error *e)
{
	struct view_base *b = ret;

	b->n_places = 0;
	b->hidden = *hidden;
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
		if (look_at(built_in[i], true, &b->places[b->n_places]) == 0)
			b->n_places++;
	b->n_built_in = b->n_places;
	for (size_t i = 0; i < ro->n; i++) {
		int r = look_at(ro->path[i], false, &b->places[b->n_places++]);

		if (r < 0)
			return error_errno(e, r, "[view] ro: %s cannot be shown to guests",
					   ro->path[i]);
		r = refuse_link(ro->path[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Among the first @n places. */
static bool has(const struct view_base *base, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!base->places[i].link[0] && view_path_below(path, base->places[i].path))
			return true;
	return false;
}

bool view_base_has(const struct view_base *base, const char *path)
{
	return has(base, base->n_places, path);
}

bool view_base_has_built_in(const struct view_base *base, const char *path)
{
	return has(base, base->n_built_in, path);
}
