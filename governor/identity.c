/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/identity.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/fd.h"

/* A ring of free uids, oldest first; the slots that are not free are leased or held back. */
struct identity_pool {
	uint32_t first_uid, count;
	uint32_t head, n_free;
	uint32_t held_back;
	uint32_t ring[];
};

int identity_pool_new(uint32_t first_uid, uint32_t count, struct identity_pool **ret)
{
	struct identity_pool *p = calloc(1, sizeof(*p) + count * sizeof(p->ring[0]));

	if (!p)
		return -ENOMEM;
	p->first_uid = first_uid;
	p->count = count;
	p->n_free = count;
	for (uint32_t i = 0; i < count; i++)
		p->ring[i] = first_uid + i;
	*ret = p;
	return 0;
}

void identity_pool_free(struct identity_pool *p)
{
	free(p);
}

uint32_t identity_leased(const struct identity_pool *p)
{
	return p->count - p->n_free - p->held_back;
}

int identity_lease(struct identity_pool *p, uint32_t *ret_uid, struct error *e)
{
	if (p->n_free == 0)
		return error_set(
			e, -EUSERS,
			"all %u uids of the pool are in use; wait for a guest to end, or raise "
			"[pool] count",
			p->count);
	*ret_uid = p->ring[p->head];
	p->head = (p->head + 1) % p->count;
	p->n_free--;
	return 0;
}

void identity_return(struct identity_pool *p, uint32_t uid)
{
	p->ring[(p->head + p->n_free) % p->count] = uid;
	p->n_free++;
}

/* Drops @uid from the ring, which must not have been used yet. */
static void hold_back(struct identity_pool *p, uint32_t uid)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n_free; i++)
		if (p->ring[i] != uid)
			p->ring[kept++] = p->ring[i];
	p->held_back += p->n_free - kept;
	p->n_free = kept;
}

int identity_hold_back_busy(struct identity_pool *p, struct error *e)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat st;

	if (!proc)
		return error_errno(e, -errno, "/proc cannot be read");
	while ((entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    fstatat(dirfd(proc), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (st.st_uid >= p->first_uid && st.st_uid - p->first_uid < p->count)
			hold_back(p, st.st_uid);
	}
	closedir(proc);
	return (int)p->held_back;
}
