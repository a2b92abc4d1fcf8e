# SPDX-License-Identifier: GPL-2.0-or-later
"""A systemd, or a bus, that is busy, executed anew, restarted or silent: every run ends with the
true answer or one sentence, in bounded time, and nothing is left."""
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from lib import (SLICE, Result, agent_directory, assert_nothing_left, daemon_pid, expect,
                 expect_equal, pool_processes, run, scopes, sh, start_run, wait_ready,
                 wait_running, wait_until)
from test_fairness import configured

LIMITS = ("memory.max", "memory.swap.max", "cpu.max", "guest/pids.max", "guest/memory.oom.group")


@contextlib.contextmanager
def again_and_again(command, pause):
    """Runs the command over and over beside what is inside."""
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            subprocess.run(command, check=False, capture_output=True)
            stop.wait(pause)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def batch(n, workers):
    """n short runs, some at a time; each says which cgroup it is in before anything else."""
    results = []

    def work(count):
        for _ in range(count):
            results.append(run("--", "sh", "-c", "cat /proc/self/cgroup; exit 7"))

    threads = [threading.Thread(target=work, args=(n // workers,)) for _ in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def judge(results):
    for r in results:
        expect_equal((r.status, r.report["ended"]), (7, "exited"), r)
        own = f"0::/harpe.slice/{SLICE.name}/{r.report['scope']}/guest\n"
        expect_equal(r.stdout.decode(), own, r)


def limits_of(row):
    scope = SLICE / f"harpe-{row['id']}.scope"
    return {name: (scope / name).read_text() for name in LIMITS}


def busy_systemd(command, pause, runs):
    with agent_directory() as d:
        p = start_run("--name", "long", "--memory", "100M", "--cpu", "50%", "--pids", "20",
                      "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        row = wait_running("long")
        before = limits_of(row)
        with again_and_again(command, pause):
            results = batch(runs, 3)
        expect_equal(limits_of(row), before, "the limits of a guest that ran all the time")
        sh("harpe-gov kill long")
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (-9, "killed"), r)
    expect_equal(len(results), runs)
    judge(results)


def test_reload():
    """`systemctl daemon-reload` every 50 ms: all runs end as they should."""
    busy_systemd(["systemctl", "daemon-reload"], 0.05, 12)


def test_reexec():
    """`systemctl daemon-reexec` every 2 s: a lost answer is no refusal."""
    busy_systemd(["systemctl", "daemon-reexec"], 2, 15)


def test_bus_restarted():
    """The bus is restarted: running guests do not care, and the next run works."""
    with agent_directory() as d:
        p = start_run("--name", "long", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_running("long")
        with again_and_again(["systemctl", "restart", "dbus.service"], 2.5):  # at most 5 in 10 s
            judge(batch(10, 2))
        sh("harpe-gov kill long")
        expect_equal(Result(p, d + "/r.json").report["ended"], "killed")


def test_units_stopped():
    """Whichever unit is stopped or restarted: guests end and say why, or run on."""
    for command, ended in (("stop harpe-gov.service", "governor-stopped"),
                           ("stop harpe-gov.socket", "governor-stopped"),
                           ("restart harpe-gov.socket", "governor-stopped"),
                           ("restart harpe-gov-firewall.service", "killed"),
                           ("stop harpe-gov-firewall.service", "killed")):
        with agent_directory() as d:
            p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
            wait_running("victim")
            sh("systemctl " + command)
            if ended == "killed":
                expect_equal(run("--", "true").status, 0, command)
                sh("harpe-gov kill victim")
            r = Result(p, d + "/r.json")
        expect_equal(r.report["ended"], ended, command, r)
        sh("systemctl start harpe-gov-firewall.service harpe-gov.socket harpe-gov.service")
        wait_ready()


def test_started_often():
    """No unit is refused for how often it was started: without the firewall's, or the one that loads
    it again, there would be no table; without the socket no daemon."""
    units = "harpe-gov-firewall.service harpe-gov.socket harpe-gov.service"
    for _ in range(7):
        sh(f"systemctl stop {units}")
        sh(f"systemctl start {units}")
    wait_ready()
    # A slow machine does not get to systemd's limit above, 5 in 10 s.
    for unit in (*units.split(), "harpe-gov-firewall-again.service"):
        expect_equal(sh(f"systemctl show -p StartLimitIntervalUSec --value {unit}").strip(), "0", unit)


def test_bus_stopped():
    """The bus is stopped: the daemon goes with it and says so, the next run brings both back."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        sh("systemctl stop dbus.socket dbus.service")
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (125, "governor-stopped"), r)
    expect_equal(run("--", "true").status, 0)


def test_silent_bus():
    """The bus does not answer: one sentence, in bounded time. When it answers again, nothing of what
    was asked comes to life, and the uid is back."""
    with configured("[pool]\ncount = 1\n", "restart"):
        bus = int(sh("systemctl show -P MainPID dbus.service"))
        os.kill(bus, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            r = run("--", "true")
            took = time.monotonic() - begin
            expect_equal((r.status, r.report["ended"]), (125, "setup-failed"), r)
            expect(b"systemd did not start" in r.stderr and r.stderr.count(b"\n") == 1, r)
            expect(took < 35, took)
            r = run("--", "true")
            expect(b"uid" in r.stderr, "the uid is not used before systemd has answered", r)
        finally:
            os.kill(bus, signal.SIGCONT)
        wait_until(lambda: run("--", "true").status == 0, 40, "the uid is back")
        assert_nothing_left()


def test_pin_comes_back():
    """The scope that keeps the slice's controllers on is stopped, or its process killed: the next
    run brings it back."""
    def pins():
        return glob.glob(str(SLICE / "harpe-pin-*.scope"))

    for how in ("systemctl stop {}", f"echo 1 >{SLICE}/{{}}/cgroup.kill"):
        (old,) = pins()
        sh(how.format(os.path.basename(old)))
        wait_until(lambda: not pins(), 10, f"{old} is gone")
        expect_equal(run("--", "true").status, 0)
        wait_until(pins, 10, f"another one than {old}")
        expect_equal(len(pins()), 1)
    expect("memory" in (SLICE / "cgroup.subtree_control").read_text())


def test_forgotten_scope():
    """A scope that systemd knows nothing of any more, as after a kill that took too long, is removed
    when the daemon starts and not counted as a guest's for ever."""
    scope = SLICE / "harpe-forgotten.scope"
    (scope / "guest").mkdir(parents=True)
    try:
        sh("systemctl restart harpe-gov.service")
        wait_ready()
        expect(not scope.exists(), scope)
    finally:
        for directory in (scope / "guest", scope):
            if directory.exists():
                directory.rmdir()


def test_daemon_stands_still():
    """SIGSTOP to the daemon while the caller goes: its guest is dead before the daemon goes on. Who
    waits for such a daemon can still be ended."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        daemon = daemon_pid()
        os.kill(daemon, signal.SIGSTOP)
        try:
            p.kill()
            p.communicate()
            wait_until(lambda: not pool_processes(), 5, "the supervisor ends the guest by itself")
            # no pipes: they are on their way to the daemon, and open as long as it does not look
            p = start_run("--", "true", cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            p.terminate()
            expect_equal(p.wait(timeout=10), -signal.SIGTERM)
        finally:
            os.kill(daemon, signal.SIGCONT)
        wait_until(lambda: not scopes(), 10, "no scope")
    expect_equal(run("--", "true").status, 0)


def test_frozen_slice():
    """A guest of a frozen slice ends at its limit; one that is started in there does not hang."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--time", "6s", "--report", d + "/r.json", "--", "sleep",
                      "600", cwd=d)
        wait_running("victim")
        sh(["systemctl", "freeze", SLICE.name])
        try:
            r = Result(p, d + "/r.json")
            expect_equal(r.report["ended"], "wall-clock", r)
            begin = time.monotonic()
            r = run("--", "true")
            expect_equal((r.status, r.report["guest_ran"]), (125, False), r)
            expect(time.monotonic() - begin < 50, time.monotonic() - begin)
        finally:
            sh(["systemctl", "thaw", SLICE.name])
    expect_equal(run("--", "true").status, 0)


def test_run_is_full():
    """/run has no byte left, where systemd writes its transient units: one sentence."""
    filler = pathlib.Path("/run/filler")
    now = os.statvfs("/run")  # much of it is the journal of earlier tests
    sh(["mount", "-o", f"remount,size={(now.f_blocks - now.f_bfree) * now.f_frsize + (4 << 20)}", "/run"])
    try:
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], check=False,
                       capture_output=True)
        r = run("--", "true")
        expect_equal((r.status, r.report["guest_ran"]), (125, False), r)
        expect(b"systemd refused" in r.stderr and r.stderr.count(b"\n") == 1, r)
    finally:
        filler.unlink()
        sh(["mount", "-o", "remount,size=1500M", "/run"])
    expect_equal(run("--", "true").status, 0)


def test_clock_set():
    """The clock is set, forwards and back: limits and the report count what has passed."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--time", "5s", "--report", d + "/r.json", "--", "sleep",
                      "600", cwd=d)
        wait_running("victim")
        sh("date -s '+2 days'")
        time.sleep(1)
        sh("date -s '-2 days'")
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)
    expect(5000000 <= r.report["wall_usec"] < 15000000, r)


def test_upgrade():
    """New programs in place of the old ones, daemon-reload, try-restart, as a package does it: the
    guests end and say why, and the new daemon serves."""
    programs = ("/usr/bin/harpe-gov", "/usr/sbin/harpe-govd",
                "/usr/libexec/harpe-gov/harpe-gov-supervisor")
    with agent_directory() as d:
        p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        old = daemon_pid()
        for path in programs:
            shutil.copy2(path, path + ".new")
            os.rename(path + ".new", path)
        sh("systemctl daemon-reload")
        sh("systemctl try-restart harpe-gov.service")
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (125, "governor-stopped"), r)
    wait_ready()
    expect(daemon_pid() != old)
    expect_equal(os.readlink(f"/proc/{daemon_pid()}/exe"), programs[1])
    expect_equal(run("--", "echo", "fine").stdout, b"fine\n")
