/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memfd with a guest's arguments and environment: what is taken is, packed again, the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/request.h"

#define HEADER (2 * sizeof(uint32_t))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(int fd, const uint8_t *data, size_t size)
{
	void *got = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (lseek(fd, 0, SEEK_END) != (off_t)size || got == MAP_FAILED ||
	    memcmp(got, data, size) != 0)
		abort();
	munmap(got, size);
}

static void pack_again(char **argv, char **envp, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = strings_pack(argv, envp, NULL);

	if (fd < 0 || strings_check(fd, NULL) < 0)
		abort();
	compare(fd, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char **argv, **envp;

	if (fd < 0 || write_whole(fd, data, size) < 0 || strings_unpack(fd, &argv, &envp) < 0)
		return 0;
	pack_again(argv, envp, data, size);
	munmap(argv[0] - HEADER, size); /* there is at least one argument, and it comes first */
	free(argv);
	free(envp);
	return 0;
}
