/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "governor/supervisor/deadline.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/request.h"

/* Made before it is needed, since a signal handler may only send it. */
static WIRE_BUFFER(refusal);
static ssize_t refusal_len;
static int peer = -1;

static void on_alarm(int signal)
{
	(void)signal;
	if (refusal_len > 0)
		send(peer, refusal, (size_t)refusal_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	_exit(1);
}

void deadline_prepare(int client)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct answer a = { .count = 0 };

	peer = client;
	snprintf(a.text, sizeof(a.text),
		 "the request, or a descriptor that came with it, took more than %d s to look at",
		 DEADLINE_SEC);
	refusal_len = wire_encode(WIRE_REFUSED, answer_fields, answer_n_fields, &a, refusal,
				  sizeof(refusal));
	sigaction(SIGALRM, &action, NULL);
}

void deadline_begin(void)
{
	alarm(DEADLINE_SEC);
}

void deadline_end(void)
{
	alarm(0);
}

void deadline_silence(void)
{
	refusal_len = 0;
}
