# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever dies, nothing of a guest is left, and the next run works."""
import os
import pathlib
import signal
import subprocess
import threading
import time

from lib import (POOL, Result, agent_directory, as_agent, daemon_pid, expect, expect_equal,
                 pool_processes, run, scopes, sh, start_run, supervisors, wait_ready, wait_running,
                 wait_spare, wait_until)

GONE = 10  # seconds, under emulation


def next_run_works():
    wait_ready()
    r = run("--", "echo", "fine")
    expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


def assert_gone():
    wait_until(lambda: not pool_processes(), GONE, "no guest process")
    wait_until(lambda: not scopes(), GONE, "no scope")


def running_guest(directory):
    p = start_run("--name", "victim", "--report", directory + "/r.json", "--", "sh", "-c",
                  "setsid sleep 600 & sleep 600", cwd=directory, start_new_session=True)
    return p, wait_running("victim")


def test_client_killed():
    """SIGKILL to the client."""
    with agent_directory() as d:
        p, _ = running_guest(d)
        p.kill()
        assert_gone()
        p.communicate()
        next_run_works()


def test_process_group_killed():
    """SIGKILL to the caller's whole process group, as Harpe does."""
    with agent_directory() as d:
        p = as_agent(["sh", "-c", "sleep 600 & harpe-gov run --name victim -- sleep 600"], cwd=d,
                     start_new_session=True)
        wait_running("victim")
        os.killpg(p.pid, signal.SIGKILL)
        assert_gone()
        p.communicate()
        next_run_works()


def test_supervisor_killed():
    """SIGKILL to the supervisor: the daemon cleans up, the client says so."""
    with agent_directory() as d:
        p, _ = running_guest(d)
        (pid,) = supervisors()
        os.kill(pid, signal.SIGKILL)
        assert_gone()
        r = Result(p, d + "/r.json")
        expect_equal((r.status, r.report["ended"]), (125, "governor-lost"), r)
        next_run_works()


def test_daemon_killed():
    """SIGKILL to the daemon: guests end, the table stays, the daemon comes back."""
    with agent_directory() as d:
        p, _ = running_guest(d)
        old = daemon_pid()
        os.kill(old, signal.SIGKILL)
        assert_gone()
        expect("skuid @pool drop" in sh("nft list chain inet harpe_gov output"), "the table is gone")
        r = Result(p, d + "/r.json")
        expect_equal((r.status, r.report["ended"]), (125, "governor-lost"), r)
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        next_run_works()


def test_daemon_and_supervisor_killed():
    """Both at once: systemd stops what was bound to the service."""
    with agent_directory() as d:
        p, _ = running_guest(d)
        old = daemon_pid()
        victims = supervisors() + [old]
        subprocess.run(["kill", "-9", *map(str, victims)], check=True)
        assert_gone()
        p.communicate()
        wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
        next_run_works()


def test_restart():
    """A restart ends the guests and says so; the table never goes away."""
    with agent_directory() as d:
        p, _ = running_guest(d)
        missing = []
        stop = threading.Event()

        def look():
            while not stop.is_set():
                if subprocess.run(["nft", "list", "table", "inet", "harpe_gov"], check=False,
                                  capture_output=True).returncode:
                    missing.append(time.monotonic())

        watcher = threading.Thread(target=look)
        watcher.start()
        sh("systemctl restart harpe-gov.service")
        stop.set()
        watcher.join()
        r = Result(p, d + "/r.json")
        expect_equal((r.status, r.report["ended"]), (125, "governor-stopped"), r)
        expect_equal(missing, [], "the table was not there at these times")
        next_run_works()


def daemon_state():
    wait_spare()
    pid = daemon_pid()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    rss = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


def test_sixteen_at_once():
    """16 at once: each has a uid of its own, and all end well."""
    with agent_directory() as d:
        processes = [start_run("--", "sh", "-c", "id -u; cat", cwd=d, stdin=subprocess.PIPE)
                     for _ in range(16)]  # until told
        wait_until(lambda: len(scopes()) == 16, 60, "16 scopes at once")
        results = [Result(p) for p in processes]
    for r in results:
        expect_equal(r.status, 0, r)
    uids = {int(r.stdout) for r in results}
    expect_equal(len(uids), 16, uids)
    expect(all(uid in POOL for uid in uids), uids)


def test_junk_clients():
    """Junk, silence and half a request on the socket hurt nobody."""
    script = r"""
import array, os, socket, time
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/harpe-gov/socket")
    return s
for data in (b"", b"x", b"\0" * 16, os.urandom(64), os.urandom(8192), b"\xff" * 200000):
    s = connect()
    try:
        s.send(data)
    except OSError:
        pass
    s.close()
silent = [connect() for _ in range(100)]
s = connect()
r, w = os.pipe()
fds = array.array("i", [r] * 200)
try:
    s.sendmsg([b"\0" * 16], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
except OSError:
    pass
time.sleep(1)
print("done")
"""
    r = Result(as_agent(["python3", "-c", script]))
    expect_equal(r.stdout, b"done\n", r)
    wait_until(lambda: not supervisors(), 30, "silent connections are closed")
    next_run_works()
