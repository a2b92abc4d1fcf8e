# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that do not want to end, that are too many, and every way to end by oneself."""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import threading
import time

from lib import (Result, agent_directory, as_agent, expect, expect_equal, pool_processes, python,
                 run, scopes, start_run, wait_until)

BOUND = 20  # seconds: far above what an end takes, far below systemd's own patience


def state(pid):
    """The letter of proc(5): R, S, T, t, ..."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return None


def gather(runs):
    """(what, process, report)...: the results by what, each of them ended by the wall clock."""
    results = {}
    for what, process, report in runs:
        r = results[what] = Result(process, report)
        expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), what, r)
        time_over = r.report["wall_usec"] - r.report["limits"]["time_usec"]
        expect(0 <= time_over < BOUND * 1000000, what, r)
    return results


# ---- too many ----


class HostProbe(threading.Thread):
    """How long the host takes for a process, at worst."""

    def __init__(self):
        super().__init__()
        self.worst, self.over = 0, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def run(self):
        while not self.over.wait(0.1):
            begin = time.monotonic()
            subprocess.run("/bin/true", check=True)
            self.worst = max(self.worst, time.monotonic() - begin)


def test_crowds():
    """Processes, threads, orphans without end: held at the limit, the host answers, all go."""
    with agent_directory() as d, HostProbe() as probe:
        runs = [(how, start_run("--pids", "16", "--memory", "64M", "--cpu", "100%", "--time", "10s",
                                "--report", f"{d}/{how}", "--", *python("crowd.py"), how, cwd=d),
                 f"{d}/{how}") for how in ("processes", "threads", "orphans")]
        results = gather(runs)
        expect_equal(pool_processes(), [], "when the runs have returned")
    for how, r in results.items():
        expect_equal(r.report["pids"]["peak"], 16, how, r)
        expect(r.report["pids"]["refused_forks"] >= 1, how, r)
    expect(probe.worst < BOUND / 2, f"the host took {probe.worst} s for /bin/true")
    r = run("--", "echo", "fine")
    expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


# ---- without end ----


def test_stopped():
    """A guest that stops itself and its process group, and one that asks for a tracer who would never
    let it go on, and gets none."""
    with agent_directory() as d:
        runs = [(how, start_run("--time", "10s", "--report", f"{d}/{how}", "--",
                                *python("stopped.py"), how, cwd=d), f"{d}/{how}")
                for how in ("by-itself", "by-its-tracer")]
        wait_until(lambda: [state(pid) for pid in pool_processes()].count("T") == 2, 30,
                   "both are stopped, by nobody else")
        gather(runs)  # so they have not stopped their callers
    expect_equal(pool_processes(), [])


def test_stamps():
    """A daemon under another name that writes a file: it has ended when the run returns."""
    with agent_directory(0o777) as d:
        r = run("--", *python("stamps.py"), cwd=d)
        size = os.path.getsize(d + "/stamps")
        expect_equal(pool_processes(), [])
        expect_equal((r.status, r.report["ended"]), (0, "exited"), r)
        expect(r.report["pids"]["left_at_end"] >= 1, r)
        time.sleep(1)
        expect(size > 0)
        expect_equal(os.path.getsize(d + "/stamps"), size, "somebody writes on")


# ---- by oneself ----

# Signals whose default is not the end (signal(7)).
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
            signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH}
DEADLY = sorted(n for n in signal.valid_signals() - HARMLESS
                if n < signal.SIGRTMIN or n in (signal.SIGRTMIN, signal.SIGRTMAX))


def run_all(commands):
    """The results of many short runs, a few at once."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda command: run("--", *command), commands))


def test_every_signal():
    """Whatever signal it is: the report has its number, and the client dies of the same."""
    commands = [["sh", "-c", f"kill -{int(n)} $$"] for n in DEADLY]
    for n, r in zip(DEADLY, run_all(commands)):
        expect_equal((r.status, r.report["ended"], r.report["signal"], r.report["exit_code"]),
                     (-n, "signaled", int(n), None), n, r)


def test_faults():
    """What ends a Python program: the code or the signal, never the one for the other."""
    cases = (("import sys; sys.exit(-1)", 255, None),
             ("import sys; sys.exit('words')", 1, None),
             ("import os; os._exit(137)", 137, None),
             ("import os; os.abort()", None, signal.SIGABRT),
             ("import ctypes; ctypes.string_at(0)", None, signal.SIGSEGV))
    for (text, code, number), r in zip(cases, run_all([["python3", "-c", c[0]] for c in cases])):
        expect_equal(r.status, -number if number else code, text, r)
        expect_equal((r.report["exit_code"], r.report["signal"]), (code, number), text, r)
        expect_equal((r.report["ended"], r.report["guest_ran"]),
                     ("signaled" if number else "exited", True), text, r)


def test_wrappers():
    """A shell makes an exit code of a signal: inside, it is the guest's; outside, the caller's."""
    abort = "python3 -c 'import os; os.abort()'"
    outside = f"harpe-gov run --report r.json -- {abort}"
    cases = (("exec " + outside, -signal.SIGABRT, None, signal.SIGABRT),
             (outside + "; exit $?", 134, None, signal.SIGABRT),
             (f'harpe-gov run --report r.json -- sh -c "{abort}; exit \\$?"', 134, 134, None))
    for script, status, code, number in cases:
        with agent_directory() as d:
            r = Result(as_agent(["sh", "-c", script], cwd=d), d + "/r.json")
        expect_equal((r.status, r.report["exit_code"], r.report["signal"]), (status, code, number),
                     script, r)


def test_looks_like_a_failed_set_up():
    """A guest that exits as the governor would, with its words: the report knows better."""
    for code, words in ((125, "harpe-gov: set-up failed, nothing ran: no"), (124, "memory limit")):
        r = run("--", "sh", "-c", f"echo '{words}' >&2; exit {code}")
        expect_equal((r.status, r.report["ended"], r.report["exit_code"], r.report["guest_ran"],
                      r.report["error"]), (code, "exited", code, True, None), r)
    expect_equal(scopes(), [])
