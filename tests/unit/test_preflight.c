/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/wait.h>

#include "governor/daemon/preflight.h"
#include "governor/daemon/preflight_systemd.h"

/* One sentence that names what is missing and what helps. */
static void assert_refused(int r, const struct error *e, const char *missing, const char *remedy)
{
	assert_true(r < 0);
	assert_non_null(strstr(e->text, missing));
	assert_non_null(strstr(e->text, remedy));
	assert_null(strchr(e->text, '\n'));
	assert_true(strlen(e->text) < sizeof(e->text) - 1);
}

static void needs_the_unified_hierarchy(void **state)
{
	static const struct {
		long type, unified;
		const char *what;
	} refused[] = {
		{ TMPFS_MAGIC, CGROUP2_SUPER_MAGIC, "hybrid" },
		{ TMPFS_MAGIC, TMPFS_MAGIC, "is v1" },
		{ TMPFS_MAGIC, 0, "is v1" },
		{ CGROUP_SUPER_MAGIC, 0, "is v1" },
		{ SYSFS_MAGIC, SYSFS_MAGIC, "nothing that is known" },
		{ 0, 0, "nothing that is known" },
	};

	(void)state;
	assert_int_equal(preflight_hierarchy(CGROUP2_SUPER_MAGIC, 0, NULL), 0);
	assert_int_equal(preflight_hierarchy(CGROUP2_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct error e = ERROR_NULL;
		int r = preflight_hierarchy(refused[i].type, refused[i].unified, &e);

		assert_refused(r, &e, "cgroup v2 needed", "systemd.unified_cgroup_hierarchy=1");
		assert_non_null(strstr(e.text, refused[i].what));
	}
}

static void needs_three_controllers(void **state)
{
	static const struct {
		const char *available, *missing;
	} refused[] = {
		{ "", "cpu" },
		{ "cpuset io memory pids rdma", "cpu" },
		{ "cpuset cpu io pids", "memory" },
		{ "cpu memory hugetlb pidsx", "pids" },
		{ "xcpu memory pids", "cpu" },
	};

	(void)state;
	assert_int_equal(preflight_controllers("cpuset cpu io memory hugetlb pids rdma misc", NULL),
			 0);
	assert_int_equal(preflight_controllers("pids memory cpu", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct error e = ERROR_NULL;
		int r = preflight_controllers(refused[i].available, &e);
		char missing[64];

		snprintf(missing, sizeof(missing), "the %s controller is not available",
			 refused[i].missing);
		assert_refused(r, &e, missing, "boot without cgroup_disable=");
	}
}

static void needs_the_hosts_user_namespace(void **state)
{
	static const char *const refused[] = { "",
					       "         0       1000          1",
					       "         0     100000      65536",
					       "         0          0      65536",
					       "         0          1 4294967295",
					       "nonsense" };

	(void)state;
	assert_int_equal(preflight_user_namespace("         0          0 4294967295", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct error e = ERROR_NULL;
		int r = preflight_user_namespace(refused[i], &e);

		assert_refused(r, &e, "user namespace", "start it on the host");
	}
}

static void names_the_capability_that_is_missing(void **state)
{
	struct error e = ERROR_NULL;
	int r;

	(void)state;
	assert_int_equal(preflight_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n", NULL), 0);
	r = preflight_capabilities("Name:\tx\nCapEff:\t000001ffffffefff\n", &e);
	assert_refused(r, &e, "CAP_NET_ADMIN is missing", "CapabilityBoundingSet=");
	r = preflight_capabilities("Name:\tx\nCapEff:\t000001fffff7ffff\n", &e);
	assert_refused(r, &e, "CAP_SYS_PTRACE is missing", "CapabilityBoundingSet=");
	r = preflight_capabilities("Name:\tx\nCapEff:\t0000000000000000\n", &e);
	assert_refused(r, &e, "CAP_NET_ADMIN is missing", "CapabilityBoundingSet=");
	r = preflight_capabilities("Name:\tx\nCapPrm:\t000001ffffffffff\n", &e);
	assert_refused(r, &e, "/proc/self/status", "mount");
	r = preflight_capabilities("Name:\tx\nCapEff:\tnone\n", &e);
	assert_refused(r, &e, "/proc/self/status", "mount");
}

/* What the service gives is enough: one bit after the other is taken away. */
static void asks_for_no_capability_that_the_service_lacks(void **state)
{
	_cleanup_free_ char *unit = source_text("units/harpe-gov.service");
	const char *given = strstr(unit, "CapabilityBoundingSet=");
	unsigned int n_needed = 0;

	(void)state;
	assert_non_null(given);
	for (unsigned int bit = 0; bit <= 40; bit++) {
		struct error e = ERROR_NULL;
		char status[64], name[64] = "";
		uint64_t have = UINT64_C(0x1ffffffffff) & ~(UINT64_C(1) << bit);

		snprintf(status, sizeof(status), "\nCapEff:\t%016llx\n", (unsigned long long)have);
		if (preflight_capabilities(status, &e) == 0)
			continue;
		assert_int_equal(sscanf(e.text, "%63s is missing", name), 1);
		assert_mentions(given, "", name, "");
		n_needed++;
	}
	assert_true(n_needed > 10);
}

static void needs_idmapped_mounts(void **state)
{
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(preflight_idmap(EBADF, NULL), 0);
	assert_refused(preflight_idmap(ENOSYS, &e), &e, "no idmapped mounts", "Linux 6.1");
	assert_refused(preflight_idmap(EINVAL, &e), &e, "no idmapped mounts", "Linux 6.1");
	assert_refused(preflight_idmap(EPERM, &e), &e, "not permitted", "allow it");
}

static void needs_user_namespaces(void **state)
{
	struct error e = ERROR_NULL;

	(void)state;
	assert_int_equal(preflight_user_namespaces(0, NULL), 0);
	assert_refused(preflight_user_namespaces(ENOSPC, &e), &e, "user namespaces are disabled",
		       "user.max_user_namespaces");
	assert_refused(preflight_user_namespaces(EINVAL, &e), &e, "has no user namespaces",
		       "CONFIG_USER_NS");
	assert_refused(preflight_user_namespaces(EPERM, &e), &e, "not permitted",
		       "user.max_user_namespaces");
}

static void finds_the_line_that_takes_a_controller_away(void **state)
{
	static const char *const with[] = {
		"DisableControllers=cpu",
		"[Slice]\nDisableControllers=cpu\n",
		"[Slice]\n  DisableControllers = io cpu\tmemory\nMemoryMax=1G\n",
		"DisableControllers=\nDisableControllers=memory\nDisableControllers=pids cpu",
	};
	static const char *const without[] = {
		"",
		"\n",
		"DisableControllers=",
		"DisableControllers",
		"DisableControllers=cpuset",
		"DisableControllers=memory\ncpu",
		"#DisableControllers=cpu\n; DisableControllers=cpu",
		"XDisableControllers=cpu\nDisableControllersX=cpu\n",
		"CPUWeight=50 cpu",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(with); i++)
		if (!preflight_disables(with[i], "cpu"))
			fail_msg("not found: %s", with[i]);
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (preflight_disables(without[i], "cpu"))
			fail_msg("found: %s", without[i]);
}

/* Whatever this host is: one sentence, or none, and nothing is left of it. */
static void leaves_nothing_behind(void **state)
{
	int before = open_fds();

	(void)state;
	for (int firewall_only = 0; firewall_only < 2; firewall_only++) {
		struct error e = ERROR_NULL;
		int r = preflight_check(firewall_only, &e);

		assert_int_equal(r == 0, e.text[0] == '\0');
		assert_null(strchr(e.text, '\n'));
	}
	assert_int_equal(open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_the_unified_hierarchy),
		cmocka_unit_test(needs_three_controllers),
		cmocka_unit_test(needs_the_hosts_user_namespace),
		cmocka_unit_test(names_the_capability_that_is_missing),
		cmocka_unit_test(asks_for_no_capability_that_the_service_lacks),
		cmocka_unit_test(needs_idmapped_mounts),
		cmocka_unit_test(needs_user_namespaces),
		cmocka_unit_test(finds_the_line_that_takes_a_controller_away),
		cmocka_unit_test(leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
