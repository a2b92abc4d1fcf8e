/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ownership of descriptors and memory, and whole reads and writes.
 *
 * A variable marked _cleanup_close_ or _cleanup_free_ owns what it holds; TAKE_FD() and TAKE_PTR()
 * hand it on. There is no other ownership idiom in the tree.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Has all that was printed to @file arrived? A buffer that could not be written is empty and has
 * nothing more to fail with: stdio(3) remembers. */
static inline bool file_written(FILE *file)
{
	return fflush(file) == 0 && !ferror(file);
}

static inline void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static inline void free_ptr(void *p)
{
	free(*(void **)p);
}

#define _cleanup_(f)	__attribute__((cleanup(f)))
#define _cleanup_close_ _cleanup_(close_fd)
#define _cleanup_free_	_cleanup_(free_ptr)

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int fd_ = (fd);                                                                    \
		(fd) = -1;                                                                         \
		fd_;                                                                               \
	})
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) p_ = (p);                                                            \
		(p) = NULL;                                                                        \
		p_;                                                                                \
	})

/* Reads a small kernel file (procfs, cgroupfs) below @dirfd whole, NUL-terminated, trailing
 * newline removed. @dirfd may be AT_FDCWD. Returns the length, -E2BIG when it does not fit. */
ssize_t read_file_at(int dirfd, const char *path, char *buf, size_t size);

/* The number in such a file; "max" is UINT64_MAX. -EINVAL when it is none. */
int read_number_at(int dirfd, const char *path, uint64_t *ret);

/* Writes @text with one write(2), as cgroupfs and procfs want it. */
int write_file_at(int dirfd, const char *path, const char *text);

/* A memfd that can be sealed (memfd_create(2)), which nobody can execute where the kernel knows
 * that. Negative errno. */
int sealable_memfd(const char *name);

/* Seals it against every change, further seals included (fcntl(2), F_ADD_SEALS). Negative errno. */
int seal_memfd(int fd);

/* Is it a memfd that was sealed so? It may have more seals. Never blocks, whatever @fd is. */
bool is_sealed_memfd(int fd);

/* Writes all of @data, in as many write(2) as it takes; waits when @fd would block. */
int write_whole(int fd, const void *data, size_t len);

/* The value of line "@key VALUE" in the flat-keyed text @text (cgroup-v2.rst, "Flat Keyed").
 * -ENOENT when there is no such line, -EINVAL when the value is no number. */
int keyed_u64(const char *text, const char *key, uint64_t *ret);
