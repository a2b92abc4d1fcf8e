# SPDX-License-Identifier: GPL-2.0-or-later
"""A thousand guests alive: does the last one start as the first did? Needs a machine of 4 GiB."""
import contextlib
import pathlib
import subprocess
import time

from figures import daemon_pid, end_sleepers, fill, own_kib, wait_for
from peers import guest, quiet
from table import percentile

DROP_IN = pathlib.Path("/etc/harpe-gov/harpe-gov.conf.d/50-bench.conf")
OPTIONS = ["--memory", "16M", "--time", "1d"]
REPORTED = 250
RUNS = 20


def start_p50(stopwatch):
    row = guest("start", *OPTIONS)
    out = subprocess.run([stopwatch, "rounds", str(RUNS), "300"], input=row.line(), check=True,
                         capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    if any(status != "0" for _, _, status in lines):
        raise RuntimeError(f"runs fail: {out}")
    return percentile([int(nanoseconds) / 1e6 for _, nanoseconds, _ in lines], 50)


@contextlib.contextmanager
def room_for(n):
    DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    DROP_IN.write_text(f"[pool]\ncount = {n + 100}\n"
                       f"[access]\nmax-guests = {n + 100}\nmax-connections = {n + 200}\n")
    quiet("systemctl", "restart", "harpe-gov.service")
    time.sleep(5)
    yield
    DROP_IN.unlink()


def memory_available_mib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def scopes():
    slices = pathlib.Path("/sys/fs/cgroup/harpe.slice").glob("*.slice/harpe-*.scope")
    return [s for s in slices if "harpe-pin-" not in s.name]


def fill_and_say(n, sleepers, say):
    for some in range(REPORTED, n + REPORTED, REPORTED):
        fill(sleepers, min(some, n), *OPTIONS)
        say(f"{len(sleepers)} guests, {memory_available_mib()} MiB available")


def took(action):
    begin = time.monotonic()
    action()
    return round(time.monotonic() - begin, 2)


def end_all(sleepers):
    end_sleepers(sleepers)
    wait_for(lambda: not scopes(), 300, "no scope is left")


def measure(n, stopwatch, say):
    sleepers = []
    with room_for(n):
        first, before = start_p50(stopwatch), own_kib(daemon_pid())
        try:
            seconds = took(lambda: fill_and_say(n, sleepers, say))
            last, after = start_p50(stopwatch), own_kib(daemon_pid())
            ps = took(lambda: quiet("harpe-gov", "ps"))
        finally:
            kill = took(lambda: end_all(sleepers))
    return {"many_guests": len(sleepers), "many_first_p50_ms": round(first, 1),
            "many_last_p50_ms": round(last, 1), "many_last_to_first": round(last / first, 3),
            "many_fill_s": seconds, "many_ps_s": ps, "many_kill_all_s": kill,
            "many_daemon_kib_per_guest": round((after - before) / n, 1)}
