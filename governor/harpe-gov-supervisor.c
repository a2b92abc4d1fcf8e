/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of a supervisor, started by harpe-govd with descriptors (supervisor.h). It links
 * little: what it maps, the guest's process begins with as well. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "governor/guest/confine.h"
#include "governor/supervisor/means.h"
#include "governor/supervisor/supervisor.h"

int main(int argc, char **argv)
{
	struct guest_means means = { .ground = SUPERVISOR_GROUND_FD };
	struct error e = ERROR_NULL;

	if (argc > 1) /* harpe-govd wants to know whether it fits */
		return argc == 2 && strcmp(argv[1], means_build()) == 0 ? 0 : SUPERVISOR_MISFIT;
	prctl(PR_SET_NAME, "harpe-gov-super"); /* executed by descriptor, it has the name of that */
	if (means_map(SUPERVISOR_MEANS_FD, &means, &e) == 0 && confine_bound(&e) == 0)
		supervisor_main(SUPERVISOR_LISTENER_FD, SUPERVISOR_DAEMON_FD, &means);
	fprintf(stderr, "harpe-gov-supervisor: %s\n", e.text);
	return SUPERVISOR_MISFIT;
}
