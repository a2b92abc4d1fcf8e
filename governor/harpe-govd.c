/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's entry point: started by harpe-gov.service and harpe-gov-firewall.service. */
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "governor/daemon.h"

static int usage(FILE *to, int status)
{
	fputs("usage: harpe-govd             serve (started by harpe-gov.service)\n"
	      "       harpe-govd --firewall  load the firewall and leave\n"
	      "See harpe-gov(1).\n",
	      to);
	return status;
}

int main(int argc, char **argv)
{
	struct error e = ERROR_NULL;
	int r;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--firewall") != 0))
		return usage(stderr, 2);
	if (geteuid() != 0) {
		fputs(SD_ERR "harpe-govd: must be started as root, by harpe-gov.service\n", stderr);
		return 1;
	}
	r = argc == 2 ? daemon_load_firewall_once(&e) : daemon_serve(&e);
	if (r < 0)
		fprintf(stderr, SD_ERR "harpe-govd: %s\n", e.text);
	return r < 0 ? 1 : 0;
}
