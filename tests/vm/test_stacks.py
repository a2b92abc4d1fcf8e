# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of scripts/stacks, called as Harpe calls them; limits are read from cgroupfs."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tarfile

from lib import (GUESTS, POOL, SRC, Result, agent_directory, as_agent, configured, expect,
                 expect_equal, run, sh, wait_ready, wait_until)
from test_audit import audit

STACKS = pathlib.Path("/usr/share/harpe-gov/stacks")
MIB = 1 << 20
NESTED = "[access]\nprofiles = isolated nested\n[profile nested]\nuser-namespaces = yes\n"
LIMITS = {"memory.max": f"{512 * MIB}\n", "memory.swap.max": "0\n", "cpu.max": "100000 100000\n"}
DROP = "/harpe.slice/harpe-drop.slice/"


def calculate(script, start=as_agent):
    """One calculation, by the driver that calls run.sh as Harpe does."""
    p = start(["python3", SRC / "tests/vm/harpe_driver.py", script, GUESTS / "calculate.py",
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
def holding(script, start=as_agent, end=lambda: None):
    """The program of a run that lasts; its pid."""
    with agent_directory() as directory:
        program = f"{directory}/out.py"
        shutil.copyfile(GUESTS / "hold.py", program)
        log = pathlib.Path(directory, "audit.jsonl")
        log.touch()
        log.chmod(0o666)
        for path in program, log:
            shutil.chown(path, "agent", "agent")
        p = start([script, program], cwd=directory, env={"HARPE_AUDIT_LOG": str(log)})
        try:
            expect_equal(p.stdout.readline(), b"332833500\n", script)
            (pid,) = pythons(program)
            yield pid
        finally:
            end()
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
    """Inside of a guest whose profile allows user namespaces, and of no other. From 0.12 on it needs
    openat2(2), which guests have not."""
    version = sh("bwrap --version").split()[1].split(".")
    with configured(NESTED):
        if (int(version[0]), int(version[1])) >= (0, 12):
            r = run("--net", "nested", "--", "bwrap", "--ro-bind", "/", "/", "true")
            expect_equal((r.status, b"Function not implemented" in r.stderr), (1, True), r)
        else:
            expect_equal(assert_guest(STACKS / "bwrap/run.sh"), network_of(1))
            expect(assert_guest(STACKS / "bwrap-unshare-net/run.sh") != network_of(1))
    r = run("--", "bwrap", "--ro-bind", "/", "/", "true")
    expect(r.status not in (0, 125), r)
    expect(b"namespace" in r.stderr, r)


def test_setpriv():
    """Landlock by setpriv, where it can do that."""
    recipe = STACKS / "setpriv-landlock/run.sh"
    if "landlock" in sh("setpriv --help"):
        assert_guest(recipe)
        return
    with agent_directory() as directory:
        for name in "out.py", "audit.jsonl":
            pathlib.Path(directory, name).touch()
            shutil.chown(f"{directory}/{name}", "agent", "agent")
        r = Result(as_agent([recipe, f"{directory}/out.py"], cwd=directory))
    expect(r.status != 0 and r.stdout == b"" and b"landlock" in r.stderr, r)


# ---- containers ----


def image():
    """A tar file with a root whose programs are this host's, once /usr is mounted in it."""
    path = "/root/image.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    return path


def with_options(name, command, *options):
    """A copy of the recipe with more options behind its command."""
    script = pathlib.Path(f"/root/{name}-run.sh")
    text = (STACKS / name / "run.sh").read_text()
    expect(command in text, text)
    script.write_text(text.replace(command, " ".join([command, *options])))
    script.chmod(0o755)
    return script


HOSTS_USR = ("--volume", "/usr:/usr:ro")


def as_root(command, cwd="/", env=None, **_):
    return subprocess.Popen(command, cwd=cwd, env={"PATH": os.environ["PATH"], **(env or {})},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def assert_stranger(script, end):
    """A container in our slice: limited, shown by the audit, and in nobody's way."""
    calculate(script, as_root)
    with holding(script, as_root, end) as pid:
        group = group_of(pid)
        expect(group.startswith(DROP), group)
        assert_limited(group, group)
        check = audit()["HG-RUN-003"]
        expect_equal(check["result"], "FAIL", check)
        expect(any(f"process {pid} " in f and group in f for f in check["found"]), check)
        sh("systemctl restart harpe-gov.service")
        wait_ready()
        expect_equal(group_of(pid), group, "a restart of ours is not for it")
        expect_equal(run("--net", "drop", "--", "true").status, 0)
    expect(audit()["HG-RUN-003"]["result"] == "PASS")


SEND = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', %d))"


def assert_silent(command):
    """With the host's network: what it sends goes nowhere."""
    with contextlib.closing(socket.socket(type=socket.SOCK_DGRAM)) as far:
        far.bind(("127.0.0.1", 0))
        far.settimeout(2)
        p = subprocess.run([*command, "python3", "-c", SEND % far.getsockname()[1]],
                           capture_output=True, check=False, timeout=120)
        expect(b"PermissionError" in p.stderr, p)
        with contextlib.suppress(TimeoutError):
            expect(False, "arrived", far.recv(10))


def test_podman():
    """A container of root's, in our slice."""
    sh(["podman", "import", image(), "docker.io/library/python:3.12-slim"])
    assert_stranger(with_options("podman", "run --rm", *HOSTS_USR),
                    lambda: sh("podman kill --all; podman rm --all -f"))
    assert_silent(["podman", "--cgroup-manager", "systemd", "run", "--rm", *HOSTS_USR,
                   "--cgroup-parent", "harpe-drop.slice", "--network", "host",
                   "docker.io/library/python:3.12-slim"])


@contextlib.contextmanager
def docker():
    pathlib.Path("/run/docker.sock").unlink(missing_ok=True)  # docker.socket's, of another test
    with open("/out/dockerd.txt", "w", encoding="utf-8") as log:
        daemon = subprocess.Popen(["dockerd", "--iptables=false", "--ip6tables=false",
                                   "--bridge=none"], stdout=log, stderr=log)
    try:
        wait_until(lambda: os.path.exists("/run/docker.sock"), 120, "dockerd listens")
        sh("docker info")  # which waits until it answers
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


def test_docker():
    """A container of Docker's, in our slice. This machine has AppArmor without its tools."""
    options = ("--security-opt", "apparmor=unconfined", *HOSTS_USR)
    with docker():
        sh(["docker", "import", image(), "python:3.12-slim"])
        assert_stranger(with_options("docker", "docker run --rm", *options),
                        lambda: sh("docker kill $(docker ps -q)"))
        assert_silent(["docker", "run", "--rm", *options, "--cgroup-parent", "harpe-drop.slice",
                       "--network", "host", "python:3.12-slim"])
