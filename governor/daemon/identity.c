/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/daemon/identity.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/fd.h"

enum uid_state { UID_FREE, UID_LEASED, UID_QUARANTINED };

struct uid {
	uint8_t state;
	bool has_process, has_key; /* as of the last look */
	bool named;		   /* held() was called for it */
	bool returned;		   /* by a guest, since it was free */
};

/* A ring of the free uids, oldest first. */
struct identity_pool {
	uint32_t first_uid, count;
	uint32_t head, n_free, n_quarantined;
	struct uid *uids;
	uint32_t ring[];
};

int identity_pool_new(uint32_t first_uid, uint32_t count, struct identity_pool **ret)
{
	struct identity_pool *p = calloc(1, sizeof(*p) + count * sizeof(p->ring[0]));

	if (!p)
		return -ENOMEM;
	p->uids = calloc(count, sizeof(*p->uids));
	if (!p->uids) {
		free(p);
		return -ENOMEM;
	}
	p->first_uid = first_uid;
	p->count = count;
	p->n_quarantined = count;
	for (uint32_t i = 0; i < count; i++)
		p->uids[i].state = UID_QUARANTINED;
	*ret = p;
	return 0;
}

void identity_pool_free(struct identity_pool *p)
{
	if (p)
		free(p->uids);
	free(p);
}

uint32_t identity_n_free(const struct identity_pool *p)
{
	return p->n_free;
}

uint32_t identity_n_quarantined(const struct identity_pool *p)
{
	return p->n_quarantined;
}

int identity_lease(struct identity_pool *p, uint32_t *ret_uid, struct error *e)
{
	if (p->n_free == 0)
		return error_set(e, -EUSERS,
				 "no uid of the pool's %u is free; wait for a guest to end, use "
				 "--wait, or raise [pool] count",
				 p->count);
	*ret_uid = p->ring[p->head];
	p->head = (p->head + 1) % p->count;
	p->n_free--;
	p->uids[*ret_uid - p->first_uid].state = UID_LEASED;
	return 0;
}

void identity_return(struct identity_pool *p, uint32_t uid)
{
	p->uids[uid - p->first_uid].state = UID_QUARANTINED;
	p->uids[uid - p->first_uid].returned = true;
	p->n_quarantined++;
}

/* ---- looking ---- */

void identity_parse_status(const char *status, void (*found)(void *userdata, uint32_t uid),
			   void *userdata)
{
	const char *line = strstr(status, "\nUid:");
	char *end;

	if (!line)
		return;
	for (line += strlen("\nUid:"); *line && *line != '\n'; line = end) {
		unsigned long uid = strtoul(line, &end, 10);

		if (end == line)
			return;
		found(userdata, (uint32_t)uid);
	}
}

/* " 1000:    24 23/23 2/200 40/20000": uid, references, keys, ... */
void identity_parse_key_users(FILE *file, void (*found)(void *userdata, uint32_t uid),
			      void *userdata)
{
	unsigned int uid, references, keys;
	char line[256];

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %u: %u %u/", &uid, &references, &keys) == 3 && keys > 0)
			found(userdata, uid);
}

static struct uid *find(struct identity_pool *p, uint32_t uid)
{
	return uid >= p->first_uid && uid - p->first_uid < p->count ? &p->uids[uid - p->first_uid]
								    : NULL;
}

static void found_process(void *userdata, uint32_t uid)
{
	struct uid *u = find(userdata, uid);

	if (u)
		u->has_process = true;
}

static void found_key(void *userdata, uint32_t uid)
{
	struct uid *u = find(userdata, uid);

	if (u)
		u->has_key = true;
}

static ssize_t read_start(int dirfd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

/* The owner of /proc/PID will not do: that is root for a process that is not dumpable. */
static int look_for_processes(struct identity_pool *p, struct error *e)
{
	_cleanup_(close_directory) DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		return error_errno(e, -errno, "/proc cannot be read");
	while ((entry = readdir(proc))) {
		char path[300], status[1024]; /* "Uid:" is the ninth line; groups come later */
		ssize_t n;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%s/status", entry->d_name);
		n = read_start(dirfd(proc), path, status, sizeof(status));
		if (n >= 0)
			identity_parse_status(status, found_process, p);
		else if (n != -ENOENT && n != -ESRCH) /* not just gone meanwhile */
			return error_errno(e, (int)n, "/proc/%s: cannot be read", path);
	}
	return 0;
}

/* As a real uid. Whatever else goes wrong does not say that there is none. */
static bool has_process(uint32_t uid)
{
	errno = 0;
	getpriority(PRIO_USER, uid);
	return errno != ESRCH;
}

static void look_for_keys(struct identity_pool *p)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/key-users", "re");

	if (file) /* else the kernel has no keys */
		identity_parse_key_users(file, found_key, p);
}

static void set_free(struct identity_pool *p, uint32_t uid)
{
	p->uids[uid - p->first_uid].state = UID_FREE;
	p->uids[uid - p->first_uid].returned = false;
	p->ring[(p->head + p->n_free) % p->count] = uid;
	p->n_free++;
	p->n_quarantined--;
}

static void judge(struct identity_pool *p, uint32_t i, identity_held held)
{
	struct uid *u = &p->uids[i];

	if (!u->has_process && !u->has_key) {
		u->named = false;
		set_free(p, p->first_uid + i);
	} else if (!u->named) {
		u->named = true;
		held(p->first_uid + i, u->has_process ? "a process has it" : "a key belongs to it");
	}
}

static void forget_last_look(struct identity_pool *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		p->uids[i].has_process = p->uids[i].has_key = false;
}

void identity_verify_returned(struct identity_pool *p, identity_held held)
{
	forget_last_look(p);
	look_for_keys(p);
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->uids[i].state != UID_QUARANTINED || !p->uids[i].returned)
			continue;
		p->uids[i].has_process = has_process(p->first_uid + i);
		judge(p, i, held);
	}
}

int identity_verify(struct identity_pool *p, identity_held held, struct error *e)
{
	int r;

	forget_last_look(p);
	r = look_for_processes(p, e);
	if (r < 0)
		return r;
	look_for_keys(p);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->uids[i].state == UID_QUARANTINED)
			judge(p, i, held);
	return 0;
}
