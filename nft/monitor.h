/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who changes the host's ruleset, as nf_tables tells its listeners after every commit (group
 * NFNLGRP_NFTABLES, message NFT_MSG_NEWGEN).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MONITOR_NAME_MAX 16 /* TASK_COMM_LEN */

/* What was heard since it was all zero. */
struct monitor_news {
	bool changed;
	bool lost;		     /* messages did not fit: somebody else may have, too */
	bool ours;		     /* the commit whose end is yet to come is to our table */
	uint32_t pid;		     /* who changed our table last; 0 = nobody, or not known */
	char name[MONITOR_NAME_MAX]; /* of that process, as it calls itself */
};

/* A socket that is readable when something was committed in this network namespace. Returns the
 * descriptor, non-blocking. */
int monitor_open(struct error *e);

/* Adds all that is there to @news, up to a bound; the rest makes the socket readable again. One's
 * own commits are among it: another process may have got hold of one's socket. */
void monitor_read(int fd, struct monitor_news *news);

/* The pure part: one received buffer. */
void monitor_feed(const void *buf, size_t len, struct monitor_news *news);
