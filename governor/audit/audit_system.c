/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the layers need of the kernel and of systemd. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "governor/audit/audit.h"
#include "governor/daemon/preflight.h"

#define FIREWALL_UNIT "harpe-gov-firewall.service"

static void look_preflight(const struct audit *a, struct finding *f)
{
	struct error e = ERROR_NULL;

	(void)a;
	if (preflight_check(false, &e) < 0)
		finding_add(f, VERDICT_FAIL, "%s", e.text);
	else
		finding_add(f, VERDICT_PASS, "all probes succeed");
}

static void look_boot(const struct audit *a, struct finding *f)
{
	static const char *const links[] = {
		"/etc/systemd/system/sysinit.target.wants/" FIREWALL_UNIT,
		"/usr/lib/systemd/system/sysinit.target.wants/" FIREWALL_UNIT,
	};

	(void)a;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (faccessat(AT_FDCWD, links[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			finding_add(f, VERDICT_PASS, "%s", links[i]);
			return;
		}
	finding_add(f, VERDICT_FAIL, FIREWALL_UNIT " is not enabled");
}

const struct audit_check audit_system_checks[] = {
	{ "HG-SYS-001", "The kernel and systemd have all that the layers need",
	  "the probes that harpe-govd makes when it starts: user namespace, cgroup v2 and its "
	  "controllers, capabilities, idmapped mounts, user namespaces, the system bus, "
	  "DisableControllers= of the slices",
	  "A layer that cannot be made is missing for every guest from now on.",
	  "What the sentence says", look_preflight },
	{ "HG-SYS-002", "The table is loaded at the next boot before there is a network",
	  "whether " FIREWALL_UNIT " is enabled",
	  "Else there is a time after each boot in which processes with uids of the pool can "
	  "send.",
	  "systemctl enable " FIREWALL_UNIT, look_boot },
	{ 0 },
};
