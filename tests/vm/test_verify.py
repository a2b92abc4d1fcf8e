# SPDX-License-Identifier: GPL-2.0-or-later
"""`harpe-gov verify`: everything passes on a healthy machine, and what does not hold is noticed."""
import glob
import json
import pathlib

from lib import AGENT, Result, as_agent, expect, expect_equal, sh

# Until guests have a view of their own.
OPEN = {"files.homes", "files.devices", "files.sysfs", "files.nosuid", "processes.others"}
STATUSES = {"PASS": 0, "FAIL": 1, "UNKNOWN": 2}
# A kernel without Landlock's scopes leaves these open in the host's network (SECURITY.md).
ABSTRACT = "doors.abstract"


def ask(*args, **options):
    """The report of `harpe-gov verify`, by the agent."""
    r = Result(as_agent(["harpe-gov", "verify", "--json", *args], **options), timeout=300)
    expect(r.stdout, r)
    report = json.loads(r.stdout)
    expect_equal((report["schema"], r.status), (1, STATUSES[report["result"]]), r.stderr)
    return report


def of(report, result):
    return {c["id"]: c["seen"] for c in report["checks"] if c["result"] == result}


def assert_healthy(report, unknown=()):
    expect(set(of(report, "FAIL")) <= OPEN, of(report, "FAIL"))
    expect(set(of(report, "UNKNOWN")) <= set(unknown), of(report, "UNKNOWN"))


def left_behind():
    places = ("/tmp", "/var/tmp", "/dev/shm", AGENT.pw_dir)
    return [p for place in places for p in glob.glob(f"{place}/*harpe-gov-verify*")] + \
        glob.glob(f"{AGENT.pw_dir}/.harpe-gov-verify*")


def test_healthy():
    """Every boundary holds for guests of each profile, and nothing is left of having tried."""
    objects = sh("ipcs")
    for net, unknown in (("isolated", ()), ("drop", (ABSTRACT,)), ("reject", (ABSTRACT,))):
        report = ask("--net", net)
        expect_equal((report["profile"], report["target"]), (net, None))
        expect(len(report["checks"]) >= 60, len(report["checks"]))
        assert_healthy(report, unknown)
    expect_equal(left_behind(), [])
    expect_equal(sh("ipcs"), objects)


def test_for_people():
    """The table, and the policy's profile when none is named."""
    r = Result(as_agent(["harpe-gov", "verify"]), timeout=300)
    expect("network profile isolated" in r.stdout.decode(), r)
    expect_equal((r.status, r.stderr), (1, b""), r)
    listed = Result(as_agent(["harpe-gov", "verify", "--list"])).stdout.decode()
    ids = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    for name in set(ids) - {"network.target-tcp", "network.target-udp"}:
        expect(name in r.stdout.decode() or "link-local" in name, name)


def test_without_the_daemon():
    """One sentence, and exit status 3."""
    sh("systemctl stop harpe-gov.socket harpe-gov.service")
    try:
        r = Result(as_agent(["harpe-gov", "verify"]), timeout=300)
        expect_equal((r.status, r.stdout, r.stderr.count(b"\n")), (3, b"", 1), r)
    finally:
        sh("systemctl start harpe-gov.socket harpe-gov.service")
    expect_equal(left_behind(), [])
