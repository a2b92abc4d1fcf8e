# SPDX-License-Identifier: GPL-2.0-or-later
"""Scopes that serve several guests ([pool] recycle): nothing of one guest is the next one's, its
counters begin at 0, and a scope that anything is wrong with does not come back."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import lib
from leaks import layers
from lib import (AGENT, GUESTS, POOL, Result, agent_directory, all_scopes, configured, daemon_pid, expect,
                 expect_equal, pool_processes, ps, root_ps, run, sh, slots, start_run, supervisors,
                 wait_ready, wait_running, wait_slots, wait_until, warm)
from test_audit import assert_healthy
from test_leftovers import LEFT, done
from test_warm import (MIB, SPACES, UNTIL_TOLD, assert_ends_well, eight_at_once, held_by_daemon, holder_of,
                       ids, read, scope, spaces)

SLOTS_MAY_STAY = True
EAT = ("python3", "-c", "a = bytearray(b'x') * (100 << 20)")
LEDGER = pathlib.Path("/run/harpe-gov/runs")


def recycling(n=1):
    return warm(n, recycle=True)


def places(rows):
    return {row["cgroup"] for row in rows}


def run_in_slot(*args, n=1, **options):
    """A run that takes one of N slots over: the slot's row, and the result."""
    before = wait_slots(n)
    r = run(*args, **options)
    taken = [row for row in before if row["id"] == r.report["id"]]
    expect(taken, "no slot was taken", before, r)
    return taken[0], r


@contextlib.contextmanager
def guest_in_slot(*args, command=("sleep", "600")):
    """A guest in the only slot: root's row of it, its client, and where its report will be."""
    before = wait_slots(1)
    with agent_directory() as d:
        p = start_run("--name", "taken", "--report", d + "/r.json", *args, "--", *command, cwd=d)
        try:
            row = wait_running("taken")
            expect(row["id"] in ids(before), "no slot was taken", before, row)
            yield next(r for r in root_ps() if r["id"] == row["id"]), p, d + "/r.json"
        finally:
            subprocess.run(["harpe-gov", "kill", "--all"], check=False, capture_output=True)
            p.communicate()


def assert_back(row):
    """The scope waits for another guest, as another slot; nothing of the last one is in there."""
    (now,) = wait_slots(1)
    expect_equal(now["cgroup"], row["cgroup"])
    expect(now["id"] != row["id"] and now["uid"] != row["uid"], row, now)
    expect_equal(read(scope(now) / "guest/cgroup.procs"), "")
    expect_equal(read(scope(now) / "guest/pids.peak"), "0")
    expect_equal(len(read(scope(now) / "sup/cgroup.procs").split()), 1)
    expect_equal(pool_processes(), [])


def assert_not_back(row):
    """The scope is gone, and the runs after that work, the second in a slot."""
    wait_until(lambda: not scope(row).exists(), 5, f"the scope is gone {row}")
    if not slots():
        assert_ends_well(run("--", "true"))
    now, r = run_in_slot("--", "true")
    assert_ends_well(r)
    assert_back(now)
    wait_until(lambda: len(all_scopes()) == 1, 5, f"one scope {all_scopes()}")


def started_scopes():
    """How many of guests systemd has started since it was, says its journal."""
    sh("journalctl --sync")
    lines = sh("journalctl -b -q _PID=1 JOB_TYPE=start -o json --output-fields=UNIT").splitlines()
    return len({line for line in lines if re.search(r'"harpe-[0-9a-f]+\.scope"', line)})


# ---- one after the other ----


def test_ten_runs():
    """Ten runs in two scopes: each has an id and a uid of its own, and systemd starts nothing."""
    with recycling(2):
        rows, seen = wait_slots(2), []
        before = held_by_daemon()
        started = started_scopes()
        expect(started >= 2, "the control", started)
        for _ in range(10):
            row, r = run_in_slot("--", "id", "-u", n=2)
            assert_ends_well(r)
            expect_equal((int(r.stdout), r.report["uid"]), (row["uid"], row["uid"]), r)
            expect(row["cgroup"] in places(rows), row, rows)
            seen.append((row["id"], row["uid"]))
        for what in zip(*seen):
            expect_equal(len(set(what)), 10, what)
        expect_equal(places(wait_slots(2)), places(rows))
        expect_equal(started_scopes(), started)
        wait_until(lambda: held_by_daemon() == before, 5, f"{before} where {held_by_daemon()} is")


def test_namespaces_are_new():
    """The next guest's namespaces are made anew: what the last one did to its network is not there."""
    up = "import socket; s = socket.create_server(('127.0.0.1', 8000))\n" \
         "c = socket.create_connection(('127.0.0.1', 8000)); c.sendall(b'x'); input()"
    with recycling():
        with guest_in_slot(command=("python3", "-c", up)) as (row, _, _):
            mine = f"/proc/{row['main_pid']}/ns/"
            held = [os.open(mine + kind, os.O_RDONLY) for kind in SPACES]  # their numbers are not used again
            sh(["nsenter", f"--net={mine}net", "ip", "link", "add", "left", "type", "dummy"])
        try:
            assert_back(row)
            with guest_in_slot() as (now, _, _):
                expect(not spaces(now["main_pid"]) & {os.fstat(fd).st_ino for fd in held}, row, now)
                there = sh(["nsenter", f"--net=/proc/{now['main_pid']}/ns/net", "ip", "-o", "link"])
                expect("left" not in there and "lo:" in there, there)
        finally:
            for fd in held:
                os.close(fd)


# ---- counters ----


def test_counters():
    """What the report counts begins at 0 with each guest: memory, processor, processes."""
    with recycling():
        row, r = run_in_slot("--memory=48M", "--", *EAT)
        expect_equal((r.status, r.report["ended"]), (124, "memory"), r)
        expect(r.report["memory"]["limit_hits"] > 0 and r.report["memory"]["oom_kills"] > 0, r)
        assert_back(row)
        row, r = run_in_slot("--cpu=10%", "--pids=5", "--", "sh", "-c",
                             "for i in 1 2 3 4 5 6 7; do sleep 9 & done")  # it cannot, and ends
        expect(r.report["cpu"]["throttled_usec"] > 0 and r.report["pids"]["refused_forks"] > 0, r)
        assert_back(row)
        row, r = run_in_slot("--", "true")
        assert_ends_well(r)
        expect_equal(scope(row).name, r.report["scope"], "the name in the report")
        memory, cpu, pids = (r.report[key] for key in ("memory", "cpu", "pids"))
        expect_equal((memory["limit_hits"], memory["oom_kills"]), (0, 0), r)
        expect(memory["peak_bytes"] < 20 * MIB, r)
        expect_equal((cpu["throttled_usec"], pids["refused_forks"], pids["peak"]), (0, 0, 1), r)


SEND = "for i in 1 2 3; do echo x > /dev/udp/127.0.0.1/9; done"
STRAY = f"echo $$ > {{}}/guest/cgroup.procs; {SEND}"


def test_drops():
    """So do the firewall's: of the uid, and of the scope, whose own goes on."""
    with configured("[defaults]\nnet = drop\n"), recycling():
        row, r = run_in_slot("--", "bash", "-c", SEND)
        expect_equal((r.report["drops"]["uid"], r.report["drops"]["slice"]), (3, 0), r)
        assert_back(row)
        with guest_in_slot() as (row, p, report):
            subprocess.run(["bash", "-c", STRAY.format(row["cgroup"])], check=False,
                           capture_output=True)
            sh("harpe-gov kill taken")
            r = Result(p, report)
        expect_equal((r.report["drops"]["uid"], r.report["drops"]["slice"]), (0, 3), r)
        assert_back(row)
        # Between two: nobody's.
        subprocess.run(["bash", "-c", STRAY.format(row["cgroup"])], check=False, capture_output=True)
        now, r = run_in_slot("--", "true")
        assert_ends_well(r)
        expect_equal((now["cgroup"], r.report["drops"]["uid"], r.report["drops"]["slice"]),
                     (row["cgroup"], 0, 0), r)


# ---- what a guest leaves ----

LEAVE = """
import os, signal, sys, time
def spawn(do):
    if os.fork() == 0:
        do()
        os._exit(0)
def sleep():
    time.sleep(600)
def daemon():
    os.setsid()
    spawn(sleep)
for i in range(10):
    spawn(lambda: None)  # zombies
for i in range(3):
    spawn(sleep)
    spawn(daemon)
def stop():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)
spawn(stop)
time.sleep(0.2)
"""

GIVE = """
import os, socket, sys
fd = os.memfd_create("kept")
os.write(fd, b"x" * (int(sys.argv[1]) << 20))
s = socket.socket(socket.AF_UNIX)
s.connect("door")
socket.send_fds(s, [b"x"], [fd])
"""


@contextlib.contextmanager
def leftovers():
    """A directory with a door in it, at which somebody takes what guests hand over."""
    with agent_directory(0o777) as d, socket.socket(socket.AF_UNIX) as door:
        shutil.copy(GUESTS / "leftovers.py", d)
        door.bind(d + "/door")
        os.chmod(d + "/door", 0o777)
        door.listen()
        yield d, door


def taken_at(door):
    with door.accept()[0] as s:
        return socket.recv_fds(s, 1, 1)[1][0]


def test_leftovers():
    """A guest that leaves one of everything, and processes of every kind: the next one in its scope
    finds nothing."""
    with leftovers() as (d, _), recycling():
        row, r = run_in_slot("--", "python3", "leftovers.py", "leave", "find", cwd=d)
        left, found = map(json.loads, r.stdout.decode().splitlines())
        expect_equal((done(left), done(found)), (LEFT, LEFT | {"socket"}), "the control", r)
        assert_back(row)
        row, r = run_in_slot("--", "python3", "-c", LEAVE)
        expect(r.report["pids"]["left_at_end"] >= 7, r)
        assert_back(row)
        row, r = run_in_slot("--", "python3", "leftovers.py", "find", cwd=d)
        expect_equal(done(json.loads(r.stdout)), set(), r)
        assert_back(row)


def test_memory_is_kept():
    """Memory that a guest gave to somebody else stays charged: little is borne, much is not, and not
    by little and little either. So does what it read of a file."""
    with leftovers() as (d, door), recycling():
        row, r = run_in_slot("--", "python3", "-c", GIVE, 12, cwd=d)
        kept = [taken_at(door)]
        assert_ends_well(r)
        assert_back(row)
        expect(int(read(scope(row) / "memory.current")) > 12 * MIB, "the control")
        with guest_in_slot() as (now, _, _):
            expect(int(read(scope(now) / "guest/memory.current")) < 12 * MIB, "its own")
        now, r = run_in_slot("--", "python3", "-c", GIVE, 24, cwd=d)
        kept.append(taken_at(door))
        assert_ends_well(r)
        expect_equal(now["cgroup"], row["cgroup"])
        assert_not_back(row)
        for fd in kept:
            os.close(fd)
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as f:  # /tmp may keep no pages of holes
            os.chmod(f.name, 0o644)
            f.truncate(100 * MIB)
            row, r = run_in_slot("--ro", f.name, "--", "cat", f.name, stdout=subprocess.DEVNULL)
        expect_equal((r.status, r.report["memory"]["limit_hits"]), (0, 0), r)
        assert_not_back(row)


def test_many_files():
    """What a guest leaves in its file systems is gone before the scope is looked at: empty files cost
    the kernel memory, too."""
    with recycling():
        row, r = run_in_slot("--", "python3", "-c",
                             "for n in range(45000): open(f'/tmp/{n}', 'w').close()")
        assert_ends_well(r)
        expect(r.report["memory"]["peak_bytes"] > 33 * MIB, "the control", r)
        assert_back(row)


def test_limit_with_charge():
    """A guest that may have all of a scope to which something else is charged still: the limit that it
    hits is reported as its own."""
    with configured("[defaults]\nmemory = 96M\n"), leftovers() as (d, door), recycling():
        row, r = run_in_slot("--", "python3", "-c", GIVE, 3, cwd=d)
        kept = taken_at(door)
        assert_ends_well(r)
        assert_back(row)
        now, r = run_in_slot("--", *EAT)
        expect_equal((now["cgroup"], r.status, r.report["ended"]), (row["cgroup"], 124, "memory"), r)
        expect(r.report["memory"]["limit_hits"] >= 1 and r.report["memory"]["oom_kills"] >= 1, r)
        assert_back(row)
        row, r = run_in_slot("--", "true")
        expect_equal(r.report["memory"]["limit_hits"], 0, r)
        os.close(kept)


# ---- how it ends ----


def test_ends():
    """However the guest ends by itself or by its limits, the scope comes back."""
    with recycling():
        first = wait_slots(1)
        for args, ended in ((("--", "false"), "exited"), (("--", "sh", "-c", "kill -9 $$"), "signaled"),
                            (("--memory=48M", "--", *EAT), "memory"),
                            (("--cpu-time=100ms", "--", "sh", "-c", "while :; do :; done"), "cpu-time"),
                            (("--time=500ms", "--", "sleep", "60"), "wall-clock"),
                            (("--", "sh", "-c", "head -c 60M /dev/zero > /tmp/x"), "exited"),
                            (("--", "no-such-command"), "setup-failed")):
            row, r = run_in_slot(*args)
            expect_equal((r.report["ended"], row["cgroup"]), (ended, first[0]["cgroup"]), r)
            assert_back(row)
        assert_ends_well(run_in_slot("--", "true")[1])


def test_ended_by_others():
    """Killed by harpe-gov kill, its client killed: the scope comes back. Its scope stopped, its
    supervisor or the holder killed: it does not."""
    with recycling():
        for end in (lambda row, p: sh(["harpe-gov", "kill", row["id"]]), lambda row, p: p.kill()):
            with guest_in_slot() as (row, p, report):
                end(row, p)
                p.wait(10)
                assert_back(row)
        for end, how in ((lambda row: sh(["systemctl", "stop", scope(row).name]), "killed"),
                         (lambda row: os.kill(supervisors()[0], signal.SIGKILL), "governor-lost"),
                         (lambda row: os.kill(holder_of(row), signal.SIGKILL), "killed")):
            lib.warm_slots, before = 0, lib.warm_slots  # there is none besides
            with guest_in_slot() as (row, p, report):
                end(row)
                r = Result(p, report)
                expect_equal(r.report["ended"], how, r)
            lib.warm_slots = before
            assert_not_back(row)
        expect_equal(lib.failed_units(), "")


def test_setup_fails():
    """One that could not be set up is the last one of its scope; the next run works at once."""
    with recycling(), agent_directory() as d:
        assert_ends_well(run_in_slot("--", "true")[1])
        os.mkdir(d + "/closed", 0o700)
        os.chown(d + "/closed", AGENT.pw_uid, AGENT.pw_gid)
        row, r = run_in_slot("--", "true", cwd=d + "/closed")
        expect_equal((r.status, r.report["ended"]), (125, "setup-failed"), r)
        assert_ends_well(run("--", "true"))
        assert_not_back(row)


def test_reload():
    """A reload while a guest runs: its scope does not come back, others do."""
    with recycling():
        assert_ends_well(run_in_slot("--", "true")[1])
        with guest_in_slot() as (row, _, _):
            sh("systemctl reload harpe-gov.service")
            wait_until(lambda: len(slots()) == 1, 10, "the new slot")
            expect(row["id"] in ids(ps()), "the guest is gone")
        assert_not_back(row)
        with guest_in_slot() as (row, _, _):
            lib.warm_slots, before = 0, lib.warm_slots
            with configured("[pool]\nwarm = 0\nrecycle = no\n"):
                sh("harpe-gov kill --all")
                wait_until(lambda: not all_scopes(), 5, f"no scope {all_scopes()}")
                assert_ends_well(run("--", "true"))
            lib.warm_slots = before
        wait_slots(1)


def test_daemon_killed():
    """SIGKILL to the daemon with the second guest in a scope: nothing is left, and the journal has
    that guest's end, under its id."""
    with recycling():
        assert_ends_well(run_in_slot("--", "true")[1])
        with guest_in_slot(command=("sh", "-c", "setsid sleep 600 & sleep 600")) as (row, p, report):
            expect(f"harpe-{row['id']}.scope" != scope(row).name, row)
            expect_equal(os.listdir(LEDGER), [row["id"]])
            old = daemon_pid()
            os.kill(old, signal.SIGKILL)
            r = Result(p, report)
            expect_equal((r.status, r.report["ended"]), (125, "governor-lost"), r)
        wait_until(lambda: not scope(row).exists(), 3, "the scope is gone")
        expect_equal(pool_processes(), [])
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        wait_ready()
        wait_slots(1)
        expect_equal(os.listdir(LEDGER), [])
        sh("journalctl --sync")
        found = sh(["journalctl", "-b", "-q", "-u", "harpe-gov.service", "-o", "cat"])
        expect_equal(len([line for line in found.splitlines() if row["id"] in line]), 1, found[-2000:])
        said = json.loads(sh(["journalctl", "-b", "-q", "-o", "json", "HARPE_RUN=" + row["id"]]))
        expect_equal(said["HARPE_SCOPE"], scope(row).name, said)
        assert_not_back(row)


def test_both_killed():
    """SIGKILL to the daemon and to the supervisor at once: the sweep finds the second guest's end."""
    with recycling():
        assert_ends_well(run_in_slot("--", "true")[1])
        with guest_in_slot(command=("sh", "-c", "sleep 600 & sleep 600")) as (row, p, report):
            lib.warm_slots, before = 0, lib.warm_slots
            (pid,) = supervisors()
            lib.warm_slots = before
            old = daemon_pid()
            os.kill(old, signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            os.kill(old, signal.SIGKILL)
            p.wait(20)
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        wait_ready()
        wait_slots(1)
        expect(not scope(row).exists() and not pool_processes(), row)
        expect_equal(os.listdir(LEDGER), [])
        sh("journalctl --sync")
        found = sh(["journalctl", "-b", "-q", "-u", "harpe-gov.service", "-o", "cat"])
        expect_equal(len([line for line in found.splitlines() if row["id"] in line]), 1, found[-2000:])


# ---- what somebody changes ----


def assert_refused(row, *words):
    """The next run takes the slot over, sees it, and the one after that works."""
    now, r = run_in_slot("--", "true")
    expect_equal(now["cgroup"], row["cgroup"])
    expect_equal((r.status, r.report["ended"], r.report["guest_ran"]), (125, "setup-failed", False), r)
    text = r.stderr.decode()
    expect(all(word in text for word in words) and text.count("\n") == 1, words, r)
    assert_not_back(row)


def test_changed_between():
    """A limit raised, a process put in guest/, between two guests: the next run is refused."""
    with recycling():
        row, r = run_in_slot("--", "true")
        assert_ends_well(r)
        assert_back(row)
        (scope(row) / "memory.max").write_text(str(600 * MIB))
        assert_refused(row, "memory.max: is ")
        row, r = run_in_slot("--", "true")
        assert_back(row)
        p = subprocess.Popen(["sleep", "600"])
        (scope(row) / "guest/cgroup.procs").write_text(str(p.pid))
        assert_refused(row, "not alone")
        expect_equal(p.wait(5), -signal.SIGKILL)


def test_changed_meanwhile():
    """The same while a guest runs: the next one has what it asked for, or is refused."""
    with recycling():
        with guest_in_slot() as (row, _, _):
            (scope(row) / "cpu.max").write_text("max")
            (scope(row) / "guest/memory.max").write_text("max")
            (scope(row) / "guest/pids.max").write_text("max")
            p = subprocess.Popen(["sleep", "600"])
            (scope(row) / "guest/cgroup.procs").write_text(str(p.pid))
        expect_equal(p.wait(5), -signal.SIGKILL)
        assert_back(row)
        with guest_in_slot("--cpu=50%") as (now, _, _):
            expect_equal(now["cgroup"], row["cgroup"])
            for file, text in (("cpu.max", "100000 100000"), ("guest/cpu.max", "50000 100000"),
                               ("guest/memory.max", str(512 * MIB)), ("guest/pids.max", "128")):
                expect_equal(read(scope(now) / file), text, file)
        with guest_in_slot() as (row, _, _):
            (scope(row) / "memory.max").write_text("max")
        assert_back(row)
        assert_refused(row, "memory.max: is max where")


def test_filter_detached():
    """Systemd's program is detached while a guest runs: the next run is refused."""
    with recycling():
        assert_ends_well(run_in_slot("--", "true")[1])
        with guest_in_slot() as (row, _, _):
            programs = layers.Programs(scope(row))
            programs.stand(False)
        try:
            assert_refused(row, "IPAddressDeny")
        finally:
            for _, fd, _ in programs.attached:
                os.close(fd)
            os.close(programs.guest)
            os.close(programs.scope)


def test_cgroup_is_kept():
    """Somebody makes a cgroup in guest/ that stays: it is not removed, and the scope not used."""
    with recycling():
        with guest_in_slot() as (row, _, _):
            (scope(row) / "guest/theirs").mkdir()
        assert_not_back(row)


# ---- few uids ----


def test_small_pool():
    """With 3 uids and 2 slots: three guests at once, again and again; who waits for a uid gets one,
    and the last is not held back by a slot."""
    with configured("[pool]\ncount = 3\nwarm = 2\nrecycle = yes\n", "restart"):
        wait_until(slots, 20, "a slot")
        with agent_directory() as d:
            processes = [start_run("--wait=60s", "--report", f"{d}/{i}", "--", "id", "-u", cwd=d)
                         for i in range(6)]
            for i, p in enumerate(processes):
                assert_ends_well(Result(p, f"{d}/{i}"))
            wait_until(lambda: not ps(), 10, "no guest")
            for _ in range(2):
                processes = [start_run("--name", f"g{i}", "--", *UNTIL_TOLD, cwd=d, stdin=subprocess.PIPE)
                             for i in range(3)]
                wait_until(lambda: sum(r["state"] == "running" for r in ps()) == 3, 30,
                           f"3 guests {root_ps()} {[p.poll() for p in processes]}")
                results = [Result(p) for p in processes]
                expect_equal(sorted(int(r.stdout) for r in results), list(POOL[:3]), *results)
                wait_until(lambda: not ps(), 10, "no guest")
        wait_until(lambda: len(all_scopes()) <= 2, 10, "no more scopes than slots")
    wait_until(lambda: not all_scopes(), 10, "nothing left")


# ---- many ----


def test_forty_at_eight():
    """40 runs, 8 at once, with 4 slots: each has a uid of its own, and nothing piles up."""
    with recycling(4):
        run("--", "true")
        wait_slots(4)
        before, started = held_by_daemon(), started_scopes()
        seen = []
        for _ in range(5):
            seen += [r.report["id"] for r in eight_at_once()]
            wait_slots(4)  # else more of the next eight are started
        expect_equal(len(set(seen)), 40)
        wait_until(lambda: len(all_scopes()) == 4, 5, f"four scopes {all_scopes()}")
        wait_until(lambda: held_by_daemon() == before, 5, f"{before} where {held_by_daemon()} is")
        expect(started_scopes() - started <= 24, started, started_scopes())  # 4 of each 8 were there


# ---- what operators see ----


def test_tools():
    """With a guest in a scope that has another's name: the audit finds nothing, show, ps and kill
    know it by its own id alone, and verify passes."""
    with recycling():
        row, r = run_in_slot("--", "true")
        assert_healthy()
        with guest_in_slot("--memory=64M", "--cpu=10%") as (now, p, report):
            expect(now["cgroup"] == row["cgroup"] and now["id"] != row["id"], row, now)
            assert_healthy()
            for words in ("show", row["id"]), ("kill", row["id"]):
                old = subprocess.run(["harpe-gov", *words], capture_output=True, check=False)
                expect_equal(old.returncode, 1, old)
            shown = sh(["harpe-gov", "show", now["id"]])
            expect(now["id"] in shown and str(now["uid"]) in shown, shown)
            expect(pathlib.Path(f"/proc/{now['main_pid']}").exists(), now)
            sh(["harpe-gov", "kill", now["id"]])
            r = Result(p, report)
            expect_equal((r.report["id"], r.report["ended"]), (now["id"], "killed"), r)
        assert_back(now)
        r = subprocess.run(["harpe-gov", "verify"], cwd="/", capture_output=True, text=True,
                           timeout=300, check=False)
        expect_equal(r.returncode, 0, r.stdout, r.stderr)
