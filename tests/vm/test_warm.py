# SPDX-License-Identifier: GPL-2.0-or-later
"""Warm slots: places made before anybody asks. What a run that takes one over is held to, what
somebody may have changed there meanwhile, and that nothing of them is left."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import lib
from leaks import layers
from lib import (POOL, SLICE, Result, agent_directory, all_scopes, as_agent, configured, daemon_pid,
                 expect, expect_equal, pool_processes, ps, root_ps, run, sh, slots, start_run,
                 wait_ready, wait_running, wait_slots, wait_spare, wait_until, warm)
from test_audit import assert_healthy, audit, of
from test_cases_memory import slice_allows

SLOTS_MAY_STAY = True
MIB = 1 << 20
UNTIL_TOLD = ("sh", "-c", "id -u; cat")  # by the end of its standard input


def ids(rows):
    return {row["id"] for row in rows}


def scope(row):
    return pathlib.Path(row["cgroup"])


def read(path):
    return path.read_text().strip()


def assert_ends_well(r):
    expect_equal((r.status, r.report["ended"], r.report["guest_ran"]), (0, "exited", True), r)


def was_warm(before, r):
    return r.report["id"] in ids(before)


def run_in_slot(*args, n=1, **options):
    """A run that takes one of N slots over: its result."""
    before = wait_slots(n)
    r = run(*args, **options)
    expect(was_warm(before, r), "no slot was taken", before, r)
    return r


def run_cold(*args, n=1, **options):
    """A run that takes none of N slots, which stay."""
    before = wait_slots(n)
    r = run(*args, **options)
    expect(not was_warm(before, r), "a slot was taken", before, r)
    expect_equal(ids(slots()), ids(before))
    return r


@contextlib.contextmanager
def guest_in_slot(*args, n=1, command=("sleep", "600")):
    """A guest that runs in a former slot: its row, and where its report will be."""
    before = wait_slots(n)
    with agent_directory() as d:
        p = start_run("--name", "taken", "--report", d + "/r.json", *args, "--", *command, cwd=d)
        try:
            row = wait_running("taken")
            expect(row["id"] in ids(before), "no slot was taken", before, row)
            yield next(r for r in root_ps() if r["id"] == row["id"])
        finally:
            sh("harpe-gov kill --all")
            p.communicate()


def held_now():
    pid = daemon_pid()
    tasks = len(read(pathlib.Path("/sys/fs/cgroup/system.slice/harpe-gov.service/cgroup.procs")).split())
    return len(os.listdir(f"/proc/{pid}/fd")), tasks


def held_by_daemon():
    """Descriptors and processes, once they stay as they are: what belongs to a run that has just ended
    is let go a moment later."""
    wait_spare()
    before, now = None, held_now()
    while before != now:
        time.sleep(0.2)
        before, now = now, held_now()
    return now


# ---- a slot is taken ----


def test_taken():
    """A run takes a slot over; its uid and scope are gone afterwards, and another is made."""
    with warm(2):
        for _ in range(3):
            before = wait_slots(2)
            for row in before:
                expect(row["uid"] in POOL and scope(row).is_dir(), row)
                expect_equal(read(scope(row) / "guest/pids.peak"), "0")
            expect_equal(len({row["uid"] for row in before}), 2, before)
            r = run("--", "id", "-u")
            assert_ends_well(r)
            (taken,) = [row for row in before if row["id"] == r.report["id"]]
            expect_equal(int(r.stdout), taken["uid"], r)
            expect(not scope(taken).exists(), taken)
            after = wait_slots(2)
            expect(taken["id"] not in ids(after) and len(ids(after) & ids(before)) == 1, after)


def test_report_of_default():
    """The report of such a run says the same as that of a cold one."""
    cold = run("--", "true")
    with warm(1):
        r = run_in_slot("--", "true")
    for key in ("profile", "limits", "limit_details", "ended", "exit_code"):
        expect_equal(r.report[key], cold.report[key], key)
    expect_equal(r.report.keys(), cold.report.keys())


# ---- tighter limits ----


def test_tighter_memory():
    """Less memory than the slot's: guest/ has it, it bites, and the report says so."""
    with warm(1):
        with guest_in_slot("--memory=48M") as row:
            expect_equal(read(scope(row) / "guest/memory.max"), str(48 * MIB))
            expect_equal(read(scope(row) / "memory.max"), str(512 * MIB))
            expect_equal(row["limits"]["memory_bytes"], 48 * MIB, row)
        r = run_in_slot("--memory=48M", "--", "python3", "-c", "a = bytearray(b'x') * (100 << 20)")
        expect_equal((r.status, r.report["ended"]), (124, "memory"), r)
        memory = r.report["memory"]
        expect(memory["limit_hits"] >= 1 and memory["oom_kills"] >= 1, r)
        expect(40 * MIB < memory["peak_bytes"] <= 48 * MIB, r)
        expect_equal(r.report["limits"]["memory_bytes"], 48 * MIB, r)
        expect_equal(r.report["limit_details"]["memory_bytes"],
                     {"asked": 48 * MIB, "effective": 48 * MIB, "origin": "request"}, r)


BUSY = "import time; end = time.monotonic() + 4\nwhile time.monotonic() < end: pass"


def test_tighter_cpu():
    """Less CPU than the slot's."""
    with warm(1):
        with guest_in_slot("--cpu=20%") as row:
            expect_equal(read(scope(row) / "guest/cpu.max"), "20000 100000")
            expect_equal(read(scope(row) / "cpu.max"), "100000 100000")
        r = run_in_slot("--cpu=20%", "--", "python3", "-c", BUSY)
        assert_ends_well(r)
        expect_equal(r.report["limits"]["cpu_usec_per_sec"], 200000, r)
        expect(r.report["cpu"]["throttled_usec"] > 1000000, r)
        expect(r.report["cpu"]["usage_usec"] < 0.35 * r.report["wall_usec"], r)
        # Dies at once all the same.
        r = run_in_slot("--cpu=0.1%", "--time=2s", "--", "python3", "-c", "while True: pass")
        expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)


def test_tighter_pids():
    """Less processes than the default."""
    fork = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait"
    with warm(1):
        with guest_in_slot("--pids=5") as row:
            expect_equal(read(scope(row) / "guest/pids.max"), "5")
        r = run_in_slot("--pids=5", "--", "sh", "-c", fork)
        expect_equal(r.report["limits"]["pids"], 5, r)
        expect(r.report["pids"]["refused_forks"] >= 1 and r.report["pids"]["peak"] <= 5, r)
        with guest_in_slot("--pids=500") as row:  # more: pids.max is guest/'s in any case
            expect_equal(read(scope(row) / "guest/pids.max"), "500")


def test_tighter_swap():
    """Less swap than the default."""
    with configured("[defaults]\nswap = 64M\n[ceiling]\nswap = 64M\n"), warm(1), \
            slice_allows("harpe.slice", MemorySwapMax="infinity"):
        with guest_in_slot("--swap=0") as row:
            expect_equal(read(scope(row) / "guest/memory.swap.max"), "0")
            expect_equal(read(scope(row) / "memory.swap.max"), str(64 * MIB))
        r = run_in_slot("--swap=1M", "--", "true")
        assert_ends_well(r)
        expect_equal(r.report["limits"]["swap_bytes"], MIB, r)


def test_tighter_all():
    """All at once, under --time as well."""
    with warm(1):
        r = run_in_slot("--memory=64M", "--cpu=50%", "--pids=9", "--swap=0", "--time=5s",
                        "--cpu-time=4s", "--", "sh", "-c", "ulimit -v; id -u")
        assert_ends_well(r)
        limits = r.report["limits"]
        expect_equal((limits["memory_bytes"], limits["cpu_usec_per_sec"], limits["pids"],
                      limits["swap_bytes"]), (64 * MIB, 500000, 9, 0), r)


# ---- what no slot is for ----


def test_looser():
    """More than the slot has: cold, and the slot stays."""
    with warm(1):
        for option in ("--memory=513M", "--cpu=101%", "--time=11min"):
            r = run_cold(option, "--", "true")
            assert_ends_well(r)
        r = run_cold("--memory=600M", "--", "true")
        expect_equal(r.report["limits"]["memory_bytes"], 600 * MIB, r)
        assert_ends_well(run_in_slot("--time=10min", "--", "true"))


def test_other_kind():
    """Another profile, another share of the disks: cold."""
    with warm(1):
        for option in ("--net=drop", "--net=reject", "--io-weight=50", "--io-write=1M",
                       "--io-read=1M"):
            r = run_cold(option, "--", "true")
            assert_ends_well(r)
        assert_ends_well(run_in_slot("--net=isolated", "--io-weight=100", "--", "true"))


# ---- what somebody changed in a slot that waits ----


def assert_refused(before, *words):
    r = run("--", "true")
    expect(was_warm(before, r), "no slot was taken", before, r)
    expect_equal((r.status, r.report["ended"], r.report["guest_ran"]), (125, "setup-failed", False), r)
    text = r.stderr.decode()
    expect_equal(text.count("\n"), 1, r)
    for word in words:
        expect(word in text, word, r)
    return r


def next_run_works():
    """The next run but one takes a slot again, and nothing is left of what there was before."""
    if not slots():
        assert_ends_well(run("--", "true"))
    assert_ends_well(run_in_slot("--", "true"))
    wait_slots(1)
    wait_until(lambda: len(all_scopes()) == 1, 5, f"one scope {all_scopes()}")
    expect_equal(pool_processes(), [])


def changed(path, text, *words, args=()):
    """What a run says that meets a file of a slot's scope changed."""
    (row,) = wait_slots(1)
    (scope(row) / path).write_text(text)
    r = run(*args, "--", "true")
    expect_equal(r.report["id"], row["id"], r)
    expect_equal((r.status, r.report["ended"], r.report["guest_ran"]), (125, "setup-failed", False), r)
    text = r.stderr.decode()
    expect_equal(text.count("\n"), 1, r)
    for word in words:
        expect(word in text, word, r)
    expect(not scope(row).exists(), row)
    next_run_works()


def test_scope_raised():
    """A limit of the scope that was raised is found; the run is refused."""
    with warm(1):
        changed("memory.max", str(600 * MIB), f"memory.max: is {600 * MIB} where {512 * MIB} was set")
        changed("memory.max", "max", "memory.max: is max where")
        changed("memory.swap.max", "max", "memory.swap.max: is max where 0 was set")
        changed("cpu.max", "200000 100000", "cpu.max: is 2000000 where 1000000 was set")
        changed("cpu.max", "max", "cpu.max: is max where 1000000 was set")
        changed("io.weight", "default 200", "io.weight: is 200 where 100 was set")


def test_scope_raised_under_less():
    """The same under a run that asks for less, whose own limits stand on guest/."""
    less = ("--memory=64M", "--cpu=50%")
    with warm(1):
        changed("memory.max", "max", "memory.max: is max where", args=less)
        changed("cpu.max", "max", "cpu.max: is max where 1000000 was set", args=less)


def test_guest_changed():
    """A limit that somebody put on guest/ is replaced by the run's own."""
    with warm(1), agent_directory() as directory:
        (row,) = wait_slots(1)
        (scope(row) / "guest/memory.max").write_text(str(64 * MIB))
        (scope(row) / "guest/cpu.max").write_text("1000 100000")
        p = start_run("--name", "changed", "--", *UNTIL_TOLD, cwd=directory, stdin=subprocess.PIPE)
        expect_equal(wait_running("changed")["id"], row["id"])
        expect_equal(read(scope(row) / "guest/memory.max"), str(512 * MIB))
        expect_equal(read(scope(row) / "guest/cpu.max"), "100000 100000")
        expect_equal(Result(p).status, 0)


def test_guest_group_off():
    """memory.oom.group of guest/ switched off."""
    with warm(1):
        changed("guest/memory.oom.group", "0", "guest/memory.oom.group: is not 1")


def test_guest_removed():
    """guest/ is gone."""
    with warm(1):
        (row,) = wait_slots(1)
        (scope(row) / "guest").rmdir()
        assert_refused([row], "/guest: cannot be opened")
        next_run_works()


def test_guest_is_not_alone():
    """Another process in guest/: its limits would be shared, its counters wrong."""
    with warm(1):
        (row,) = wait_slots(1)
        p = subprocess.Popen(["sleep", "600"])
        (scope(row) / "guest/cgroup.procs").write_text(str(p.pid))
        assert_refused([row], "/guest", "not alone")
        expect_equal(p.wait(5), -signal.SIGKILL)  # it was in there when all of it was killed
        next_run_works()


def test_filter_detached():
    """Systemd's program is no longer attached to the scope."""
    with warm(1):
        (row,) = wait_slots(1)
        programs = layers.Programs(scope(row))
        programs.stand(False)
        try:
            assert_refused([row], "IPAddressDeny")
        finally:
            for _, fd, _ in programs.attached:
                os.close(fd)
            os.close(programs.guest)
            os.close(programs.scope)
        next_run_works()


def holder_of(row):
    (pid,) = read(scope(row) / "sup/cgroup.procs").split()
    return int(pid)


def assert_not_used(row):
    """It is given up by itself, or by the run that would have taken it, which ends well."""
    r = run("--", "true")
    assert_ends_well(r)
    expect(r.report["id"] != row["id"], row, r)
    wait_until(lambda: not scope(row).exists(), 5, f"the slot is gone {row}")
    wait_slots(1)
    next_run_works()


def test_slot_ended():
    """Its holder killed, its scope stopped, killed, frozen by systemctl: it is not used."""
    with warm(1):
        (row,) = wait_slots(1)
        os.kill(holder_of(row), signal.SIGKILL)
        assert_not_used(row)
        for verb in ("stop", "kill --signal=KILL"):
            (row,) = wait_slots(1)
            sh(f"systemctl {verb} harpe-{row['id']}.scope")
            assert_not_used(row)
        expect_equal(lib.failed_units(), "")


def test_slot_ends_meanwhile():
    """The scope is stopped while a run takes it over: the run does not start, or starts elsewhere."""
    with warm(1):
        for pause in (0, 0.02, 0.04, 0.06, 0.08):
            (row,) = wait_slots(1)
            with agent_directory() as d:
                p = start_run("--report", d + "/r.json", "--", "true", cwd=d)
                time.sleep(pause)
                sh(f"systemctl stop --no-block harpe-{row['id']}.scope || true")
                r = Result(p, d + "/r.json")
            if r.status != 0:
                expect(r.status in (125, -9), r)
                expect(r.report["ended"] in ("setup-failed", "killed"), r)
                expect_equal(r.stderr.count(b"\n"), 1, r)
            wait_until(lambda row=row: not scope(row).exists(), 5, f"the slot is gone {row}")
            next_run_works()


def test_slot_frozen():
    """A frozen scope: nobody waits long for it, and the slot is not used."""
    with warm(1):
        for freeze in (lambda row: sh(f"systemctl freeze harpe-{row['id']}.scope"),
                       lambda row: (scope(row) / "cgroup.freeze").write_text("1"),
                       lambda row: (scope(row) / "guest/cgroup.freeze").write_text("1")):
            (row,) = wait_slots(1)
            freeze(row)
            begin = time.monotonic()
            r = run("--", "true")
            expect(time.monotonic() - begin < 10, "it took long", r)
            expect(r.report["guest_ran"] == (r.status == 0), r)
            wait_until(lambda row=row: not scope(row).exists(), 15, f"the slot is gone {row}")
            next_run_works()


# ---- how many there are ----


def test_small_pool():
    """With 3 uids and 2 slots wanted: three guests at once, each with a uid of its own."""
    with configured("[pool]\ncount = 3\nwarm = 2\n", "restart"):
        wait_until(slots, 20, "a slot")
        for _ in range(2):
            with agent_directory() as d:
                processes = [start_run("--name", f"g{i}", "--wait=30s", "--", *UNTIL_TOLD, cwd=d,
                                       stdin=subprocess.PIPE) for i in range(3)]
                wait_until(lambda: sum(r["state"] == "running" for r in ps()) == 3, 30, "3 guests")
                results = [Result(p) for p in processes]
            uids = sorted(int(r.stdout) for r in results)
            expect_equal(uids, [POOL[0], POOL[1], POOL[2]], *results)
            expect(all(r.status == 0 for r in results), *results)
            wait_until(lambda: not ps(), 10, "no guest")
        wait_until(lambda: len(all_scopes()) <= 2, 10, "no more scopes than slots")
    wait_until(lambda: not all_scopes(), 10, "nothing left")


def test_last_uid():
    """The last uid is not held back by a slot: a run without --wait gets it."""
    with configured("[pool]\ncount = 2\nwarm = 1\n", "restart"):
        wait_slots(1)
        with agent_directory() as d:
            cold = start_run("--name", "cold", "--net=drop", "--", "sleep", "600", cwd=d)
            wait_running("cold")
            second = start_run("--name", "second", "--net=drop", "--", "sleep", "600", cwd=d)
            wait_running("second")
            expect_equal(slots(), [])
            third = run("--net=drop", "--", "true")
            expect_equal(third.status, 125, third)
            sh("harpe-gov kill --all")
            for p in (cold, second):
                p.communicate()
        assert_ends_well(run("--", "true"))


# ---- reload ----


def test_reload():
    """Other defaults: slots are made anew with them. With 0 all go."""
    with warm(2):
        run("--", "true")
        before = wait_slots(2)
        held = held_by_daemon()
        with configured("[defaults]\nmemory = 100M\ncpu = 40%\npids = 9\n"):
            wait_until(lambda: len(slots()) == 2 and not ids(slots()) & ids(before), 20, "new slots")
            for row in slots():
                expect_equal(read(scope(row) / "memory.max"), str(100 * MIB))
                expect_equal(read(scope(row) / "cpu.max"), "40000 100000")
            for row in before:
                expect(not scope(row).exists(), row)
            r = run_in_slot("--", "true", n=2)
            expect_equal((r.report["limits"]["memory_bytes"], r.report["limits"]["pids"]),
                         (100 * MIB, 9), r)
            run_cold("--memory=101M", "--", "true", n=2)
            r = run_in_slot("--", "python3", "-c", "a = bytearray(b'x') * (150 << 20)", n=2)
            expect_equal((r.status, r.report["ended"]), (124, "memory"), "the scope's own", r)
            expect(r.report["memory"]["limit_hits"] >= 1, r)
        with configured("[defaults]\nnet = drop\n"):
            wait_until(lambda: {row["profile"] for row in slots()} == {"drop"} and len(slots()) == 2, 20,
                       "slots of the other profile")
            assert_ends_well(run_in_slot("--", "true", n=2))
            run_cold("--net=isolated", "--", "true", n=2)
        with configured("[pool]\nwarm = 0\n"):
            wait_until(lambda: not all_scopes(), 10, "no slot")
            lib.warm_slots, before = 0, lib.warm_slots
            assert_ends_well(run("--", "true"))
            expect_equal(slots(), [])
            lib.warm_slots = before
        wait_slots(2)
        wait_until(lambda: held_by_daemon() == held, 5, f"{held} where {held_by_daemon()} is")


def test_reload_is_refused():
    """A reload that changes the pool, or wants too many: slots stay as they are."""
    with warm(1):
        before = wait_slots(1)
        for text, command_fails in (("[pool]\nfirst-uid = 91000\n", False), ("[pool]\ncount = 9\n", False),
                                    ("[pool]\nwarm = 256\n", True), ("[pool]\nwarm = 257\n", True)):
            lib.DROP_IN.write_text(text)
            try:
                reload = subprocess.run(["systemctl", "reload", "harpe-gov.service"], check=False,
                                        capture_output=True)
                expect_equal(reload.returncode != 0, command_fails, text, reload)
                wait_ready()
                time.sleep(0.5)  # in which the daemon would have done it
            finally:
                lib.DROP_IN.unlink()
            expect_equal(ids(slots()), ids(before), text)
        assert_ends_well(run_in_slot("--", "true"))


# ---- the daemon goes and comes ----


def assert_gone():
    wait_until(lambda: not all_scopes(), 3, f"no scope {all_scopes()}")
    expect_equal(pool_processes(), [])
    units = "systemctl list-units --all --plain --no-legend 'harpe-*.scope' | grep -v harpe-pin- || true"
    wait_until(lambda: not sh(units).strip(), 3, f"no unit {sh(units)}")  # later than its cgroup


def test_daemon_stops():
    """systemctl stop takes all slots along; they come again with the daemon."""
    with warm(3):
        wait_slots(3)
        sh("systemctl stop harpe-gov.service")
        assert_gone()
        sh("systemctl start harpe-gov.service")
        wait_ready()
        wait_slots(3)
        assert_ends_well(run_in_slot("--", "true", n=3))


def test_daemon_restarts():
    """So does a restart."""
    with warm(3):
        before = wait_slots(3)
        sh("systemctl restart harpe-gov.service")
        wait_ready()
        for row in before:
            expect(not scope(row).exists(), row)
        expect(not ids(wait_slots(3)) & ids(before), before)
        wait_until(lambda: len(all_scopes()) == 3, 3, f"three scopes {all_scopes()}")


def test_daemon_killed():
    """SIGKILL: holders die with the daemon, and the next one finds nothing."""
    with warm(3):
        before = wait_slots(3)
        holders = [holder_of(row) for row in before]
        old = daemon_pid()
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: not any(scope(row).exists() for row in before), 3, "the scopes are gone")
        expect(not any(os.path.exists(f"/proc/{pid}") for pid in holders), holders)
        expect_equal(pool_processes(), [])
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        wait_ready()
        wait_slots(3)
        wait_until(lambda: len(all_scopes()) == 3, 3, f"three scopes {all_scopes()}")
        assert_ends_well(run_in_slot("--", "true", n=3))


def test_stopped_while_made():
    """The daemon is stopped, or killed, while it makes slots: it does not wait for them."""
    with warm(6):
        for seconds in (0.05, 0.25):
            sh("systemctl restart harpe-gov.service")
            time.sleep(seconds)
            begin = time.monotonic()
            sh("systemctl stop harpe-gov.service")
            expect(time.monotonic() - begin < 15, "it took long", time.monotonic() - begin)
            assert_gone()
            sh("systemctl start harpe-gov.service")
            wait_ready()
            time.sleep(seconds)
            os.kill(daemon_pid(), signal.SIGKILL)
            time.sleep(0.2)
            wait_ready()
        wait_slots(6)
        wait_until(lambda: len(all_scopes()) == 6, 5, f"six scopes {all_scopes()}")


# ---- many ----


def test_while_they_are_made():
    """Every scope is listed from when it is there, and no more than four are made at a time."""
    with configured("[pool]\nwarm = 12\n"):
        most, end = 0, time.monotonic() + 60
        while len(slots()) < 12:
            expect(time.monotonic() < end, "12 slots", root_ps())
            before, rows, after = set(all_scopes()), root_ps(), set(all_scopes())
            listed = {row["cgroup"] for row in rows}
            expect({str(s) for s in before & after} <= listed, before & after, rows)
            most = max(most, sum(row["state"] == "starting" for row in rows))
        expect(most <= 4, most)  # a fast machine may have made them before the first look
    wait_until(lambda: not all_scopes(), 15, f"no slots {all_scopes()}")


def test_thirty():
    """30 runs one after the other: nothing piles up."""
    with warm(4):
        run("--", "true")
        wait_slots(4)
        before = held_by_daemon()
        for i in range(30):
            r = run("--memory", f"{64 + i}M", "--", "sh", "-c", "echo $PPID; id -u")
            assert_ends_well(r)
            expect_equal(r.report["limits"]["memory_bytes"], (64 + i) * MIB, r)
            expect(int(r.stdout.split()[1]) == r.report["uid"], r)
        wait_slots(4)
        wait_until(lambda: held_by_daemon() == before, 5, f"{before} where {held_by_daemon()} is")
        wait_until(lambda: len(all_scopes()) == 4, 5, f"four scopes {all_scopes()}")


def eight_at_once():
    """Each has a uid of its own, and all end well: their results."""
    with agent_directory() as d:
        processes = [start_run("--report", f"{d}/{i}", "--", *UNTIL_TOLD, cwd=d,
                               stdin=subprocess.PIPE) for i in range(8)]
        wait_until(lambda: sum(r["state"] == "running" for r in ps()) == 8, 60, "8 guests")
        results = [Result(p, f"{d}/{i}") for i, p in enumerate(processes)]
    for r in results:
        assert_ends_well(r)
        expect_equal(int(r.stdout), r.report["uid"], r)
    expect_equal(len({r.report["uid"] for r in results}), 8, *results)
    return results


def test_eight_at_once():
    """8 at once, with 4 slots: each has a uid of its own, and all end well."""
    with warm(4):
        run("--", "true")
        wait_slots(4)
        before = held_by_daemon()
        for _ in range(2):
            eight_at_once()
            wait_slots(4)
        wait_until(lambda: held_by_daemon() == before, 5, f"{before} where {held_by_daemon()} is")


# ---- what operators see ----


def test_ps():
    """Root sees the slots in ps, the agent does not."""
    with warm(2):
        rows = wait_slots(2)
        for row in rows:
            expect_equal((row["state"], row["profile"], row["main_pid"], row["name"], row["command"]),
                         ("warm", "isolated", None, None, None), row)
            expect_equal(row["caller_uid"], None, row)
            expect_equal((row["limits"]["memory_bytes"], row["limits"]["cpu_usec_per_sec"]),
                         (512 * MIB, 1000000), row)
        expect_equal(sh("harpe-gov ps").count("warm"), 2)
        expect_equal(ps(), [])
        r = Result(as_agent(["harpe-gov", "ps"]))
        expect(b"warm" not in r.stdout, r)
        for row in rows:
            expect_equal(Result(as_agent(["harpe-gov", "show", row["id"]])).status, 1)


def test_kill():
    """kill leaves slots alone: all, or one by its id."""
    with warm(2):
        before = wait_slots(2)
        for words in (["--all"], [before[0]["id"]]):
            for start in (as_agent, subprocess.Popen):
                p = start(["harpe-gov", "kill", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                r = Result(p)
                expect_equal(r.status, 0 if words == ["--all"] else 1, r)
        expect_equal(ids(slots()), ids(before))
        assert_ends_well(run_in_slot("--", "true", n=2))


def test_audit_passes():
    """The audit finds nothing: slots that wait, a guest in a former one with less than it had."""
    with warm(2):
        wait_slots(2)
        assert_healthy()
        with guest_in_slot("--memory=64M", "--cpu=10%", "--pids=7", n=2):
            assert_healthy()
        with guest_in_slot("--memory=64M", n=2) as row:
            (scope(row) / "guest/memory.max").write_text("max")
            found = of(audit(), "FAIL")
            expect(any("memory.max" in " ".join(texts) for texts in found.values()), found)
        with guest_in_slot("--cpu=10%", n=2) as row:
            (scope(row) / "guest/cpu.max").write_text("max")
            found = of(audit(), "FAIL")
            expect(any("cpu.max" in " ".join(texts) for texts in found.values()), found)


def test_verify_passes():
    """harpe-gov verify, from a slot."""
    with warm(2):
        r = subprocess.run(["harpe-gov", "verify"], cwd="/", capture_output=True, text=True,
                           timeout=300, check=False)
        expect_equal(r.returncode, 0, r.stdout, r.stderr)


# ---- the network namespace ----

ABSTRACT = """
import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.bind("\\0warm")
s.listen()
t = socket.socket()
t.bind(("127.0.0.1", 8000))
t.listen()
u = socket.create_connection(("127.0.0.1", 8000), 5)
u.sendall(b"x")
print(t.accept()[0].recv(1), sorted(os.listdir("/proc/net")) != [], flush=True)
time.sleep(600)
"""


SPACES = ("ipc", "mnt", "net")


def spaces(pid):
    return {os.stat(f"/proc/{pid}/ns/{kind}").st_ino for kind in SPACES}


def spaces_held(pid):
    """Those that the process has descriptors of."""
    held = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(fd).startswith(tuple(kind + ":" for kind in SPACES)):
                held.add(os.stat(fd).st_ino)
    return held


def test_namespaces():
    """Each guest of a slot has namespaces of its own for IPC, mounts and the network: with loopback,
    its abstract sockets and its ports."""
    with warm(3), agent_directory() as d:
        before = wait_slots(3)
        names = ("one", "two", "three")
        processes = [start_run("--name", name, "--", "python3", "-c", ABSTRACT, cwd=d)
                     for name in names]
        rows = [wait_running(name) for name in names]
        for p in processes:
            expect_equal(p.stdout.readline(), b"b'x' True\n", p.poll())
        expect(ids(rows) <= ids(before), before, rows)
        found = set().union(*(spaces(row["main_pid"]) for row in rows))
        expect_equal(len(found), 9, found)
        expect(not found & (spaces("self") | spaces(daemon_pid())), found)
        for row in rows:
            left = sh(["nsenter", "-t", str(row["main_pid"]), "-n", "cat", "/proc/net/dev"])
            expect_equal([line.split(":")[0].strip() for line in left.splitlines()[2:]], ["lo"])
            expect("@warm" in pathlib.Path(f"/proc/{row['main_pid']}/net/unix").read_text())
        expect("@warm" not in pathlib.Path("/proc/net/unix").read_text())
        sh("harpe-gov kill --all")
        for p in processes:
            p.communicate()
        held = spaces_held(daemon_pid())
        expect(not held & found, "nobody keeps them: not the daemon, not a slot", held, found)
        expect_equal(len(wait_slots(3)), 3)


def test_follows_the_host():
    """A slot's view has what is mounted on the host when a guest comes, and names nobody of the host
    whose list of users was replaced meanwhile. What is mounted elsewhere is no matter."""
    there = pathlib.Path("/usr/local/share/harpe-gov-test")
    there.mkdir()
    try:
        with warm(1):
            before = wait_slots(1)
            sh(f"mount -t tmpfs harpe-gov-test {there}")
            (there / "file").write_text("mounted\n")
            wait_until(lambda: slots() and not ids(slots()) & ids(before), 20, "new slots")
            expect_equal(run_in_slot("--", "cat", f"{there}/file").stdout, b"mounted\n")
            before = wait_slots(1)
            sh("cp -p /etc/passwd /etc/passwd.new && mv /etc/passwd.new /etc/passwd")
            sh("mount -t tmpfs harpe-gov-test /mnt && umount /mnt")
            r = run_in_slot("--", "cut", "-d:", "-f1", "/etc/passwd")
            expect_equal(r.stdout.split(), [b"root", b"nobody", b"guest"])
            expect(was_warm(before, r), "the slot from before", before, r)
            before = wait_slots(1)
            sh(f"umount {there}")
            wait_until(lambda: slots() and not ids(slots()) & ids(before), 20, "new slots")
            expect_equal(run_in_slot("--", "ls", there).stdout, b"")
    finally:
        subprocess.run(["umount", there], check=False, capture_output=True)
        there.rmdir()
