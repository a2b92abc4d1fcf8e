# SPDX-License-Identifier: GPL-2.0-or-later
"""`harpe-gov verify`: everything passes on a healthy machine, and what does not hold is noticed."""
import contextlib
import glob
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

from lib import (AGENT, DROP_SLICE, POOL, Result, as_agent, expect, expect_equal, ps, sh, wait_ready,
                 wait_until)
from leaks import layers
from leaks.attempts import load_modules
from leaks.far import FAR4, NEAR, cable

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
    expect_equal(of(report, "FAIL"), {})
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
    expect_equal((r.status, r.stderr), (0, b""), r)
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


# ---- layers that are taken away ----

SUSPEND = pathlib.Path(__file__).parent / "leaks/suspend.py"
TOKEN = b"harpe-gov-verify"
GROUPS = "239.77.0.0/16"
GUESTS_GROUP = socket.inet_aton("239.77.1.1")
CARRIERS = {socket.IPPROTO_TCP, socket.IPPROTO_UDP, socket.IPPROTO_SCTP, socket.IPPROTO_UDPLITE}

BY_TABLE, BY_CGROUP, BY_ADDRESS, BY_FILTER = 1, 2, 3, 4
ARRIVALS = {"network.tcp", "network.tcp-mapped", "network.tcp-fastopen", "network.udp",
            "network.udp-mapped", "network.udp-fragments"}
FILTERED = {"sockets.udplite", "sockets.mptcp", "sockets.smc", "sockets.rxrpc", "sockets.vsock",
            "sockets.netlink", "sockets.families", "sockets.garbage", "network.join4",
            "network.join6", "network.tcp-ulp", "syscalls.keys", "syscalls.io-uring",
            "syscalls.user-namespace", "syscalls.pointer-flags", "syscalls.filter",
            "syscalls.request-key", "files.id-bits"}


def key_owners():
    """Uids of the pool that /proc/key-users counts keys for."""
    lines = pathlib.Path("/proc/key-users").read_text().splitlines()
    rows = [line.replace(":", " ").split() for line in lines]
    return [int(row[0]) for row in rows if int(row[0]) in POOL and not row[2].startswith("0/")]


def leaks(far):
    """What arrives at the far end, where verify itself sends nothing."""
    frames = []
    far.wait(frames, lambda: False, 1)
    return [f for f in frames
            if f.protocol in CARRIERS or TOKEN in f.data or GUESTS_GROUP in f.data]


@contextlib.contextmanager
def far_end():
    """A far end to which groups are routed."""
    with cable() as far:
        sh(f"ip route add {GROUPS} dev {NEAR}")
        far.arrived()
        yield far


@contextlib.contextmanager
def held():
    """verify is stopped before its guests may begin: the process, and the row of the main one."""
    p = as_agent(["harpe-gov", "verify", "--json", "--net", "drop", "--target", FAR4])
    try:
        wait_until(lambda: glob.glob(str(DROP_SLICE / "harpe-*.scope/guest")), 60, "a guest")
        os.kill(p.pid, signal.SIGSTOP)
        row = None

        def main_guest():
            nonlocal row
            row = next((r for r in ps() if r["name"].startswith("verify-") and
                        r["name"].endswith("-0") and r["state"] == "running"), None)
            return row

        wait_until(main_guest, 60, "the main guest runs")
        yield p, row
    finally:
        p.kill()


@contextlib.contextmanager
def suspended(pid, wanted):
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, SUSPEND, str(pid)], stdout=subprocess.PIPE) as p:
        try:
            expect_equal(p.stdout.readline(), b"ready\n")
            yield
        finally:
            p.kill()


def try_with(standing):
    """The report with no other layers than these, and what arrived at the far end."""
    with far_end() as far, held() as (p, row):
        with layers.of(row) as stack, suspended(row["main_pid"], BY_FILTER not in standing):
            stack.stand(standing | {BY_FILTER})
            os.kill(p.pid, signal.SIGCONT)
            wait_until(lambda: not os.path.exists(f"/proc/{row['main_pid']}"), 120, "it is done")
            arrived = leaks(far)
        r = Result(p, timeout=300)
        expect(r.stdout, r)
    sh("systemctl restart harpe-gov.service")
    wait_ready()
    return json.loads(r.stdout), arrived


def test_far_end():
    """While all layers stand nothing arrives at the far end of a cable, to which all was sent."""
    load_modules()
    with far_end() as far:
        report = ask("--net", "drop", "--target", FAR4)
        arrived = leaks(far)
    assert_healthy(report, (ABSTRACT,))
    expect("network.target-udp" in of(report, "PASS"), report)
    expect_equal((report["target"], arrived), (FAR4, []))


def test_without_the_filter():
    """Layer 4 away: every socket and every call that it denies is noticed."""
    load_modules()
    report, arrived = try_with({BY_TABLE, BY_CGROUP, BY_ADDRESS})
    wait_until(lambda: not key_owners(), 30, "no keys of the pool's are left")
    expect("ipc.keyring" in of(report, "FAIL"), report)
    expect(FILTERED <= set(of(report, "FAIL")), FILTERED - set(of(report, "FAIL")))
    expect(not ARRIVALS & set(of(report, "FAIL")), of(report, "FAIL"))
    expect([f for f in arrived if GUESTS_GROUP in f.data], "no IGMP report left the host")


def test_without_the_others():
    """Layers 1, 2 and 3 away: what arrives at the listeners is noticed, and arrives outside."""
    report, arrived = try_with({BY_FILTER})
    expect(ARRIVALS <= set(of(report, "FAIL")), ARRIVALS - set(of(report, "FAIL")))
    expect({"network.target-udp", "network.tcp-listen"} <= set(of(report, "FAIL")), report)
    expect(not FILTERED & set(of(report, "FAIL")), of(report, "FAIL"))
    expect([f for f in arrived if TOKEN in f.data], "nothing left the host")


def test_one_of_the_others():
    """Each of layers 1, 2 and 3 stops it alone; that it was not the table is noticed."""
    for layer in (BY_TABLE, BY_CGROUP, BY_ADDRESS):
        report, arrived = try_with({layer, BY_FILTER})
        expect(not ARRIVALS & set(of(report, "FAIL")), layer, of(report, "FAIL"))
        expect_equal(arrived, [], layer)
        expect_equal("network.drops" in of(report, "PASS"), layer != BY_ADDRESS, layer)
