# SPDX-License-Identifier: GPL-2.0-or-later
"""Looking at live guests and ending them: ps, show, kill."""
import contextlib
import json
import os
import subprocess

from lib import (SLICE, Result, agent_directory, as_agent, expect, expect_equal, pool_processes, ps,
                 run, scopes, start_run, wait_running)


def gov(*args):
    """harpe-gov as agent."""
    return Result(as_agent(["harpe-gov", *args]))


def root_gov(*args):
    return subprocess.run(["harpe-gov", *args], capture_output=True, text=True, timeout=60, check=False)


@contextlib.contextmanager
def guest(*args, start=start_run):
    """A guest called look, until it ends."""
    with agent_directory() as d:
        p = start("--name", "look", *args, cwd=d)
        try:
            yield wait_running("look") if start is start_run else p
        finally:
            root_gov("kill", "look")
            Result(p)


def test_show():
    """show says what the kernel says, smaller limits of the slices above included."""
    subprocess.run(["systemctl", "set-property", "--runtime", SLICE.name, "MemoryMax=300M"],
                   check=True)
    try:
        with guest("--memory", "400M", "--cpu", "50%", "--", "sh", "-c",
                   "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 60") as row:
            shown = json.loads(gov("show", "--json", "look").stdout)
            expect_equal((shown["schema"], len(shown["guests"])), (1, 1), shown)
            g = shown["guests"][0]
            expect_equal((g["id"], g["main_pid"], g["state"], g["profile"], g["scope"], g["cgroup"]),
                         (row["id"], row["main_pid"], "running", "isolated", f"harpe-{row['id']}.scope",
                          str(SLICE / f"harpe-{row['id']}.scope")), g)
            inside = open(f"/proc/{g['main_pid']}/cgroup").read().strip()
            expect_equal("/sys/fs/cgroup" + inside[3:], g["cgroup"] + "/guest")
            expect_equal((g["limits"]["memory_bytes"], g["limits"]["cpu_usec_per_sec"],
                          g["limits"]["pids"], g["limits"]["cpu_time_usec"]),
                         (300 << 20, 500000, 128, "max"), g)
            expect(1 <= g["pids"] <= 2 and g["cpu_usec"] > 0, g)
            peak = g["memory_peak_bytes"]  # Linux 5.19
            expect(0 < g["memory_bytes"] <= peak < 300 << 20, g)
            text = gov("show", row["id"]).stdout.decode()
            for words in (f"scope      {g['scope']}\n", "caller     agent (1000)\n",
                          "memory     300M"):
                expect(words in text, words, text)
            expect_equal(root_gov("show", "look").returncode, 0)
    finally:
        subprocess.run(["systemctl", "set-property", "--runtime", SLICE.name, "MemoryMax=infinity"], check=True)


def root_run(*args, cwd):
    return subprocess.Popen(["harpe-gov", "run", *args], cwd="/", stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_foreign():
    """A guest of somebody else's is as unknown as one that never was."""
    with guest("--", "sleep", "60", start=root_run):
        while not any(r["state"] == "running" for r in json.loads(root_gov("ps", "--json").stdout)["guests"]):
            pass
        ident = json.loads(root_gov("ps", "--json").stdout)["guests"][0]["id"]
        expect_equal(ps(), [])
        for verb in ("show", "kill"):
            for name in ("look", ident, "nosuch"):
                r = gov(verb, name)
                expect_equal((r.status, r.stdout, r.stderr),
                             (1, b"", f"harpe-gov: there is no guest \"{name}\"\n".encode()), r)
        expect_equal(root_gov("show", ident).returncode, 0)


def test_kill_means_gone():
    """When kill returns, nothing of the guest is left, and its name is free."""
    for _ in range(3):
        with agent_directory() as d:
            p = start_run("--name", "look", "--", "sh", "-c", "trap '' TERM; sleep 60 & wait", cwd=d)
            row = wait_running("look")
            r = gov("kill", "look")
            left = (pool_processes(), scopes(), ps(), os.path.exists(f"/proc/{row['main_pid']}"))
            expect_equal((r.status, r.stderr), (0, b""), r)
            expect_equal(left, ([], [], [], False))
            expect_equal(gov("show", "look").status, 1)
            expect_equal(Result(p).status, -9)
    r = gov("kill", "--no-wait", "--all")
    expect_equal((r.status, r.stderr), (0, b""), r)


def test_streams_of_the_kernels():
    """A guest gets no descriptor into the kernel's own file systems."""
    files = ["/proc/self/status", "/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_seqnum",
             "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/security/lsm", "/sys/kernel/tracing/README",
             "/sys/kernel/debug/sleep_time", "/proc/self/ns/net"]
    tried = 0
    for path in files:
        if not os.path.exists(path):
            continue
        with open(path) as stream:
            r = subprocess.run(["harpe-gov", "run", "--", "cat"], stdin=stream, capture_output=True,
                               text=True, cwd="/", timeout=60, check=False)
        expect_equal(r.returncode, 125, path, r)
        expect("standard input is a file of the kernel's" in r.stderr and r.stdout == "", path, r)
        tried += 1
    expect(tried >= 5, tried)
    with open("/sys/fs/cgroup/cgroup.procs", "w") as stream:
        r = subprocess.run(["harpe-gov", "run", "--", "true"], stdout=stream, stderr=subprocess.PIPE,
                           text=True, cwd="/", timeout=60, check=False)
    expect("standard output is a file of the kernel's" in r.stderr, r)
    with agent_directory() as d, open(d + "/plain", "w+") as stream:
        expect_equal(run("--", "true", cwd=d, stdin=stream).status, 0)


def test_file_size_limit():
    """`ulimit -f 0` is a sentence, a larger one the guest's too."""
    def under(blocks, *command):
        return Result(as_agent(["sh", "-c", f"ulimit -f {blocks} && exec \"$@\"", "sh", "harpe-gov",
                                "run", "--", *command], cwd="/"))

    r = under(0, "true")
    expect_equal(r.status, 125, r)
    expect(b"ulimit -f" in r.stderr and r.stderr.count(b"\n") == 1, r)
    r = under(100, "sh", "-c", "ulimit -f")
    expect_equal((r.status, r.stdout), (0, b"100\n"), r)
