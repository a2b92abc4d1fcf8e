# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that is a file, swap, and limits above the guest's own."""
import contextlib
import glob
import os
import pathlib
import re

from lib import (POOL, SLICE, Result, agent_directory, as_agent, configured, dying_cgroups, expect,
                 expect_equal, python, run, sh, start_run, wait_until)

MIB = 1 << 20
RESERVE = 2 * MIB  # what others on the host may take or give back meanwhile


def field(path, name):
    return int(re.search(rf"^{name}:?\s+(\d+)", pathlib.Path(path).read_text(), re.M)[1])


def mark_log():
    """Words in the kernel's log, which forgets what is old: what it had before is no measure."""
    mark = f"harpe-test {os.urandom(8).hex()}"
    write("/dev/kmsg", mark + "\n")
    return mark


def victims(mark):
    """The uids of those whom the kernel has killed for memory since the mark, one by one."""
    _, found, text = sh("dmesg").partition(mark)
    expect(found, "the kernel's log is too short")
    return [int(uid) for uid in re.findall(r"Killed process \d+ .* UID:(\d+)", text)]


def files_of_guests():
    return [path for place in ("/dev/shm", "/tmp", "/var/tmp")
            for path in glob.glob(f"{place}/**", recursive=True)
            if os.path.lexists(path) and os.lstat(path).st_uid in POOL]


def shmem():
    """Bytes of all files in memory but those in /run: the journal grows by 8 MiB there, now and then."""
    run_ = os.statvfs("/run")
    return field("/proc/meminfo", "Shmem") * 1024 - (run_.f_blocks - run_.f_bfree) * run_.f_frsize


def assert_shmem_is_back(before):
    wait_until(lambda: abs(shmem() - before) <= RESERVE, 10, f"files in memory are as before: {before}")


# ---- files in memory ----

SHARED_MEMORY = ("file", "memfd", "unlinked", "posix", "sysv")


def test_shared_memory():
    """Whatever it is called, memory counts; nobody else is killed for it; it goes with the guest."""
    before, mark = shmem(), mark_log()
    with agent_directory() as d:
        started = [(kind, start_run("--memory", "48M", "--report", f"{d}/{kind}", "--",
                                    *python("shared_memory.py"), kind, cwd=d))
                   for kind in SHARED_MEMORY]
        for kind, p in started:
            r = Result(p, f"{d}/{kind}")
            expect_equal((r.status, r.report["ended"], r.stdout), (124, "memory", b""), kind, r)
            expect(r.report["memory"]["oom_kills"] >= 1, kind, r)
            expect(r.report["memory"]["peak_bytes"] > 40 * MIB, kind, r)
    new = victims(mark)
    expect(len(new) >= len(SHARED_MEMORY), new)
    expect_equal([uid for uid in new if uid not in POOL], [], "uids of others that were killed")
    expect_equal(files_of_guests(), [])
    assert_shmem_is_back(before)


def test_files_left_behind():
    """15 guests leave 2 MiB each in /dev/shm: neither the memory stays nor their cgroups."""
    before, dying = shmem(), dying_cgroups()
    loop = "for i in $(seq 15); do harpe-gov run --memory 16M -- " \
           "dd if=/dev/zero of=/dev/shm/left bs=1M count=2 status=none || exit 1; done"
    with agent_directory() as d:
        r = Result(as_agent(["sh", "-c", loop], cwd=d), timeout=300)
    expect_equal(r.status, 0, r)
    assert_shmem_is_back(before)
    wait_until(lambda: dying_cgroups() < dying + 8, 30,
               f"cgroups vanish ({dying} were dying before, {dying_cgroups()} are after)")


# ---- counters ----


def test_counters_of_a_short_life():
    """A guest that is dead at once has counters all the same."""
    r = run("--", "sh", "-c", "kill -9 $$")
    expect_equal((r.report["ended"], r.report["signal"]), ("signaled", 9), r)
    expect_equal(r.report["memory"]["oom_kills"], 0, r)
    for group, name in (("memory", "peak_bytes"), ("pids", "peak"), ("cpu", "usage_usec")):
        expect(r.report[group][name] > 0, name, r)


# ---- swap ----


def write(path, text):
    pathlib.Path(path).write_text(text)


@contextlib.contextmanager
def swap():
    """A swap device in the host's memory."""
    sh("modprobe zram")
    write("/sys/block/zram0/disksize", "512M")
    sh("mkswap /dev/zram0 && swapon /dev/zram0")
    try:
        yield
    finally:
        sh("swapoff /dev/zram0")
        write("/sys/block/zram0/reset", "1")


@contextlib.contextmanager
def slice_allows(unit, **properties):
    """Properties of a slice, for as long as this lasts."""
    before = {name: sh(f"systemctl show -P {name} {unit}").strip() for name in properties}

    def put(values):
        sh(["systemctl", "set-property", "--runtime", unit,
            *(f"{name}={value}" for name, value in values.items())])

    put(properties)
    try:
        yield
    finally:
        put(before)


TOUCH = ("--memory", "24M", "--time", "5min", "--", *python("touch.py"), "40", "1")


def test_swap():
    """The host has swap, a guest has none unless it asks, and asking alone is not enough."""
    with swap():
        for asked in ((), ("--swap", "0")):
            before = field("/proc/vmstat", "pswpout")
            r = run(*asked, *TOUCH)
            expect_equal((r.status, r.report["ended"]), (124, "memory"), asked, r)
            expect_equal(r.report["limits"]["swap_bytes"], 0, asked, r)
            expect(field("/proc/vmstat", "pswpout") - before < 64, "pages were swapped out", asked)
        r = run("--swap", "128M", *TOUCH)
        expect_equal((r.status, r.report["guest_ran"]), (125, False), "above the ceiling", r)


def test_swap_that_is_allowed():
    """With the administrator's leave, in the configuration and in the slice, it swaps and lives."""
    with swap(), configured("[ceiling]\nswap = 256M\n"):
        with slice_allows("harpe.slice", MemorySwapMax="infinity"):
            before = field("/proc/vmstat", "pswpout")
            r = run("--swap", "128M", *TOUCH)
            expect_equal((r.status, r.report["ended"], r.stdout), (0, "exited", b"all of it\n"), r)
            expect_equal(r.report["limits"]["swap_bytes"], 128 * MIB, r)
            expect(field("/proc/vmstat", "pswpout") - before > 1000, "nothing was swapped out")
        r = run("--swap", "128M", "--", "true")
        expect_equal(r.report["limits"]["swap_bytes"], 0, "the slice allows none", r)


# ---- limits above ----


def test_slice_is_smaller():
    """What the slice does not have, no guest gets: the report says so, and who ran out."""
    with slice_allows(SLICE.name, MemoryMax="40M", TasksMax="8"):
        r = run("--memory", "256M", "--cpu", "20%", "--pids", "64", "--", *python("forkbomb.py"))
        expect_equal((r.report["limits"]["memory_bytes"], r.report["limits"]["pids"]),
                     (40 * MIB, 8), r)
        expect_equal(r.report["limits"]["cpu_usec_per_sec"], 200000, r)
        own = os.path.exists(SLICE / "pids.events.local")  # since 6.11 who has the limit counts
        expect(r.report["pids"]["peak"] < 8 and (own or r.report["pids"]["refused_forks"] >= 1), r)
        r = run("--memory", "256M", "--", *python("memory.py"))
    expect_equal((r.status, r.report["ended"]), (124, "memory"), r)
    expect(r.report["memory"]["oom_kills"] >= 1, r)
    expect_equal(r.report["memory"]["limit_hits"], 0, "it was not the guest's own limit", r)
    expect(b"all guests together" in r.stderr, r)
