/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The supervisor's deadline for whatever touches a descriptor of the peer's: reading, looking at or
 * closing one can block for as long as the peer likes (FUSE, a lingering socket). When the time is
 * up the process ends, having told the peer why.
 */
#pragma once

#define DEADLINE_SEC 5

/* Prepares the answer that @client gets. */
void deadline_prepare(int client);

void deadline_begin(void);
void deadline_end(void);

/* From now on there is no answer: "refused" would not be true of a guest that ran. */
void deadline_silence(void);
