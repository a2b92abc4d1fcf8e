# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of scripts/stacks, called as Harpe calls them; limits are read from cgroupfs."""
import contextlib
import json
import os
import pathlib
import shutil

from lib import (GUESTS, POOL, SRC, Result, Skip, agent_directory, as_agent, configured, expect,
                 expect_equal, run, sh, wait_until)
from test_audit import audit

STACKS = pathlib.Path("/usr/share/harpe-gov/stacks")
MIB = 1 << 20
NESTED = "[access]\nprofiles = isolated nested\n[profile nested]\nuser-namespaces = yes\n"
LIMITS = {"memory.max": f"{512 * MIB}\n", "memory.swap.max": "0\n", "cpu.max": "100000 100000\n"}


def calculate(script):
    """One calculation, by the driver that calls run.sh as Harpe does."""
    p = as_agent(["python3", SRC / "tests/vm/harpe_driver.py", script, GUESTS / "calculate.py",
                  "--timeout", "120"], cwd="/")
    r = Result(p, timeout=300)
    expect_equal(r.status, 0, r)
    (said,) = [json.loads(line) for line in r.stdout.decode().splitlines()]
    expect_equal((said["returncode"], said["stdout"]), (0, "332833500\n"), script, said)


def pythons(word):
    """Pids of the interpreters that run the program of that path."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if word in words and pathlib.Path(os.readlink(path.parent / "exe")).name.startswith(
                    "python3"):
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def holding(script):
    """The program of a run that lasts; its pid."""
    with agent_directory() as directory:
        program = f"{directory}/out.py"
        shutil.copyfile(GUESTS / "hold.py", program)
        log = pathlib.Path(directory, "audit.jsonl")
        log.touch()
        log.chmod(0o666)
        for path in program, log:
            shutil.chown(path, "agent", "agent")
        p = as_agent([script, program], cwd=directory, env={"HARPE_AUDIT_LOG": str(log)})
        try:
            expect_equal(p.stdout.readline(), b"332833500\n", script)
            (pid,) = pythons(program)
            yield pid
        finally:
            p.terminate()
            p.communicate(timeout=60)
            wait_until(lambda: not pythons(program), 30, "the program is gone")


def group_of(pid):
    return pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip().split("::")[1]


def assert_limited(group, pids):
    for name, value in LIMITS.items():
        expect_equal(pathlib.Path(f"/sys/fs/cgroup{group}/{name}").read_text(), value, name, group)
    expect_equal(pathlib.Path(f"/sys/fs/cgroup{pids}/pids.max").read_text(), "64\n", pids)


def network_of(pid):
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def assert_guest(script):
    """It is a guest like any other, whatever it is inside of."""
    calculate(script)
    with holding(script) as pid:
        group = group_of(pid)
        expect(group.startswith("/harpe.slice/harpe-") and group.endswith(".scope/guest"), group)
        assert_limited(os.path.dirname(group), group)
        expect(os.stat(f"/proc/{pid}").st_uid in POOL, pid)
        expect_equal({i: c["found"] for i, c in audit().items() if c["result"] == "FAIL"}, {})
        return network_of(pid)


def test_ulimit():
    """Limits of the shell, below those of the tree."""
    assert_guest(STACKS / "ulimit/run.sh")


def test_private_network():
    """A network namespace of its own, by the profile."""
    expect(assert_guest(STACKS / "netns/run.sh") != network_of(1))


def test_bubblewrap():
    """Inside of a guest whose profile allows user namespaces, and of no other."""
    with configured(NESTED):
        expect_equal(assert_guest(STACKS / "bwrap/run.sh"), network_of(1))
        expect(assert_guest(STACKS / "bwrap-unshare-net/run.sh") != network_of(1))
    r = run("--", "bwrap", "--ro-bind", "/", "/", "true")
    expect(r.status not in (0, 125), r)
    expect(b"namespace" in r.stderr, r)


def test_setpriv():
    """Landlock by setpriv, where it can do that."""
    if "landlock" not in sh("setpriv --help"):
        raise Skip("setpriv without Landlock")
    assert_guest(STACKS / "setpriv-landlock/run.sh")
