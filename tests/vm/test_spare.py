# SPDX-License-Identifier: GPL-2.0-or-later
"""The supervisor that waits for the next connection."""
import grp
import os
import pathlib
import signal
import subprocess
import threading

import lib
from lib import (agent_directory, configured, daemon_pid, expect, expect_equal, helpers_of_daemon, run, sh,
                 spares, start_run, supervisors, wait_ready, wait_running, wait_spare, wait_until)


def test_takes_the_next():
    """There is one, it serves the next run, and there is one again, while that runs and afterwards."""
    first = wait_spare()
    with agent_directory() as d:
        p = start_run("--name", "first", "--", "sleep", "600", cwd=d)
        wait_until(lambda: supervisors() == [first], 30, f"{first} serves it {supervisors()}")
        second = wait_spare()
        expect(second != first, first)
        wait_running("first")
        p.kill()
        p.communicate()
    lib.assert_nothing_left()
    wait_spare()
    expect_equal(len(spares()), 1)


def test_many_at_once():
    """More callers than spares: each is served, and one spare is left."""
    wait_spare()
    results = []
    threads = [threading.Thread(target=lambda: results.append(run("--", "echo", "fine")))
               for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect_equal([(r.status, r.stdout) for r in results], [(0, b"fine\n")] * 8)
    lib.assert_nothing_left()
    wait_until(lambda: len(helpers_of_daemon()) == 1, 5, helpers_of_daemon())
    wait_spare()


def test_killed():
    """The next connection is served all the same."""
    for pause in False, True:
        pid = wait_spare()
        os.kill(pid, signal.SIGKILL)
        if pause:
            wait_until(lambda: spares() not in ([], [pid]), 10, "another one")
        r = run("--", "echo", "fine")
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


def test_reload():
    """It knows what was in force when it was started: after a reload it is another one, and the first
    run has the new view."""
    before = wait_spare()
    place = pathlib.Path("/srv/shown")
    place.mkdir()
    try:
        (place / "word").write_text("shown\n")
        with configured(f"[view]\nro = {place}\n"):
            r = run("--", "cat", f"{place}/word")
            expect_equal((r.status, r.stdout), (0, b"shown\n"), r)
            expect(wait_spare() != before, before)
        r = run("--", "cat", f"{place}/word")
        expect_equal(r.status, 1, r)
    finally:
        (place / "word").unlink()
        place.rmdir()


def test_bad_reload():
    """Filters are made before the rest is found to be bad: runs go on as before, and have them when it
    is good."""
    before = wait_spare()
    lib.DROP_IN.write_text("[profile other]\nuser-namespaces = yes\n[view]\nro = /nowhere\n")
    try:
        os.kill(daemon_pid(), signal.SIGHUP)  # systemctl would look at the files first
        wait_until(lambda: spares() not in ([], [before]), 10, "another one")
        r = run("--", "echo", "fine")
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)
    finally:
        lib.DROP_IN.unlink()
        sh("systemctl reload harpe-gov.service")
        wait_ready()
    with lib.configured("[access]\nprofiles = isolated other\n[profile other]\nuser-namespaces = yes\n"):
        r = run("--net", "other", "--", "echo", "fine")
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


def test_many_groups():
    """Who is in more groups than are looked through is told, counts, and keeps nobody waiting."""
    wait_spare()
    groups = [grp.getgrnam("harpe-gov").gr_gid, *range(70000, 70300)]

    def refused(words):
        done = subprocess.run(["harpe-gov", "run", "--", "true"], user="agent", extra_groups=groups,
                              cwd="/", check=False, capture_output=True, text=True, timeout=30)
        expect_equal(done.returncode, 125, done)
        expect(words in done.stderr, done)

    since = sh("date '+%F %T.%6N'").strip()
    for _ in range(3):
        refused("uid 1000 is in more than 256 supplementary groups")
    expect("supervisor" not in sh(["journalctl", "-u", "harpe-gov", "--since", since]))
    with configured("[access]\nmax-connections = 1\n"), agent_directory() as d:
        p = start_run("--name", "first", "--", "sleep", "600", cwd=d)
        wait_until(supervisors, 30, "it is served")
        refused("uid 1000 has 1 connection already")
        p.kill()
        p.wait()


def test_daemon_killed():
    """It goes with its daemon."""
    old, pid = daemon_pid(), wait_spare()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 3, "it is gone")
    wait_until(lambda: daemon_pid() not in (0, old), 30, "the daemon is back")
    wait_ready()
    r = run("--", "echo", "fine")
    expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


def test_silent_connections():
    """Who connects and gives up, or says nothing, takes no more than one each."""
    path = "/run/harpe-gov/socket"
    silent = [lib.as_agent(["python3", "-c", f"""
import socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect({path!r})
time.sleep({pause})
"""]) for pause in (0, 600, 0, 600)]
    try:
        wait_until(lambda: len(supervisors()) >= 2, 30, "they are served")
        r = run("--", "echo", "fine")
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)
        wait_until(lambda: not supervisors(), 30, "silent connections are closed")
        wait_spare()
        expect_equal(len(helpers_of_daemon()), 1)
    finally:
        for p in silent:
            p.kill()
            p.communicate()
