# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of disk bandwidth, where each limit comes from, and what memory was made of: judged from
cgroupfs and the journal."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

from lib import (SLICE, Result, agent_directory, as_agent, daemon_pid, entries, expect,
                 expect_equal, guest_cgroup, run, sh, start_run, supervisors, wait_ready,
                 wait_running, wait_until)

MIB = 1 << 20
RATE = 1 * MIB
DROP_IN = pathlib.Path("/etc/harpe-gov/harpe-gov.conf.d/test-limits.conf")


def drop_in(path, text, *then):
    """A file that goes again, and what makes both known."""
    @contextlib.contextmanager
    def there():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        try:
            for command in then:
                sh(command)
            yield
        finally:
            path.unlink()
            for command in then:
                sh(command)
    return there()


def configuration(text):
    return drop_in(DROP_IN, text, "systemctl reload harpe-gov.service")


# ---- disks ----


def io_bytes(cgroup, key):
    """The sum of rbytes or wbytes over all disks."""
    return sum(int(word.split("=")[1]) for line in (cgroup / "io.stat").read_text().splitlines()
               for word in line.split() if word.startswith(key + "="))


def rate_of(name, key, seconds):
    """Bytes per second of the running guest, once its disk is busy."""
    cgroup = guest_cgroup(name)
    wait_until(lambda: io_bytes(cgroup, key) > 0, 30, "the disk is used")
    begin, first = time.monotonic(), io_bytes(cgroup, key)
    time.sleep(seconds)
    return (io_bytes(cgroup, key) - first) / (time.monotonic() - begin)


def dd(direction, megabytes):
    if direction == "write":
        return ["dd", "if=/dev/zero", "of=file", "bs=64k", f"count={megabytes * 16}", "oflag=direct"]
    return ["dd", "if=file", "of=/dev/null", "bs=64k", f"count={megabytes * 16}", "iflag=direct"]


def bounded(direction):
    key, short = ("wbytes", "wbps") if direction == "write" else ("rbytes", "rbps")
    with agent_directory(0o777, where="/var/tmp") as d:
        sh(f"dd if=/dev/zero of={d}/file bs=1M count=64 && chmod 666 {d}/file && sync")
        p = start_run("--name", "disk", "--report", d + "/r.json", f"--io-{direction}", RATE, "--",
                      *dd(direction, 8), cwd=d)
        wait_running("disk")
        lines = (guest_cgroup("disk") / "io.max").read_text().splitlines()
        expect(lines and all(f"{short}={RATE}" in line for line in lines), lines)
        rate = rate_of("disk", key, 4)
        r = Result(p, d + "/r.json")
        expect(0.5 * RATE < rate < 1.3 * RATE, rate, r)
        expect_equal((r.status, r.report["ended"]), (0, "exited"), r)
        io = r.report["io"]["written_bytes" if direction == "write" else "read_bytes"]
        expect(8 * MIB <= io < 24 * MIB, r)
        expect_equal(r.report["limit_details"][f"io_{direction}_bytes_per_sec"],
                     {"asked": RATE, "effective": RATE, "origin": "request"}, r)
        # The same without the limit is faster, so it was not the disk.
        free = run("--", *dd(direction, 8), cwd=d)
        expect_equal(free.status, 0, free)
        expect(free.report["wall_usec"] < r.report["wall_usec"] / 2, free, r)


def test_io_write():
    """--io-write bounds what reaches the disk."""
    bounded("write")


def test_io_read():
    """--io-read bounds what comes from it."""
    bounded("read")


def test_io_kill():
    """A guest that waits for a throttled disk dies at once: the bound is lifted for the kill."""
    with agent_directory(0o777, where="/var/tmp") as d:
        # Each into a new file: the last one belongs to another guest's uid.
        slow = ["sh", "-c", "exec dd if=/dev/zero of=$(mktemp -p .) bs=1M count=8 oflag=direct"]
        r = run("--io-write=4K", "--time=3s", "--", *slow, cwd=d)
        expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)
        p = start_run("--name", "slow", "--report", d + "/r.json", "--io-write=4K", "--", *slow,
                      cwd=d)
        row = wait_running("slow")
        time.sleep(2)  # until its first block waits
        sh(f"systemctl stop harpe-{row['id']}.scope")
        r = Result(p, d + "/r.json", timeout=10)
        expect_equal(r.report["ended"], "killed", r)
        p = start_run("--name", "slow", "--io-write=4K", "--", *slow, cwd=d)
        cgroup = guest_cgroup("slow") if wait_running("slow") else None
        time.sleep(2)  # until its first block waits
        (pid,) = (cgroup / "cgroup.procs").read_text().split()
        os.kill(supervisors()[0], signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5, "the guest is gone")
        p.communicate()


def test_io_weight():
    """--io-weight is the scope's, among the other guests; more than the ceiling is refused."""
    with agent_directory() as d:
        p = start_run("--name", "light", "--report", d + "/r.json", "--io-weight=50", "--", "cat",
                      cwd=d, stdin=subprocess.PIPE)  # until told
        wait_running("light")
        scope = guest_cgroup("light").parent
        expect_equal((scope / "io.weight").read_text().split("\n")[0], "default 50")
        r = Result(p, d + "/r.json")
        expect_equal(r.report["limits"]["io_weight"], 50, r)
    r = run("--io-weight=200", "--", "true")
    expect_equal(r.status, 125, r)
    expect(b"--io-weight: 200 is above 100, the built-in ceiling" in r.stderr, r)


def test_io_missing():
    """Without an io controller: an error for who asks for it, nothing for others."""
    path = pathlib.Path("/run/systemd/system/harpe.slice.d/no-io.conf")
    with drop_in(path, "[Slice]\nDisableControllers=io\n", "systemctl stop harpe-gov.service",
                 "systemctl stop harpe-drop.slice harpe-isolated.slice harpe.slice",
                 "systemctl daemon-reload", "systemctl start harpe-gov.service"):
        wait_ready()
        expect("io" not in (SLICE / "cgroup.controllers").read_text().split())
        r = run("--", "true")
        expect_equal((r.status, r.report["io"]), (0, {"read_bytes": None, "written_bytes": None}), r)
        expect_equal(r.report["limits"]["io_weight"], None, r)
        for option in ("--io-write=1M", "--io-read=1M", "--io-weight=50", "--io-weight=100"):
            r = run(option, "--", "true")
            expect_equal((r.status, r.report["guest_ran"]), (125, False), r)
            expect(b"the io controller is not available" in r.stderr, r)
    wait_ready()


# ---- where limits come from ----


def details(*args):
    r = run(*args, "--", "true")
    expect_equal(r.status, 0, r)
    return r.report["limit_details"]


def test_origins():
    """Of each limit in force: the request, a line of the configuration, a cgroup above, or built in."""
    with configuration("[defaults]\npids = 99\n"):
        d = details("--memory=64M")
        expect_equal(d["memory_bytes"],
                     {"asked": 64 * MIB, "effective": 64 * MIB, "origin": "request"})
        expect_equal(d["pids"], {"asked": 99, "effective": 99, "origin": f"{DROP_IN}:2"})
        expect_equal(d["cpu_usec_per_sec"]["origin"], "built in")
        expect_equal(d["cpu_time_usec"],
                     {"asked": "max", "effective": "max", "origin": "built in"})
    sh(f"systemctl set-property --runtime {SLICE.name} MemoryMax=96M")
    try:
        d = details("--memory=128M")
        expect_equal(d["memory_bytes"],
                     {"asked": 128 * MIB, "effective": 96 * MIB, "origin": str(SLICE)})
    finally:
        sh(f"systemctl set-property --runtime {SLICE.name} MemoryMax=infinity")


def test_refusal_names_the_ceiling():
    """A refusal says where the ceiling stands."""
    r = run("--memory=8G", "--", "true")
    expect(b"--memory: 8G is above 4G, the built-in ceiling" in r.stderr, r)
    with configuration("[ceiling]\nmemory = 1G\n"):
        r = run("--memory=2G", "--", "true")
        expect(f"--memory: 2G is above 1G, the ceiling in {DROP_IN}:2".encode() in r.stderr, r)


def test_explain():
    """--explain names the origin of every value and of every ceiling, and what the kernel is told."""
    with configuration("[defaults]\npids = 99\n[access]\ncpu = 200%\n"):
        sh(f"systemctl set-property --runtime {SLICE.name} TasksMax=77")
        try:
            r = Result(as_agent(["harpe-gov", "run", "--explain", "--io-write=1M"]))
        finally:
            sh(f"systemctl set-property --runtime {SLICE.name} TasksMax=infinity")
    expect(f"pids: {SLICE} allows no more than 77, which would be in force." in r.stdout.decode(), r)
    rows = {line.split()[0]: line.split() for line in r.stdout.decode().splitlines() if line}
    expect_equal(rows["pids"], ["pids", "99", f"{DROP_IN}:2", "1024", "built", "in", "pids.max=99"],
                 r)
    expect_equal(rows["cpu"][4:6], ["200%", f"{DROP_IN}:4"], r)
    expect_equal(rows["io-write"], ["io-write", "1M", "--io-write", "infinity", "built", "in",
                                    'io.max="wbps=1048576"', "for", "each", "disk"], r)


# ---- memory ----


def test_memory_kinds():
    """Anonymous memory, files in memory and cache, apart: only one of them is the program's own."""
    with agent_directory(where="/var/tmp") as d:
        os.truncate(os.open(d + "/big", os.O_CREAT | os.O_WRONLY, 0o644), 200 * MIB)
        touch = run("--memory=64M", "--", "python3", "-c",
                    "import time; a = bytearray(b'x') * (40 << 20); time.sleep(2)")
        read = run("--memory=64M", "--", "python3", "-c",
                   "f = open('big', 'rb', 0)\nwhile f.read(1 << 20): pass", cwd=d)
        files = run("--memory=64M", "--", "sh", "-c",
                    "dd if=/dev/zero of=/tmp/x bs=1M count=30 && sleep 2")
        quick = run("--memory=64M", "--", "true")
    for r in (touch, read, files, quick):
        expect_equal((r.status, r.report["ended"]), (0, "exited"), r)
        expect(r.report["memory"]["peak_bytes"] > 0, r)
    expect(quick.report["memory"]["anon_bytes"] != 0, "not seen alive is not 0", quick)
    memory = touch.report["memory"]
    expect(40 * MIB <= memory["anon_bytes"] < 64 * MIB, touch)
    expect(memory["peak_bytes"] <= 65 * MIB, touch)
    memory = read.report["memory"]
    expect(memory["anon_bytes"] < 24 * MIB, read)
    expect(32 * MIB < memory["cache_bytes"] <= 64 * MIB, read)
    memory = files.report["memory"]
    expect(30 * MIB <= memory["shmem_bytes"] < 40 * MIB and memory["anon_bytes"] < 16 * MIB, files)


def test_swap_peak():
    """memory.swap.peak where the kernel has it (6.5), else null: never 0 for unknown."""
    with agent_directory() as d:
        p = start_run("--name", "swap", "--report", d + "/r.json", "--", "cat", cwd=d,
                      stdin=subprocess.PIPE)  # until told
        wait_running("swap")
        there = (guest_cgroup("swap") / "memory.swap.peak").exists()
        r = Result(p, d + "/r.json")
        expect_equal(r.report["memory"]["swap_peak_bytes"], 0 if there else None, r)


# ---- the journal ----


def test_journal_entry():
    """journalctl HARPE_ENDED=memory finds the run with its limits, what it used and who called."""
    r = run("--name=hog", "--memory=16M", "--", "python3", "-c", "a = bytearray(64 << 20)")
    expect_equal(r.report["ended"], "memory", r)
    matches = "HARPE_ENDED=memory", "HARPE_RUN=" + r.report["id"]
    wait_until(lambda: entries(*matches), 5, "the entry, which comes after the answer")
    (entry,) = entries(*matches)
    for field, value in (("NAME", "hog"), ("CALLER_UID", "1000"), ("PROFILE", "isolated"),
                         ("UID", str(r.report["uid"])), ("LIMITS_MEMORY_BYTES", str(16 * MIB)),
                         ("LIMIT_DETAILS_MEMORY_BYTES_ORIGIN", "request"),
                         ("LIMITS_CPU_TIME_USEC", "max"),
                         ("MEMORY_PEAK_BYTES", str(r.report["memory"]["peak_bytes"])),
                         ("MEMORY_OOM_KILLS", str(r.report["memory"]["oom_kills"])),
                         ("WALL_USEC", str(r.report["wall_usec"])), ("GUEST_RAN", "true")):
        expect_equal(entry.get("HARPE_" + field), value, field, entry)


def lost(kill):
    with agent_directory() as d:
        p = start_run("--name", "victim", "--memory=64M", "--", "sleep", "600", cwd=d)
        row = wait_running("victim")
        old = daemon_pid()
        kill(old)
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        wait_ready()
        p.communicate()
    found = entries("HARPE_RUN=" + row["id"])
    expect_equal(len(found), 1, found)
    for field, value in (("ENDED", "governor-lost"), ("NAME", "victim"), ("CALLER_UID", "1000"),
                         ("UID", str(row["uid"])), ("COMMAND", "sleep 600"), ("PROFILE", "isolated"),
                         ("LIMIT_DETAILS_MEMORY_BYTES_ASKED", str(64 * MIB))):
        expect_equal(found[0].get("HARPE_" + field), value, field, found)
    expect(int(found[0]["HARPE_STARTED_USEC"]) > 0, found)
    expect_equal(os.listdir("/run/harpe-gov/runs"), [])


def test_sweep_writes_what_it_found():
    """Daemon and supervisors die at once: the next daemon writes the run's end into the journal."""
    def kill(daemon):
        for pid in [daemon, *supervisors()]:
            with contextlib.suppress(ProcessLookupError):  # systemd may have been faster
                os.kill(pid, signal.SIGKILL)
    lost(kill)


def test_sweep_after_the_daemon_alone():
    """The daemon dies alone: the supervisor's own report, if it came to one, or what was noted."""
    lost(lambda daemon: os.kill(daemon, signal.SIGKILL))


def test_supervisor_lost():
    """The supervisor dies alone: the daemon's entry has the counters that it left."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--memory=64M", "--", "sleep", "600", cwd=d)
        row = wait_running("victim")
        (pid,) = supervisors()
        os.kill(pid, signal.SIGKILL)
        p.communicate()
    wait_until(lambda: entries("HARPE_RUN=" + row["id"]), 10, "the entry")
    (entry,) = entries("HARPE_RUN=" + row["id"])
    expect_equal((entry["HARPE_ENDED"], entry["HARPE_NAME"]), ("governor-lost", "victim"), entry)
    expect(int(entry["HARPE_CPU_USAGE_USEC"]) > 0 and int(entry["HARPE_PIDS_PEAK"]) > 0, entry)
    expect("HARPE_GUEST_RAN" not in entry, entry)


def test_no_ledger_after_runs():
    """Nothing is kept of runs whose end was told."""
    run("--", "true")
    r = run("--", "/nonexistent")
    expect_equal(r.status, 127, r)
    # The caller is told first.
    wait_until(lambda: not os.listdir("/run/harpe-gov/runs"), 5, "nothing is kept")
    expect_equal(subprocess.run(["stat", "-c", "%a %u", "/run/harpe-gov/runs"], check=True,
                                capture_output=True, text=True).stdout, "700 0\n")
