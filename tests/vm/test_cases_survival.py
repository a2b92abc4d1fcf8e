# SPDX-License-Identifier: GPL-2.0-or-later
"""SIGKILL of the daemon or of the supervisor at chosen points, where a tracer stops the run."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from lib import (POOL, Result, agent_directory, daemon_pid, expect, expect_equal, pool_processes,
                 run, scopes, sh, start_run, supervisors, wait_ready, wait_spare,
                 wait_until)

GONE = 10  # seconds, under emulation

# The call after which the process that made it stands still, and which of its calls of that name.
LEASED = "clone", 1  # the daemon's: the scope's holder
SCOPE_STARTED = "mkdirat", 1
BEING_SET_UP = "setresuid", 1  # the guest to be
CLEANING_UP = "waitid", 1


@contextlib.contextmanager
def stopping_after(point):
    """Yields a function that waits for the point and tells who stopped there."""
    call, count = point
    pids = [daemon_pid(), wait_spare()]  # who will serve the run is there already
    with tempfile.NamedTemporaryFile("r") as log:
        strace = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", log.name, "-e", f"trace={call}", "-e",
             f"inject={call}:signal=SIGSTOP:when={count}", *(f"-p{pid}" for pid in pids)],
            stderr=subprocess.DEVNULL)

        def traced():
            return all(f"TracerPid:\t{strace.pid}\n" in pathlib.Path(f"/proc/{pid}/status").read_text()
                       for pid in pids)

        def stopped():
            found = []
            wait_until(lambda: found or found.extend(
                re.findall(r"^(\d+) .*stopped by SIGSTOP", pathlib.Path(log.name).read_text(), re.M)),
                30, f"somebody calls {call}()")
            return int(found[0])

        try:
            wait_until(traced, 30, "they are traced")
            yield stopped
        finally:
            # Not in its own way: it would wait for who waits for the one that it has stopped (vfork(2)).
            strace.kill()
            strace.wait()


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def firewall():
    """The rules, without what is counted and whose they are."""
    return re.sub(r"#.*|packets \d+ bytes \d+", "", sh("nft list chain inet harpe_gov output"))


def assert_clean_after(process, report, rules):
    expect_equal(firewall(), rules, "while the governor is away")
    r = Result(process, report)
    expect_equal((r.status, r.report["ended"]), (125, "governor-lost"), r)
    wait_ready()
    expect_equal(firewall(), rules, "when it is back")
    r = run("--", "id", "-u")
    expect(r.status == 0 and int(r.stdout) in POOL, r)


def the_daemon(_):
    return daemon_pid()


def who_stopped(pid):
    return pid


def kill_at(point, victim):
    """SIGKILL of whom victim(the stopped process) says, while the run stands at the point."""
    wait_until(lambda: not supervisors(), 5, "no earlier supervisor")
    rules = firewall()
    with agent_directory() as d:
        with stopping_after(point) as stopped:
            p = start_run("--report", d + "/r.json", "--", "true", cwd=d)
            pid = stopped()
        doomed = victim(pid)
        expect(doomed > 1, doomed)  # the daemon may have ended by itself
        os.kill(doomed, signal.SIGKILL)  # when nobody traces it any more
        wait_until(lambda: not pool_processes() and not scopes(), GONE, "the guest is gone")
        assert_clean_after(p, d + "/r.json", rules)


def test_daemon_at_the_lease():
    """The daemon dies with a uid leased and no scope around it yet."""
    kill_at(LEASED, the_daemon)


def test_daemon_at_the_scope():
    """It dies when the scope is there and the guest is not."""
    kill_at(SCOPE_STARTED, the_daemon)


def test_daemon_during_set_up():
    """It dies under a guest that has not been released."""
    kill_at(BEING_SET_UP, the_daemon)


def test_daemon_at_clean_up():
    """It dies when the guest has ended and the scope is still there."""
    kill_at(CLEANING_UP, the_daemon)


def test_supervisor_at_the_scope():
    """The supervisor dies when the scope is there and the guest is not."""
    kill_at(SCOPE_STARTED, who_stopped)


def test_supervisor_during_set_up():
    """It dies under a guest that has not been released."""
    kill_at(BEING_SET_UP, parent)


def test_supervisor_at_clean_up():
    """It dies when the guest has ended and nothing is told yet."""
    kill_at(CLEANING_UP, who_stopped)
