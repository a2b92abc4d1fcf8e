# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers that are no single run's: throughput, memory, wake-ups, commits."""
import pathlib
import select
import socket
import struct
import subprocess
import time

from peers import groups_of, guest, keep_warm, quiet

GUESTS = 40
BATCH = 10
JOBS = 8


def daemon_pid():
    return int(quiet("systemctl", "show", "-P", "MainPID", "harpe-gov.service"))


# ---- throughput ----


def crowd(stopwatch, row, seconds):
    """Runs per second, JOBS at once."""
    out = subprocess.run([stopwatch, "crowd", str(JOBS), str(seconds)], input=row.line(),
                         check=True, capture_output=True, text=True).stdout
    ended, failed, nanoseconds = map(int, out.split())
    if failed:
        raise RuntimeError(f"{row.name}: {failed} of {ended} failed with {JOBS} at once")
    return ended / (nanoseconds / 1e9)


def throughput(stopwatch, rows, seconds, turns=2):
    named = {row.name: row for row in rows}
    names = [n for n in ("harpe-gov", "systemd-run-scope", "bwrap") if n in named]
    per_second = dict.fromkeys(names, 0.0)
    for _ in range(turns):
        for name in names:
            per_second[name] += crowd(stopwatch, named[name], seconds) / turns
            time.sleep(2)
    figures = {f"throughput_{n}_per_s": round(v, 2) for n, v in per_second.items()}
    for name in names[1:]:
        figures[f"throughput_to_{name}"] = round(per_second["harpe-gov"] / per_second[name], 2)
    return figures


def recycled(stopwatch, rows, throughput_of_others, seconds):
    """The same with as many slots as there are jobs, whose scopes serve one guest after the other."""
    row = next(r for r in rows if r.name == "harpe-gov")
    keep_warm(JOBS, "yes")
    per_second = crowd(stopwatch, row, 2 * seconds)
    figures = {"throughput_recycle_per_s": round(per_second, 2)}
    for name in ("systemd-run-scope", "bwrap"):
        others = throughput_of_others.get(f"throughput_{name}_per_s")
        if others:
            figures[f"throughput_recycle_to_{name}"] = round(per_second / others, 2)
    return figures


# ---- memory ----


def memory_kib(pid, *fields):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines()
               if line.split(":")[0] in fields)


def private_kib(pid):
    """What nobody shares with the process."""
    return memory_kib(pid, "Private_Clean", "Private_Dirty")


def own_kib(pid):
    """What is its own, with what those that it forks for slots still share: the daemon's growth."""
    return memory_kib(pid, "Anonymous")


def cgroup_of(pid):
    """Nothing when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def supervisors(daemon):
    """With the one that waits for a connection."""
    children = pathlib.Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    return [pid for pid in children if cgroup_of(pid).endswith("harpe-gov.service\n")]


def start_sleepers(n, *options):
    row = guest("sleeper", *options)
    argv = row.argv[:-1] + ["/bin/sh", "-c", "echo; exec sleep 100000"]
    return [subprocess.Popen(argv, user=row.user, extra_groups=groups_of(row.user), cwd="/",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL) for _ in range(n)]


def wait_for_word(sleeper, seconds=120):
    """Says the guest itself: to ask the daemon would cost the machine what others are to have."""
    if not select.select([sleeper.stdout], [], [], seconds)[0] or not sleeper.stdout.read(1):
        raise RuntimeError("a sleeper does not start")
    sleeper.stdout.close()


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.2)


def fill(sleepers, n, *options):
    """A batch at a time, each when the one before runs."""
    while len(sleepers) < n:
        batch = start_sleepers(min(BATCH, n - len(sleepers)), *options)
        sleepers += batch
        for sleeper in batch:
            wait_for_word(sleeper)


def end_sleepers(sleepers):
    quiet("harpe-gov", "kill", "--all")
    for process in sleepers:
        process.wait()


def memory():
    daemon = daemon_pid()
    idle = own_kib(daemon)
    sleepers = []
    try:
        fill(sleepers, GUESTS)
        time.sleep(1)
        each = [private_kib(pid) for pid in supervisors(daemon)]
        after = own_kib(daemon)
    finally:
        end_sleepers(sleepers)
    return {"daemon_idle_private_kib": idle,
            "daemon_private_kib_per_guest": round((after - idle) / GUESTS, 1),
            "supervisor_private_kib_max": max(each),
            "supervisor_private_kib_mean": round(sum(each) / len(each), 1)}


# ---- wake-ups ----


def switches(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    raise RuntimeError("no voluntary_ctxt_switches")


def wake_ups(seconds):
    """Of a daemon without guests; the watchdog alone has one each 15 to 22 s."""
    daemon = daemon_pid()
    before = switches(daemon)
    time.sleep(seconds)
    return {f"daemon_wake_ups_in_{seconds}_s": switches(daemon) - before}


# ---- commits to the ruleset ----

NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN, NFT_MSG_GETGEN = 10, 15, 16
NETLINK_NETFILTER, NLM_F_REQUEST = 12, 1


def generation():
    """The number of the last commit (NFTA_GEN_ID)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as s:
        s.bind((0, 0))
        s.send(struct.pack("=IHHIIBBH", 20, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN,
                           NLM_F_REQUEST, 1, 0, 0, 0, 0))
        answer = s.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN:
        raise RuntimeError("the kernel does not say its ruleset's generation")
    return struct.unpack_from(">I", answer, 24)[0]


def commits(runs=10):
    row = guest("commits")
    before = generation()
    for _ in range(runs):
        quiet(*row.argv, user=row.user, extra_groups=groups_of(row.user))
    return {"nft_commits_per_run": (generation() - before) / runs}


# ---- what it costs everybody else ----


def udp_cost(path):
    """What the program udp_cost said before the machine was started: "NAME VALUE" in each line."""
    if not path.is_file():
        raise RuntimeError("udp_cost, which needs root and nft on the host")
    lines = path.read_text().splitlines()
    return {f"udp_{name}": float(value) for name, value in (line.split() for line in lines)
            if not name.endswith(("_p10", "_p90"))}
