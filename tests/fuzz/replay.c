/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In place of libFuzzer: one run over every file of the directories given as arguments, so that
 * what a fuzzer once found stays found.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fd.h"

#define INPUT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dir, const char *name)
{
	_cleanup_free_ uint8_t *data = malloc(INPUT_MAX);
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 && data ? read(fd, data, INPUT_MAX) : -1;

	if (n < 0) {
		perror(name);
		return -1;
	}
	LLVMFuzzerTestOneInput(data, (size_t)n);
	return 0;
}

/* The number of files, negative on failure. */
static int replay_directory(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir) {
		perror(path);
		return -1;
	}
	for (struct dirent *d = readdir(dir); d && n >= 0; d = readdir(dir)) {
		if (d->d_name[0] == '.')
			continue;
		n = replay_file(dirfd(dir), d->d_name) < 0 ? -1 : n + 1;
	}
	closedir(dir);
	return n;
}

int main(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++) {
		int n = replay_directory(argv[i]);

		if (n <= 0) {
			fprintf(stderr, "%s: nothing replayed\n", argv[i]);
			return 1;
		}
		printf("%s: %d inputs\n", argv[i], n);
	}
	return 0;
}
