/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The least that running a program as somebody else can cost: "floor UID COMMAND..." takes the uid
 * and the gid of that number and executes the command. To be called by root. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned int id = argc > 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;

	if (id == 0) {
		fputs("usage: floor UID COMMAND...\n", stderr);
		return 2;
	}
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0) {
		perror("floor");
		return 125;
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
