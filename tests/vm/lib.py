# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the vm tier share. Facts are read from the kernel and from systemd, never from
what a guest prints."""
import contextlib
import ctypes
import glob
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

SRC = pathlib.Path(__file__).resolve().parents[2]
GUESTS = pathlib.Path("/usr/local/share/harpe-guests")  # a copy where every guest sees it
SHARED = pathlib.Path("/shared")
SLICE = pathlib.Path("/sys/fs/cgroup/harpe.slice/harpe-isolated.slice")
DROP_SLICE = pathlib.Path("/sys/fs/cgroup/harpe.slice/harpe-drop.slice")
RUN_SH = "/usr/share/harpe-gov/run.sh.example"
POOL = range(90000, 90256)
AGENT = pwd.getpwnam("agent")
DROP_IN = pathlib.Path("/etc/harpe-gov/harpe-gov.conf.d/50-test.conf")
WARM_DROP_IN = DROP_IN.with_name("40-warm.conf")

warm_slots = 0  # that there are besides guests, see warm()
warm_kind = None  # how many, and whether they come back
in_warm = False


if not GUESTS.exists():
    shutil.copytree(SRC / "tests/guests", GUESTS)


class Skip(Exception):
    pass


def sh(command, **options):
    """A command of root's; fails the test when it fails."""
    return subprocess.run(command, shell=isinstance(command, str), check=True, text=True,
                          capture_output=True, timeout=120, **options).stdout


def as_agent(command, cwd="/home/agent", env=None, **options):
    """Popen as the user agent, in group harpe-gov, umask 022, with an environment of its own."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    environment = {"PATH": "/usr/bin:/bin", "HOME": AGENT.pw_dir, **(env or {})}
    groups = os.getgrouplist("agent", AGENT.pw_gid)
    return subprocess.Popen(command, cwd=cwd, env=environment, user=AGENT.pw_uid,
                            group=AGENT.pw_gid, extra_groups=groups, umask=0o022, **options)


class Result:
    def __init__(self, process, report_path=None, timeout=120, data=None):
        self.stdout, self.stderr = process.communicate(data, timeout=timeout)
        self.status = process.returncode
        self.report = None
        if report_path and os.path.exists(report_path):
            text = pathlib.Path(report_path).read_text()
            self.report = json.loads(text) if text else None

    def __repr__(self):
        return f"status {self.status}\nstdout {self.stdout!r}\nstderr {self.stderr!r}\n" \
               f"report {json.dumps(self.report)}"


@contextlib.contextmanager
def agent_directory(mode=0o755, where="/tmp"):
    """On Debian 13 /tmp is in memory; /var/tmp is on the disk everywhere."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=where) as path:
        os.chmod(path, mode)
        os.chown(path, AGENT.pw_uid, AGENT.pw_gid)
        yield path


def start_run(*args, **options):
    """Starts `harpe-gov run ARGS` as agent. Returns the process."""
    return as_agent(["harpe-gov", "run", *map(str, args)], **options)


def run(*args, timeout=120, **options):
    """Runs `harpe-gov run ARGS` as agent to its end, with a report."""
    with agent_directory() as directory:
        report = os.path.join(directory, "report.json")
        options.setdefault("cwd", directory)
        return Result(start_run("--report", report, *args, **options), report, timeout)


def python(name):
    """The command line of a guest program of ours."""
    return ["python3", str(GUESTS / name)]


def expect(condition, *context):
    if not condition:
        raise AssertionError("\n".join(["not as expected", *map(str, context)]))


def expect_equal(have, want, *context):
    if have != want:
        raise AssertionError("\n".join([f"{have!r} where {want!r} was expected",
                                        *map(str, context)]))


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


# ---- what is there ----


def has_scopes():
    """Has the kernel Landlock's scopes: ABI 6?"""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


def all_scopes():
    return [p for s in (SLICE, DROP_SLICE) for where in ("harpe-*.scope", "harpe-*.slice/harpe-*.scope")
            for p in glob.glob(str(s / where)) if "/harpe-pin-" not in p]


def part(profile, number):
    """The directory of a part of a profile's slice: see governor/daemon/part.h."""
    slice_ = SLICE.with_name(f"harpe-{profile}.slice")
    return slice_ / f"harpe-{profile}-{number}.slice" if number else slice_


def guest_slice(pid):
    """The directory of the slice that a guest's process is in, below scope and guest/."""
    group = pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip()[len("0::/"):]
    return (pathlib.Path("/sys/fs/cgroup") / group).parents[1]


def was_never_used(scope):
    """No process was ever in its guest/, says the kernel."""
    try:
        return pathlib.Path(scope, "guest/pids.peak").read_text() == "0\n"
    except OSError:
        return True  # not made yet, or gone


def scopes():
    """The scopes of guests, by cgroup directory; without warm slots where there may be some."""
    return [p for p in all_scopes() if not warm_slots or not was_never_used(p)]


def pool_processes():
    """Pids whose real, effective, saved or file system uid is one of the pool's."""
    found = []
    for status in glob.glob("/proc/[0-9]*/status"):
        with contextlib.suppress(OSError):
            for line in open(status):
                if line.startswith("Uid:"):
                    if any(int(uid) in POOL for uid in line.split()[1:]):
                        found.append(int(status.split("/")[2]))
                    break
    return found


def helpers_of_daemon():
    """The processes that it forked into its own cgroup."""
    daemon = daemon_pid()
    found = []
    with contextlib.suppress(OSError):
        for pid in pathlib.Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/cgroup").read_text().endswith("harpe-gov.service\n"):
                    found.append(int(pid))
    return found


def serves_client(pid):
    """Its descriptor 3 is a connection: not that of the listener, which the daemon has there."""
    with contextlib.suppress(OSError):
        inode = os.readlink(f"/proc/{pid}/fd/3").removeprefix("socket:[").removesuffix("]")
        lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
        return any(line.split()[5:7] == ["03", inode] for line in lines)
    return False


def supervisors():
    if warm_slots:
        wait_slots(warm_slots)  # whoever makes them is none
    return [pid for pid in helpers_of_daemon() if serves_client(pid)]


def spares():
    """Supervisors that wait for a connection: all that they have open besides is the pair, the ground of
    views, and the listener."""
    found = []
    for pid in helpers_of_daemon():
        with contextlib.suppress(OSError):
            if sorted(map(int, os.listdir(f"/proc/{pid}/fd"))) == [0, 1, 2, 4, 5, 6]:
                found.append(pid)
    return found


def wait_spare():
    found = []

    def there():
        found[:] = spares()
        return found

    wait_until(there, 10, "a supervisor waits for a connection")
    return found[0]


def what_it_does(pid):
    """For messages: a process's state, and the system call that it is in."""
    said = [str(pid)]
    for name in "stat", "wchan", "syscall":
        with contextlib.suppress(OSError):
            said.append(pathlib.Path(f"/proc/{pid}/{name}").read_text()[:80])
    return said


def daemon_pid():
    return int(sh("systemctl show -P MainPID harpe-gov.service"))


def dying_cgroups():
    """Cgroups of guests that are removed and not yet forgotten."""
    text = pathlib.Path("/sys/fs/cgroup/harpe.slice/cgroup.stat").read_text()
    return int(text.split("nr_dying_descendants")[1].split()[0])


def failed_units():
    return sh("systemctl list-units --all --state=failed --plain --no-legend 'harpe*'").strip()


def ps(**options):
    process = as_agent(["harpe-gov", "ps", "--json"], **options)
    return json.loads(Result(process).stdout)["guests"]


def root_ps():
    return json.loads(sh("harpe-gov ps --json"))["guests"]


def slots():
    """The rows of warm slots."""
    return [row for row in root_ps() if row["state"] == "warm"]


def wait_slots(n, seconds=30):
    """Waits until there are N warm slots, and nothing is being made; their rows."""
    rows = []

    def are_there():
        rows[:] = slots()
        return len(rows) == n

    wait_until(are_there, seconds, f"{n} warm slots {rows}")
    return list(rows)


def guest_cgroup(name):
    """The guest/ directory of the running guest that was started with --name NAME."""
    for row in ps():
        if row["name"] == name:
            return pathlib.Path(SLICE / f"harpe-{row['id']}.scope" / "guest")
    return None


def wait_running(name):
    """Waits until the guest of that name runs; its row of ps."""
    row = None

    def running():
        nonlocal row
        row = next((r for r in ps() if r["name"] == name and r["state"] == "running"), None)
        return row

    wait_until(running, 30, f"guest {name} runs")
    return row


def assert_nothing_left(seconds=5):
    """No process of the pool, no scope, no supervisor, no failed unit; all warm slots are there, and
    no scope besides."""
    wait_until(lambda: not pool_processes(), seconds, f"no process of the pool {pool_processes()}")
    wait_until(lambda: not scopes(), seconds, f"no scope {scopes()}")
    try:
        wait_until(lambda: not supervisors(), seconds, "no supervisor")
    except AssertionError as e:
        raise AssertionError(f"{e} {[what_it_does(pid) for pid in supervisors()]}") from e
    expect_equal(failed_units(), "")
    if warm_slots:
        wait_until(lambda: len(all_scopes()) == warm_slots, seconds, f"only slots {all_scopes()}")


def wait_ready():
    wait_until(lambda: subprocess.run(["systemctl", "is-active", "-q", "harpe-gov.service"],
                                      check=False).returncode == 0, 60, "harpe-gov.service is active")
    for s in (SLICE, DROP_SLICE):
        wait_until(lambda s=s: glob.glob(str(s / "harpe-pin-*.scope")), 30, f"a pin scope in {s}")


def entries(*matches):
    """What the journal has of this boot, as systemd.journal-fields(7) names it."""
    sh("journalctl --sync")
    lines = sh(["journalctl", "--boot", "--quiet", "--output=json", *matches]).splitlines()
    return [json.loads(line) for line in lines]


@contextlib.contextmanager
def configured(text, verb="reload"):
    """The drop-in is in force inside."""
    if not in_warm:
        cool()
    DROP_IN.parent.mkdir(exist_ok=True)
    DROP_IN.write_text(text)
    try:
        sh(f"systemctl {verb} harpe-gov.service")
        wait_ready()
        yield
    finally:
        DROP_IN.unlink()
        sh(f"systemctl {verb} harpe-gov.service")
        wait_ready()


def cool():
    """Takes away the slots that warm() left, and nothing of them stays."""
    global warm_slots, warm_kind
    if not warm_kind:
        return
    warm_slots, warm_kind = 0, None
    WARM_DROP_IN.unlink()
    subprocess.run(["systemctl", "reload", "harpe-gov.service"], check=False, capture_output=True)
    wait_ready()
    wait_until(lambda: not all_scopes(), 15, f"no slots {all_scopes()}")


def heat(kind):
    global warm_slots, warm_kind
    n, recycle = kind
    WARM_DROP_IN.parent.mkdir(exist_ok=True)
    WARM_DROP_IN.write_text(f"[pool]\nwarm = {n}\n" + "recycle = yes\n" * recycle)
    warm_kind = kind
    sh("systemctl reload harpe-gov.service")
    wait_ready()
    wait_slots(n)
    warm_slots = n


def there_soon(n):
    try:
        return wait_slots(n, 5)
    except AssertionError:
        return []


@contextlib.contextmanager
def warm(n, recycle=False):
    """N warm slots are there inside; with RECYCLE scopes come back. They stay for the next test, when
    that wants the same; for all others cool() takes them away."""
    global in_warm
    try:
        if warm_kind != (n, recycle):
            cool()
            heat((n, recycle))
        in_warm = True
        yield
        if not there_soon(n):  # one was taken away, and only a run would bring it back
            cool()
    except Exception:
        with contextlib.suppress(AssertionError):  # what failed is more interesting
            cool()
        raise
    finally:
        in_warm = False


def recover():
    """After a failed test: the next one starts from a clean daemon."""
    for pid in pool_processes():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    subprocess.run(["systemctl", "reset-failed", "harpe*"], check=False, capture_output=True)
    subprocess.run(["systemctl", "restart", "harpe-gov.service"], check=False, capture_output=True)
    with contextlib.suppress(AssertionError):
        wait_ready()
        cool()
