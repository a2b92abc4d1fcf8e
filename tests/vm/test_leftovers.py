# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing of a guest's stays: neither for the next one with its uid nor for anybody else."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

from lib import (GUESTS, POOL, Result, agent_directory, configured, expect, expect_equal, sh,
                 start_run)

NAME = "harpe-left"
LEFT = {"process", "shm", "sem", "msg", "mq", "files"}  # what a guest may make
DENIED = {"key", "jobs", "core"}
CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
HELPER = pathlib.Path("/root/core-helper")
CRASHES = pathlib.Path("/root/crashes")
CRASH = ["python3", "-c", "import os; os.abort()"]


def guest(directory, *words, net="isolated"):
    """The only uid's guest; what it says, a dictionary for each word."""
    r = Result(start_run("--net", net, "--wait", "60s", "--report", f"{directory}/report.json", "--",
                         "python3", "leftovers.py", *words, cwd=directory),
               f"{directory}/report.json")
    expect_equal((r.status, r.report["uid"]), (0, POOL[0]), r)
    return [json.loads(line) for line in r.stdout.decode().splitlines()]


def done(said):
    return {kind for kind, how in said.items() if how is True}


@contextlib.contextmanager
def one_uid():
    """A pool of one uid, and a directory in which guests can write."""
    with configured("[pool]\ncount = 1\n", "restart"), agent_directory(0o777) as directory:
        shutil.copy(GUESTS / "leftovers.py", directory)
        yield directory


@contextlib.contextmanager
def core_pattern(text):
    before = CORE_PATTERN.read_text()
    CORE_PATTERN.write_text(text)
    try:
        yield
    finally:
        CORE_PATTERN.write_text(before)


def owned_by_pool(top):
    found = []
    for directory, names, files in os.walk(top):
        for name in names + files:
            with contextlib.suppress(OSError):
                if os.lstat(f"{directory}/{name}").st_uid in POOL:
                    found.append(f"{directory}/{name}")
    return found


def assert_clean(directory):
    """Judged from outside."""
    for kind in "shm", "sem", "msg":
        expect_equal(pathlib.Path(f"/proc/sysvipc/{kind}").read_text().count("\n"), 1, kind)
    expect_equal(os.listdir("/dev/mqueue"), [])
    for top in "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/spool", "/var/lib", "/etc":
        expect_equal([p for p in owned_by_pool(top) if not p.startswith(directory)], [])
    expect_equal(sorted(os.listdir(directory)), ["leftovers.py", "report.json"])
    expect(NAME not in pathlib.Path("/proc/net/unix").read_text(), "an abstract socket")
    users = pathlib.Path("/proc/key-users").read_text()
    expect(not any(f"{uid}:" in users.split() for uid in POOL), users)
    expect_equal(subprocess.run(["pgrep", "-f", NAME], capture_output=True, check=False).stdout, b"")


def test_one_of_everything():
    """The second guest of the same uid finds nothing of what the first has left; nor do we."""
    with one_uid() as directory, core_pattern("core.%p"):
        left, found = guest(directory, "leave", "find")
        expect_equal(done(left), LEFT, left)
        expect_equal(done(found), LEFT | {"socket"}, "the control", found)
        for net in "isolated", "drop":
            guest(directory, "leave", net=net)
            assert_clean(directory)
            (found,) = guest(directory, "find", net=net)
            expect_equal(done(found), set(), found)
            expect_equal(set(found), LEFT | DENIED | {"socket"}, found)


def test_core_helper():
    """A helper that takes core dumps, systemd's for one, is not called for guests."""
    HELPER.write_text(f"#!/bin/sh\necho $1 >> {CRASHES}\ncat > /dev/null\n")
    HELPER.chmod(0o700)
    CRASHES.write_text("")
    with one_uid() as directory, core_pattern(f"|{HELPER} %u"):
        for options in {}, {"user": "other"}:  # RLIMIT_CORE 0 is no obstacle
            subprocess.run(["sh", "-c", "ulimit -c 0; exec \"$@\"", "-", *CRASH], check=False,
                           capture_output=True, cwd="/", **options)
        expect_equal(CRASHES.read_text(), "0\n1001\n", "the control")
        (left,) = guest(directory, "leave")
        expect(left["core"] is not True, left)
        r = Result(start_run("--wait", "60s", "--", *CRASH, cwd=directory))
        expect_equal(r.status, -6, r)
        expect_equal(CRASHES.read_text(), "0\n1001\n", "a guest's")
        expect_equal(sh("find / -xdev -name 'core*' -newer /root/crashes -size +100k"), "")
    HELPER.unlink()
    CRASHES.unlink()
