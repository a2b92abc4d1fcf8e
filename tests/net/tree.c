/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/net/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

struct tree tree;

static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

static uint64_t id_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static const char *find_mount(void)
{
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return mounts[i];
	return NULL;
}

static int make_directories(void)
{
	const char *const paths[] = { tree.a, tree.b, tree.c, tree.d, tree.e, tree.f };

	snprintf(tree.a, sizeof(tree.a), "%s/a", tree.slice);
	snprintf(tree.b, sizeof(tree.b), "%s/b", tree.a);
	snprintf(tree.c, sizeof(tree.c), "%s/c", tree.a);
	snprintf(tree.d, sizeof(tree.d), "%s/d", tree.slice);
	snprintf(tree.e, sizeof(tree.e), "%s/e", tree.d);
	snprintf(tree.f, sizeof(tree.f), "%s/f", tree.c);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (mkdir(paths[i], 0755) < 0)
			return -errno;
	return 0;
}

int tree_make(void)
{
	const char *mount = find_mount();

	if (!mount)
		return -ENOENT;
	snprintf(tree.slice, sizeof(tree.slice), "%s/hgtest-XXXXXX", mount);
	if (!mkdtemp(tree.slice) || make_directories() < 0)
		return -errno;
	tree.a_id = id_of(tree.a);
	tree.b_id = id_of(tree.b);
	tree.c_id = id_of(tree.c);
	tree.d_id = id_of(tree.d);
	tree.f_id = id_of(tree.f);
	tree.policy = (struct firewall_policy){
		.first_uid = 90000,
		.uid_count = 3,
		.slice_id = id_of(tree.slice),
		.slice_level = 1,
		.profile_level = 2,
		.scope_level = 3,
	};
	return 0;
}

void tree_remove(void)
{
	rmdir(tree.f);
	rmdir(tree.e);
	rmdir(tree.d);
	rmdir(tree.b);
	rmdir(tree.c);
	rmdir(tree.a);
	rmdir(tree.slice);
}

int tree_enter(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	return write_file_at(AT_FDCWD, path, "0");
}
