/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of the kernel's that have no place in the view. */
#include <fcntl.h>
#include <mqueue.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "governor/probe/probe.h"

/* Those that verify has made, with this key. */
static void try_sysv(const struct probe *p, char *aim, struct seen *s)
{
	key_t key = (key_t)strtol(aim, NULL, 10);

	(void)p;
	seen_attempt(s, "shmget", shmget(key, 0, 0));
	seen_attempt(s, "msgget", msgget(key, 0));
	seen_attempt(s, "semget", semget(key, 0, 0));
}

/* One that verify looks for. */
static void try_sysv_made(const struct probe *p, char *aim, struct seen *s)
{
	key_t key = (key_t)strtol(aim, NULL, 10);

	(void)p;
	seen_attempt(s, "shmget", shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666));
}

static void try_mqueue(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	seen_attempt(s, "mq_open", mq_open(aim, O_RDONLY | O_NONBLOCK));
}

const struct probe ipc_probes[] = {
	{ "ipc.sysv", try_sysv, { 0 }, NULL, false },
	{ "ipc.sysv-made", try_sysv_made, { 0 }, NULL, false },
	{ "ipc.mqueue", try_mqueue, { 0 }, NULL, false },
	{ 0 },
};
