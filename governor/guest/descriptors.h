/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process that is about to become something else keeps of the descriptors it was born with.
 */
#pragma once

/* Moves the descriptors *list[0], *list[1], ... to the numbers @first, @first + 1, ..., says so
 * there, and closes all others from @first on; they close at exec but for 0, 1 and 2. One that is
 * negative stays so, and its number is closed. 0 or negative errno: then some of it is done.
 * @flags: of close_range(2), CLOSE_RANGE_CLOEXEC for who executes something soon anyway. */
int keep_descriptors(int *const list[], int n, int first, unsigned int flags);
