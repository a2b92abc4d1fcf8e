# SPDX-License-Identifier: GPL-2.0-or-later
"""More guests than lie side by side: the others are in child slices of their profile's slice, and are
guests as all others there."""
import collections
import contextlib
import os
import pathlib
import signal
import subprocess

from leaks import layers
from leaks.attempts import KINDS, available, go
from leaks.attempts import guest as probing
from leaks.far import cable
from lib import (DROP_IN, Result, agent_directory, configured, daemon_pid, expect, expect_equal,
                 guest_slice, part, pool_processes, root_ps, scopes, sh, slots, start_run, wait_ready,
                 wait_running, wait_slots, wait_until)
from test_audit import assert_healthy, audit

FULL = 32  # governor/daemon/part.h
CROWD = "[access]\nmax-guests = 200\nmax-connections = 250\n"


def start(directory, net, *options, name=None):
    return start_run("--net", net, "--memory", "32M", *(["--name", name] if name else []), *options,
                     "--", "sleep", "600", cwd=directory)


def running():
    return [row for row in root_ps() if row["state"] == "running"]


@contextlib.contextmanager
def crowd(n, net):
    """N sleepers, eight at a time, and a directory for more. All guests are ended at the end."""
    with configured(CROWD), agent_directory() as directory:
        sleepers = []
        try:
            while len(sleepers) < n:
                sleepers += [start(directory, net) for _ in range(min(8, n - len(sleepers)))]
                wait_until(lambda: len(running()) == len(sleepers), 60, f"{len(sleepers)} run")
            yield directory, sleepers
        finally:
            subprocess.run(["harpe-gov", "kill", "--all"], check=False, capture_output=True)
            for p in sleepers:
                p.communicate(timeout=120)
            wait_until(lambda: not scopes(), 60, f"no scope is left {scopes()}")


def spread():
    """How many guests lie in each slice, says the kernel."""
    return dict(collections.Counter(guest_slice(row["main_pid"]) for row in running()))


def pins(slice_):
    return list(slice_.glob("harpe-pin-*.scope"))


def test_overflow():
    """Each slice is filled before the next, holes first; limits, ps, show, audit and kill know them."""
    with crowd(2 * FULL + 2, "drop") as (directory, sleepers):
        expect_equal(spread(), {part("drop", 0): FULL, part("drop", 1): FULL, part("drop", 2): 2})
        expect_equal([len(pins(part("drop", i))) for i in range(3)], [1, 1, 1])
        assert_healthy([i for i, c in audit().items() if i == "HG-DOOR-005"
                        and c["result"] == "UNKNOWN"])
        by_slice = {guest_slice(row["main_pid"]): row for row in running()}
        last = by_slice[part("drop", 2)]
        scope = layers.scope_of(last)
        expect_equal(scope.parent, part("drop", 2))
        expect_equal((scope / "memory.max").read_text(), f"{32 << 20}\n")
        expect("100000" in (scope / "guest/cpu.max").read_text() + (scope / "cpu.max").read_text())
        expect((scope / "guest/pids.max").read_text() != "max\n")
        shown = sh(f"harpe-gov show {last['id']}")
        expect(f"harpe-{last['id']}.scope" in shown and "32M" in shown, shown)
        sh(f"harpe-gov kill {by_slice[part('drop', 0)]['id']}")
        wait_until(lambda: len(list(part("drop", 0).glob("harpe-*.scope"))) == FULL, 30,
                   "the scope of the one that was killed is gone; the pin's is not")
        sleepers.append(start(directory, "drop", name="late"))
        expect_equal(guest_slice(wait_running("late")["main_pid"]), part("drop", 0))
        sleepers.append(start(directory, "isolated", name="other"))
        expect_equal(guest_slice(wait_running("other")["main_pid"]), part("isolated", 0))
    expect_equal(pool_processes(), [])


def test_limits_above():
    """What bounds a child slice bounds its guests, and the report says where that stands."""
    with crowd(FULL, "drop") as (directory, _):
        sh("systemctl set-property --runtime harpe-drop-1.slice MemoryMax=24M")
        try:
            p = start_run("--net", "drop", "--memory", "32M", "--report", f"{directory}/r.json", "--",
                          "true", cwd=directory)
            r = Result(p, f"{directory}/r.json")
        finally:
            sh("systemctl set-property --runtime harpe-drop-1.slice MemoryMax=infinity")
    expect_equal((r.status, r.report["limits"]["memory_bytes"]), (0, 24 << 20), r)
    expect("harpe-drop-1.slice" in r.report["limit_details"]["memory_bytes"]["origin"], r)


def test_layers():
    """Each layer alone stops a guest in a child slice, and without any its packets arrive; the
    report counts what the rule by slice dropped."""
    available()
    kinds = [kind for kind in KINDS if kind.name in ("udp4", "tcp4", "smc4")]
    with crowd(FULL, "drop"), cable() as far, probing() as (row, probe):
        expect_equal(layers.scope_of(row).parent, part("drop", 1))
        with layers.without_filter(row):
            round_ = go(far, probe, [k for k in kinds if k.name == "smc4"], lambda kind: False)
            expect(not list(round_.wrong()), *round_.wrong())
        with layers.of(row) as stack:
            for standing in (set(), *({layer} for layer in layers.ALL)):
                stack.stand(())
                round_ = go(far, probe, kinds, lambda kind: not kind.stopped_by & standing,
                            lambda: stack.stand(standing))
                expect(not list(round_.wrong()), f"standing: {standing}", *round_.wrong())
        r = probe.end()
        expect(r.report["drops"]["slice"] >= 1, r)
    sh("systemctl restart harpe-gov.service")
    wait_ready()


def test_warm_slots():
    """A slot in a child slice is taken over, and its guest's limits stand there."""
    with crowd(FULL, "isolated") as (directory, _):
        DROP_IN.write_text(CROWD + "[pool]\nwarm = 2\n")
        sh("systemctl reload harpe-gov.service")
        try:
            there = {pathlib.Path(row["cgroup"]) for row in wait_slots(2)}
            expect_equal({path.parent for path in there}, {part("isolated", 1)})
            p = start_run("--memory", "32M", "--name", "warm", "--", "sleep", "600", cwd=directory)
            row = wait_running("warm")
            expect(pathlib.Path(row["cgroup"]) in there, row, there)
            expect_equal(guest_slice(row["main_pid"]), part("isolated", 1))
            expect_equal(pathlib.Path(row["cgroup"], "guest/memory.max").read_text(), f"{32 << 20}\n")
            sh("harpe-gov kill warm")
            p.communicate(timeout=60)
        finally:
            DROP_IN.write_text(CROWD)
            sh("systemctl reload harpe-gov.service")
            wait_until(lambda: not slots(), 30, "no slots")


def test_allowed_by_a_child_slice():
    """An address that a drop-in allows the guests of a child slice is found, though the slice is not
    there yet."""
    path = pathlib.Path("/run/systemd/system/harpe-drop-3.slice.d/allow.conf")
    path.parent.mkdir(parents=True)
    path.write_text("[Slice]\nIPAddressAllow=192.0.2.2\n")
    try:
        sh("systemctl daemon-reload")
        p = subprocess.run(["harpe-gov", "audit"], capture_output=True, text=True, check=False)
        expect("HG-BPF-002" in p.stdout and "harpe-drop-3.slice: IPAddressAllow=" in p.stdout, p)
        p = subprocess.run(["systemctl", "restart", "harpe-gov.service"], check=False)
        expect(p.returncode != 0, "a daemon starts")
    finally:
        path.unlink()
        path.parent.rmdir()
        sh("systemctl daemon-reload; systemctl reset-failed 'harpe*'; "
           "systemctl restart harpe-gov.service")
        wait_ready()


def test_daemon_dies():
    """Nothing is left of a daemon that dies with guests in two slices, and the next one serves."""
    with crowd(FULL + 2, "drop") as (directory, sleepers):
        expect_equal(spread(), {part("drop", 0): FULL, part("drop", 1): 2})
        os.kill(daemon_pid(), signal.SIGKILL)
        wait_until(lambda: not scopes() and not pool_processes(), 60, f"all is gone {scopes()}")
        wait_ready()
        sleepers.append(start(directory, "drop", name="next"))
        expect_equal(guest_slice(wait_running("next")["main_pid"]), part("drop", 0))


def test_slice_stopped():
    """Stopping the profile's slice ends the guests in its child slices; more run there afterwards."""
    with crowd(FULL + 1, "isolated") as (directory, sleepers):
        sh("systemctl stop harpe-isolated.slice")
        for p in sleepers:
            p.communicate(timeout=60)
        wait_until(lambda: not scopes(), 30, f"no scope {scopes()}")
        sh("systemctl start harpe-isolated.slice; systemctl restart harpe-gov.service")
        wait_ready()
        more = [start(directory, "isolated") for _ in range(FULL + 1)]
        sleepers += more
        wait_until(lambda: len(running()) == FULL + 1, 120, "all run")
        expect_equal(spread(), {part("isolated", 0): FULL, part("isolated", 1): 1})
        expect_equal(len(pins(part("isolated", 1))), 1)
        there = next(row["id"] for row in running()
                     if guest_slice(row["main_pid"]) == part("isolated", 1))
        sh(f"harpe-gov kill {there}")
        wait_until(lambda: there not in {row["id"] for row in root_ps()}, 5, "its end is seen at once")
