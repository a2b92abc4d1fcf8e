# SPDX-License-Identifier: GPL-2.0-or-later
"""A thousand guests alive: does the last one start as the first did? Needs a machine of 4 GiB."""
import contextlib
import os
import pathlib
import subprocess
import time

from figures import daemon_pid, fill, own_kib, private_kib, supervisors, wait_for
from peers import Missing, guest, quiet
from table import percentile

DROP_IN = pathlib.Path("/etc/harpe-gov/harpe-gov.conf.d/50-bench.conf")
OPTIONS = ["--memory", "16M", "--time", "1d"]
REPORTED = 250
RUNS = 20


def cpu_ms(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def start_p50(stopwatch):
    row = guest("start", *OPTIONS)
    out = subprocess.run([stopwatch, "rounds", str(RUNS), "300"], input=row.line(), check=True,
                         capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    if any(status != "0" for _, _, status in lines):
        raise RuntimeError(f"runs fail: {out}")
    return percentile([int(nanoseconds) / 1e6 for _, nanoseconds, _ in lines], 50)


def starts(stopwatch, when):
    """With what a run costs those who serve all of them."""
    served = {"init": 1, "daemon": daemon_pid()}
    before = {name: cpu_ms(pid) for name, pid in served.items()}
    found = {f"many_{when}_p50_ms": round(start_p50(stopwatch), 1)}
    for name, pid in served.items():
        found[f"many_{when}_{name}_cpu_ms"] = round((cpu_ms(pid) - before[name]) / RUNS, 1)
    return found


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
    top = pathlib.Path("/sys/fs/cgroup/harpe.slice")
    return [scope for where in ("*.slice", "*.slice/*.slice") for scope in top.glob(f"{where}/harpe-*.scope")
            if "harpe-pin-" not in scope.name]


def took(action):
    begin = time.monotonic()
    action()
    return round(time.monotonic() - begin, 2)


def ps_seconds():
    return min(took(lambda: quiet("harpe-gov", "ps")) for _ in range(3))


def fill_and_say(n, sleepers, stopwatch, say):
    for some in range(REPORTED, n, REPORTED):
        seconds = took(lambda: fill(sleepers, some, *OPTIONS))
        say(f"{some} guests, the last {REPORTED} within {seconds} s, {memory_available_mib()} MiB "
            f"available, start p50 {start_p50(stopwatch):.1f} ms, ps {ps_seconds()} s")
    fill(sleepers, n, *OPTIONS)


def memory(n, daemon, before):
    each = [private_kib(pid) for pid in supervisors(daemon)]
    return {"many_daemon_kib_per_guest": round((own_kib(daemon) - before) / n, 1),
            "many_supervisor_private_kib_max": max(each),
            "many_supervisor_private_kib_mean": round(sum(each) / len(each), 1),
            "many_available_mib": memory_available_mib()}


def end_all(sleepers, idle):
    """However long it takes; @idle: the scopes that there were before, which are warm slots."""
    with contextlib.suppress(Missing):
        quiet("harpe-gov", "kill", "--all")
    for sleeper in sleepers:
        sleeper.wait()
    wait_for(lambda: len(scopes()) <= idle, 300, "no scope is left")


def measure(n, stopwatch, say):
    sleepers = []
    with room_for(n):
        daemon, idle = daemon_pid(), len(scopes())
        found, before = starts(stopwatch, "first"), own_kib(daemon)
        try:
            found["many_fill_s"] = took(lambda: fill_and_say(n, sleepers, stopwatch, say))
            found.update(starts(stopwatch, "last"))
            time.sleep(1)  # the last of them ends
            found.update(memory(n, daemon, before))
            found["many_ps_s"] = ps_seconds()
        finally:
            found["many_kill_all_s"] = took(lambda: end_all(sleepers, idle))
    found["many_guests"] = len(sleepers)
    found["many_last_to_first"] = round(found["many_last_p50_ms"] / found["many_first_p50_ms"], 3)
    return found
