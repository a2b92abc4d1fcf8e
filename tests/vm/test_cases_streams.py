# SPDX-License-Identifier: GPL-2.0-or-later
"""Standard streams: they are the guest's own, so an error in them is the guest's to see."""
import os
import subprocess
import time

from lib import (RUN_SH, Result, agent_directory, as_agent, expect, expect_equal, pool_processes,
                 python, run, scopes, sh, start_run, wait_running, wait_until)
from test_terminal import Terminal

RSS_MAX_KIB = 20 << 10


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def test_both_outputs():
    """10 MiB on each of the two, taking turns: both arrive whole, nobody waits for the other."""
    r = run("--", *python("pour.py"))
    expect_equal((r.status, r.report["exit_code"]), (7, 7), r.report)
    for stream, letter in ((r.stdout, b"o"), (r.stderr, b"e")):
        expect_equal((len(stream), stream.count(letter)), (10 << 20, 10 << 20))


def test_output_without_end():
    """Output that nobody reads stops the guest, not the clock, and fills nobody's memory. Only the
    client's own line waits for a reader, as anybody's would."""
    for redirection in ("", ">&2"):
        with agent_directory() as d:
            report = d + "/r.json"
            p = start_run("--name", "victim", "--time", "4s", "--report", report, "--", "sh", "-c",
                          "yes " + redirection, cwd=d)
            wait_running("victim")
            time.sleep(1)
            size = resident_kib(p.pid)
            wait_until(lambda: os.path.getsize(report) > 0, 20, "the report is written")
            expect_equal((pool_processes(), scopes()), ([], []))
            r = Result(p, report)
        expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r.report)
        expect(r.stderr.endswith(b"CPU)\n"), r.stderr[-200:])
        expect(size < RSS_MAX_KIB, f"the client has {size} KiB")


def test_terminal_that_nobody_reads():
    """The same on a terminal, where the client is in between."""
    with agent_directory() as d, Terminal(["harpe-gov", "run", "--name", "victim", "--time", "4s",
                                           "--", "yes"], cwd=d) as t:
        wait_running("victim")
        time.sleep(1)
        expect(resident_kib(t.process.pid) < RSS_MAX_KIB, resident_kib(t.process.pid))
        wait_until(lambda: not pool_processes(), 20, "the clock ends it")
        t.expect(b"wall-clock limit")
        expect_equal(t.wait_end(), 124)


def test_report_on_a_full_file_system():
    """The guest's output is its own business, the report is ours: 125, in one sentence."""
    with agent_directory() as d:
        sh(f"mkdir {d}/full && mount -t tmpfs -o size=4k,mode=0777 full {d}/full &&"
           f" head -c 4096 /dev/zero >{d}/full/x")
        try:
            r = Result(as_agent(["harpe-gov", "run", "--report", "full/r.json", "--", "echo",
                                 "said"], cwd=d))
        finally:
            sh(f"umount {d}/full")
    expect_equal((r.status, r.stdout), (125, b"said\n"), r)
    expect(b"full/r.json" in r.stderr and b"No space left" in r.stderr, r)
    expect_equal(r.stderr.count(b"\n"), 1, r)


def test_input_of_run_sh():
    """Harpe hands its own standard input down; the recipe does not: a guest that reads goes on."""
    with agent_directory() as d:
        with open(d + "/out.py", "w") as f:
            f.write("import sys; print(len(sys.stdin.buffer.read()))")
        read, write = os.pipe()
        r = Result(as_agent([RUN_SH, "out.py"], cwd=d, stdin=read))
        os.close(read)
        os.close(write)
    expect_equal((r.status, r.stdout), (0, b"0\n"), r)


NO_TERMINAL = """
import errno, os
try:
    os.open("/dev/tty", os.O_RDWR)
except OSError as error:
    print(errno.errorcode[error.errno], os.getsid(0) == os.getpid())
"""


def test_terminal_that_is_not_handed_over():
    """A caller at a terminal, with all streams elsewhere: the guest cannot get at it."""
    with agent_directory() as d, Terminal(["harpe-gov", "run", "--", "python3", "-c", NO_TERMINAL],
                                          streams=(), cwd=d, stdin=subprocess.DEVNULL) as t:
        expect_equal(t.process.stdout.read(), b"ENXIO True\n", t.process.stderr.read())
        expect_equal((t.wait_end(), t.read(0)), (0, b""))
