# SPDX-License-Identifier: GPL-2.0-or-later
r"""Many runs: in a row, at once, of all kinds at random, with whoever dies in between. Afterwards
nothing is left and nothing has grown.

HARPE_SOAK_SECONDS (35): how long the random mix goes on; HARPE_SOAK_SEED (1): what it draws from;
HARPE_SOAK_RUNS (100): in a row; HARPE_SOAK_AT_ONCE (24): at once. Before a release:
    scripts/vm run -- env HARPE_SOAK_SECONDS=300 HARPE_SOAK_RUNS=500 HARPE_SOAK_AT_ONCE=64 \
        /src/tests/vm/run soak"""
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import threading
import time

from lib import (POOL, Result, agent_directory, as_agent, assert_nothing_left, configured, daemon_pid,
                 dying_cgroups, expect, expect_equal, python, run, scopes, sh, start_run,
                 supervisors, wait_ready, wait_until)
from test_survival import daemon_state
from test_systemd import again_and_again
from test_terminal import Terminal

SECONDS = int(os.environ.get("HARPE_SOAK_SECONDS", "35"))
RUNS = int(os.environ.get("HARPE_SOAK_RUNS", "100"))
AT_ONCE = int(os.environ.get("HARPE_SOAK_AT_ONCE", "24"))
SEED = int(os.environ.get("HARPE_SOAK_SEED", "1"))
GROWTH_KIB = 512  # of the daemon, by many at once: heap that malloc does not give back
GROWTH_IN_A_ROW_KIB = 256
DYING = 20  # cgroups that linger because a page of the cache is booked on them


# ---- what must be the same before and after ----


def table():
    """Our table without counters: what it consists of, element by element. Not as JSON, in which nft 1.0.6
    breaks off after the flag of an owned table now and then; and without the remark behind its name, which
    is gone with the daemon that made the owning socket."""
    return re.sub("#.*", "", sh("nft -s list table inet harpe_gov"))


def mounts():
    """Where file systems are mounted, as PID 1 and the daemon see it."""
    return [sorted(line.split()[4] for line in open(f"/proc/{pid}/mountinfo"))
            for pid in (1, daemon_pid())]


def objects():
    """System V objects and named ones: guests have their own."""
    return [pathlib.Path(f"/proc/sysvipc/{kind}").read_text() for kind in ("shm", "sem", "msg")] + \
        [sorted(os.listdir("/dev/shm")), sorted(os.listdir("/dev/mqueue"))]


@contextlib.contextmanager
def nothing_left_or_grown(what, growth=GROWTH_KIB):
    """Compares after what is inside with before, once the first run has filled the caches."""
    run("--", "true")
    wait_until(lambda: not supervisors(), 5, "no supervisor")
    rss, fds = daemon_state()
    pid, dying = daemon_pid(), dying_cgroups()
    before = table(), mounts(), objects()
    yield
    assert_nothing_left(15)
    expect_equal(daemon_pid(), pid, "it is still the same daemon")
    rss_after, fds_after = daemon_state()
    expect_equal(fds_after, fds, "descriptors of the daemon")
    expect(rss_after <= rss + growth, f"the daemon grew from {rss} to {rss_after} KiB")
    expect_equal((table(), mounts(), objects()), before, "table, mounts, objects")
    wait_until(lambda: dying_cgroups() < dying + DYING, 30,
               f"cgroups vanish ({dying} were dying before, {dying_cgroups()} are after)")
    print(f"# soak: {what}: daemon {rss} -> {rss_after} KiB, {fds} -> {fds_after} descriptors, "
          f"dying cgroups {dying} -> {dying_cgroups()}", flush=True)


def all_at_once(n):
    """n guests at the same time, each under a uid of its own; the number of uids is n."""
    with agent_directory() as d:
        fifo = d + "/go"
        os.mkfifo(fifo, 0o666)
        os.chmod(fifo, 0o666)
        processes = [start_run("--wait", "60s", "--memory", "16M", "--", "sh", "-c",
                               "id -u; read x <go; exit 7", cwd=d) for _ in range(n)]
        try:
            wait_until(lambda: len(scopes()) == n or any(p.poll() is not None for p in processes), 240,
                       f"{n} guests at once")
        finally:
            fd = os.open(fifo, os.O_RDWR)
            os.write(fd, b"\n" * n)
        results = [Result(p) for p in processes]
        os.close(fd)
    for r in results:
        expect_equal(r.status, 7, r)
    uids = {int(r.stdout) for r in results}
    expect_equal(len(uids), n, uids)
    expect(all(uid in POOL for uid in uids), uids)


# ---- the tests ----


def test_in_a_row():
    """A hundred runs in a row leave nothing."""
    loop = f"i=0; while [ $i -lt {RUNS} ]; do harpe-gov run -- true || exit 1; i=$((i+1)); done"
    with nothing_left_or_grown(f"{RUNS} in a row", GROWTH_IN_A_ROW_KIB), agent_directory() as d:
        r = Result(as_agent(["sh", "-c", loop], cwd=d), timeout=120 + 3 * RUNS)
        expect_equal(r.status, 0, r)


def test_at_once():
    """Many at once from a pool of as many: each has a uid of its own."""
    with configured(f"[pool]\ncount = {AT_ONCE}\n", "restart"), \
            nothing_left_or_grown(f"{AT_ONCE} at once"):
        all_at_once(AT_ONCE)


# Kinds of the mix: options and command, how it ends, the exit status.
KINDS = {
    "ok": (["--", "true"], "exited", 0),
    "code": (["--", "sh", "-c", "exit 77"], "exited", 77),
    "signal": (["--", "sh", "-c", "kill -ABRT $$"], "signaled", -signal.SIGABRT),
    "missing": (["--", "no-such-command"], "setup-failed", 127),
    "memory": (["--memory", "32M", "--", *python("memory.py")], "memory", 124),
    "forks": (["--pids", "16", "--", *python("forkbomb.py")], "exited", 0),
    "time": (["--time", "1s", "--", *python("stubborn.py")], "wall-clock", 124),
    "cpu-time": (["--cpu-time", "1s", "--time", "60s", "--", *python("spin_tree.py")], "cpu-time",
                 124),
    "daemonised": (["--", *python("daemonise.py")], "exited", 0),
    "files": (["--", "sh", "-c", "head -c 4M /dev/zero >/tmp/f; cp /tmp/f /dev/shm/f"], "exited", 0),
    "too much": (["--memory", "1000G", "--", "true"], "setup-failed", 125),
}
SLEEP = ["--", "sleep", "600"]


def ends(draw, kind):
    args, ended, status = KINDS[kind]
    r = run("--wait", "60s", *args)
    expect_equal((r.status, r.report["ended"]), (status, ended), kind, r)


def signalled(draw, kind):
    """The caller signals the client, at any time: it is the guest's signal."""
    with agent_directory() as d:
        p = start_run("--wait", "60s", "--report", d + "/r.json", *SLEEP, cwd=d)
        time.sleep(draw.uniform(0.5, 2))
        p.send_signal(signal.SIGTERM)
        r = Result(p, d + "/r.json")
    expect_equal(r.status, -signal.SIGTERM, r)
    expect(r.report is None or r.report["ended"] == "signaled", "None: it had hardly begun", r)


def caller_dies(draw, kind):
    p = start_run("--wait", "60s", *SLEEP, cwd="/")
    time.sleep(draw.uniform(0, 2))
    p.kill()
    p.communicate()


def operator(draw, kind):
    name = f"n{draw.getrandbits(40)}"
    with agent_directory() as d:
        p = start_run("--wait", "60s", "--name", name, "--report", d + "/r.json", *SLEEP, cwd=d)
        while not Result(as_agent(["harpe-gov", "kill", name])).status == 0 and p.poll() is None:
            time.sleep(0.1)
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (-signal.SIGKILL, "killed"), r)


def stops_and_goes_on(draw, kind):
    with agent_directory() as d:
        p = start_run("--wait", "60s", "--time", "3s", "--report", d + "/r.json", *SLEEP, cwd=d)
        for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGTSTP, signal.SIGCONT):
            time.sleep(draw.uniform(0, 1))
            p.send_signal(number)
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)


def on_terminal(draw, kind):
    with Terminal(["harpe-gov", "run", "--wait", "60s", "--", "sh", "-c", "tty; exit 3"],
                  cwd="/") as t:
        t.expect(b"/dev/pts/")
        expect_equal(t.wait_end(), 3)


OTHERS = (signalled, caller_dies, operator, stops_and_goes_on, on_terminal)


def soak(draw, until, done, failures):
    choices = [(ends, kind) for kind in KINDS] + [(f, f.__name__) for f in OTHERS]
    while time.monotonic() < until and not failures:
        function, kind = draw.choice(choices)
        try:
            function(draw, kind)
            done[kind] += 1
        except Exception as error:  # noqa: BLE001: a failure of any kind ends the soak
            failures.append(f"{kind}: {error}")


def test_mix():
    """Runs of all kinds at random, four at a time, with daemon-reload beside."""
    done, failures = collections.Counter(), []
    with configured("[pool]\ncount = 16\n", "restart"), nothing_left_or_grown("the mix"):
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=soak, args=(random.Random(SEED * 1000 + i), until, done,
                                                       failures)) for i in range(4)]
        with again_and_again(["systemctl", "daemon-reload"], 2):
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        print(f"# soak: seed {SEED}, {SECONDS} s, {sum(done.values())} runs: {dict(done)}", flush=True)
        expect(not failures, *failures)
        assert_nothing_left(15)
        all_at_once(16)


# ---- uids ----


def process(pid):
    """What a process with a uid of the pool is: its start time tells it from a later one of the
    number."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        uid = int(status.split("\nUid:", 1)[1].split(None, 1)[0])
        if uid not in POOL:
            return None
        cgroup = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        start = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None
    return uid, cgroup, start


def shared_uids():
    """Pairs of live processes that have a uid of the pool in common but not the scope."""
    first, pairs = {}, []
    for name in os.listdir("/proc"):
        p = process(name) if name.isdigit() else None
        if not p:
            continue
        other = first.setdefault(p[0], (name, p))
        if other[1][1].split("/guest")[0] != p[1].split("/guest")[0]:
            pairs.append((other, (name, p)))
    return [pair for pair in pairs if all(process(pid) == p for pid, p in pair)]


def kill_some(draw, clients, count):
    """SIGKILL for a client or a supervisor, now and then."""
    for _ in range(count):
        time.sleep(draw.uniform(0.1, 0.6))
        if draw.random() < 0.5 and (victims := supervisors()):
            with contextlib.suppress(OSError):
                os.kill(draw.choice(victims), signal.SIGKILL)
        else:
            draw.choice(clients).kill()


def test_uids():
    """A pool of 4 and 12 runs at once, clients and supervisors killed at random: never two guests on
    one uid, and all four come back."""
    draw, shared, stop = random.Random(SEED), [], threading.Event()
    looks = 0

    def watch():
        nonlocal looks
        while not stop.is_set():
            shared.extend(shared_uids())
            looks += 1

    answers = collections.Counter()
    with configured("[pool]\ncount = 4\n", "restart"), nothing_left_or_grown("uids"):
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in range(3):
                clients = [start_run(*(["--wait", "60s"] if i % 3 else []), "--", "sh", "-c",
                                     "id -u; sleep 1", cwd="/") for i in range(12)]
                kill_some(draw, clients, 8)
                for r in [Result(p) for p in clients]:
                    expect(r.status in (0, -signal.SIGKILL) or
                           r.status == 125 and r.stderr.count(b"\n") == 1, r)
                    expect(not r.stdout or int(r.stdout) in POOL[:4], r)
                    answers[r.status, r.stderr.decode()[:60]] += 1
        finally:
            stop.set()
            watcher.join()
        expect_equal(shared, [], "two guests on one uid")
        assert_nothing_left(15)
        all_at_once(4)
    print(f"# soak: {looks} looks at /proc; {dict(answers)}", flush=True)


def test_daemon_killed_any_time():
    """SIGKILL to the daemon at any moment of starts and ends: each run ends with an answer, and the
    next daemon finds nothing of the last."""
    draw = random.Random(SEED)
    before = table(), mounts(), objects()
    for _ in range(5):
        wait_ready()
        with agent_directory() as d:
            processes = [start_run("--report", f"{d}/{i}", "--", "sh", "-c", "sleep 0.3; exit 7",
                                   cwd=d) for i in range(3)]
            time.sleep(draw.uniform(0, 1.5))
            os.kill(daemon_pid(), signal.SIGKILL)
            results = [Result(p, f"{d}/{i}") for i, p in enumerate(processes)]
        expect(table() == before[0], "the table stays")
        for r in results:
            expect((r.status, r.report["ended"]) in ((7, "exited"), (125, "governor-lost"),
                                                     (125, "setup-failed")), r)
    wait_ready()
    assert_nothing_left(15)
    expect_equal((table(), mounts(), objects()), before)
    expect_equal(run("--", "true").status, 0)
