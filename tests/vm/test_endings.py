# SPDX-License-Identifier: GPL-2.0-or-later
"""How runs end: the exit status, the report, the one line on stderr."""
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

from lib import (AGENT, SLICE, SRC, Result, agent_directory, daemon_pid, entries, expect,
                 expect_equal, pool_processes, python, run, scopes, sh, start_run, wait_ready,
                 wait_running, wait_until)
from leaks import layers
from test_audit import assert_found


def test_exit_codes():
    """The guest's own exit code arrives, whatever it is."""
    for code in (0, 1, 2, 77, 124, 125, 126, 127, 137, 255):
        r = run("--", "sh", "-c", f"exit {code}")
        expect_equal(r.status, code, r)
        expect_equal((r.report["ended"], r.report["exit_code"], r.report["signal"]),
                     ("exited", code, None), r)
        expect_equal(r.stderr, b"", r)


def test_signals():
    """A guest that a signal kills: the client dies of the same."""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV):
        r = run("--", "sh", "-c", f"kill -{int(number)} $$")
        expect_equal(r.status, -number, r)
        expect_equal((r.report["ended"], r.report["exit_code"], r.report["signal"]),
                     ("signaled", None, int(number)), r)


def test_memory():
    """The memory limit: the whole tree goes, the reason is the kernel's counter."""
    r = run("--memory", "64M", "--", *python("memory.py"))
    expect_equal((r.status, r.report["ended"]), (124, "memory"), r)
    expect(r.report["memory"]["oom_kills"] >= 1, r)
    # The first process had not been the one that took too much.
    expect_equal((r.report["signal"], r.report["exit_code"]), (signal.SIGKILL, None), r)
    # The kernel lets dying processes pass the limit by a few pages.
    expect(60 << 20 < r.report["memory"]["peak_bytes"] < 66 << 20, r)
    expect_equal(r.stderr.count(b"\n"), 1, r)
    expect(b"memory limit of 64M" in r.stderr, r)


def test_wall_clock():
    """The wall clock ends a guest that does not want to end."""
    for guest in ("sleep.py", "stubborn.py"):
        begin = time.monotonic()
        r = run("--time", "2s", "--", *python(guest))
        expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)
        expect(2 <= time.monotonic() - begin < 12, time.monotonic() - begin)
        expect(r.report["wall_usec"] >= 2000000, r)


def test_cpu_time():
    """CPU time is counted over the whole tree."""
    r = run("--cpu-time", "2s", "--cpu", "200%", "--", *python("spin_tree.py"))
    expect_equal((r.status, r.report["ended"]), (124, "cpu-time"), r)
    expect(2000000 <= r.report["cpu"]["usage_usec"] < 4000000, r)


def test_throttled():
    """cpu.max is in force: the guest was throttled and got its share."""
    r = run("--cpu", "20%", "--time", "5s", "--", *python("loop.py"))
    expect_equal(r.report["ended"], "wall-clock", r)
    expect(r.report["cpu"]["throttled_usec"] > 0, r)
    share = r.report["cpu"]["usage_usec"] / r.report["wall_usec"]
    expect(share < 0.3, share, r)


def test_command_not_found():
    """127 and 126, as a shell, and the guest did not run."""
    r = run("--", "no-such-command")
    expect_equal((r.status, r.report["ended"], r.report["guest_ran"]), (127, "setup-failed", False), r)
    expect(b"no-such-command" in r.stderr, r)
    r = run("--", "/etc/passwd")
    expect_equal((r.status, r.report["guest_ran"]), (126, False), r)
    with agent_directory() as d:
        script = os.path.join(d, "script")
        with open(script, "w") as f:
            f.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        r = run("--", script, cwd=d)
    expect_equal(r.status, 127, r)
    expect(b"/no/such/interpreter" in r.stderr, r)


def test_operator_kills():
    """`harpe-gov kill` and `systemctl stop` are reported as such."""
    for how in ("harpe-gov kill victim", *["systemctl stop harpe-{id}.scope"] * 3):
        with agent_directory() as d:
            p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "60", cwd=d)
            row = wait_running("victim")
            sh(how.format(**row))
            r = Result(p, d + "/r.json")
        expect_equal((r.status, r.report["ended"]), (-9, "killed"), how, r)


def test_daemonised():
    """What the guest leaves running ends with its first process, at once."""
    begin = time.monotonic()
    r = run("--", *python("daemonise.py"))
    expect_equal((r.status, r.stdout), (0, b"parent done\n"), r)
    expect(r.report["pids"]["left_at_end"] >= 1, r)
    expect(time.monotonic() - begin < 15, time.monotonic() - begin)


def test_forks():
    """pids.max holds, and the report says how often a fork was refused."""
    r = run("--pids", "16", "--", *python("forkbomb.py"))
    expect_equal(r.status, 0, r)
    expect(r.report["pids"]["peak"] <= 16, r)
    expect(r.report["pids"]["refused_forks"] >= 1, r)


def test_limits_in_the_kernel():
    """What was asked for stands in cgroupfs and in systemd while the guest runs."""
    with agent_directory() as d:
        p = start_run("--name", "look", "--memory", "100M", "--cpu", "50%", "--pids", "20", "--",
                      "sleep", "60", cwd=d)
        row = wait_running("look")
        scope = f"{SLICE}/harpe-{row['id']}.scope"

        def read(name):
            return open(f"{scope}/{name}").read().strip()

        expect_equal(read("memory.max"), str(100 << 20))
        expect_equal(read("memory.swap.max"), "0")
        expect_equal(read("cpu.max"), "50000 100000")
        expect_equal(read("guest/pids.max"), "20")
        expect_equal(read("guest/memory.oom.group"), "1")
        shown = sh(f"systemctl show harpe-{row['id']}.scope -p MemoryMax -p CPUQuotaPerSecUSec")
        expect_equal(sorted(shown.split()), ["CPUQuotaPerSecUSec=500ms", f"MemoryMax={100 << 20}"])
        sh("harpe-gov kill look")
        Result(p)


def test_explain():
    """--explain starts nothing, and says what the kernel is told when something is started."""
    r = Result(start_run("--explain", "--memory", "100M", "--cpu", "50%", cwd="/"))
    expect_equal(r.status, 0, r)
    text = r.stdout.decode()
    for words in ("memory.max=104857600", "--memory", "cpu.max=\"50000 100000\"", "pids.max=128",
                  "built in", "[access]"):
        expect(words in text, words, text)
    expect_equal(scopes(), [])
    r = Result(start_run("--explain", "--memory", "1T", cwd="/"))
    expect_equal(r.status, 125, r)
    expect(b"ceiling" in r.stderr, r)


def test_tiny_cpu():
    """A tiny CPU quota slows neither the set-up nor the end."""
    begin = time.monotonic()
    r = run("--cpu", "1%", "--time", "2s", "--", "sleep", "30")
    expect_equal(r.report["ended"], "wall-clock", r)
    expect(time.monotonic() - begin < 15, time.monotonic() - begin)


def test_bad_input():
    """One sentence that names the value and the remedy, 125, and nothing is started."""
    for args, words in (
        (["--memory", "64Q"], [b"64Q", b"--memory"]),
        (["--memory", "1T"], [b"1T", b"ceiling"]),
        (["--memory", "1M"], [b"--memory"]),
        (["--cpu", "20"], [b"20%"]),
        (["--pids", "0"], [b"--pids"]),
        (["--no-such"], [b"--no-such"]),
        (["--name", "a b"], [b"--name"]),
    ):
        r = run(*args, "--", "true")
        expect_equal(r.status, 125, args, r)
        for word in words:
            expect(word in r.stderr, word, r)


def test_working_directory():
    """A private directory as working directory is refused; a removed one too."""
    r = run("--", "true", cwd="/tmp")
    expect_equal(r.status, 125, r)
    expect(b"/tmp" in r.stderr, r)
    p = start_run("--", "pwd", cwd=AGENT.pw_dir)
    r = Result(p)
    expect_equal(r.status, 125, "0700: the guest may not enter it", r)
    expect(b"/home/agent" in r.stderr, r)


SEND_AND_READ = """
import contextlib, socket, sys
with contextlib.suppress(OSError):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
open(sys.argv[1]).read()
"""


def test_unkillable():
    """A guest that SIGKILL does not end: the run returns all the same, its uid is not used, and the
    journal has what it had sent so far."""
    mountpoint = "/mnt/stuck"
    os.makedirs(mountpoint, exist_ok=True)
    sh("modprobe fuse")
    server = subprocess.Popen(["python3", str(SRC / "tests/vm/stuck_fuse.py"), mountpoint],
                              stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        begin = time.monotonic()
        with agent_directory() as d:  # no pipes: the stuck process would hold them open
            p = start_run("--net", "drop", "--time", "10s", "--ro", mountpoint, "--report",
                          d + "/r.json", "--", "python3", "-c", SEND_AND_READ, mountpoint + "/file",
                          cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            r = Result(p, d + "/r.json")
            kill = subprocess.run(["harpe-gov", "kill", "--all"], stderr=subprocess.PIPE, check=False)
            expect_equal((kill.returncode, kill.stderr.count(b"has not gone within 15 s")), (1, 1),
                         kill)
        expect_equal((r.status, r.report["ended"]), (125, "unkillable"), r)
        expect(time.monotonic() - begin < 90, time.monotonic() - begin)
        stuck = r.report["uid"]
        expect(pool_processes(), "the process is there, as intended")
        (entry,) = entries("HARPE_RUN=" + r.report["id"])
        expect_equal((entry["HARPE_ENDED"], entry["HARPE_DROPS_UID"]), ("unkillable", "1"), entry)
        expect(int(run("--", "id", "-u").stdout) != stuck)
        sh("systemctl restart harpe-gov.service")  # nor does a new daemon wait for it
        wait_ready()
        expect(int(run("--", "id", "-u").stdout) != stuck)
        assert_found("HG-RUN-003", r.report["scope"], f"uid {stuck}")
    finally:
        server.kill()
        server.wait()
        subprocess.run(["umount", "-l", mountpoint], check=False)
    wait_until(lambda: not scopes(), 40, f"the scope goes when the process does {scopes()}")


@contextlib.contextmanager
def traced_to_its_end():
    """A run whose command is traced from outside, and has exited with 7: the run, its report's path, the
    command's pid, whose end only the tracer, which is this process, knows so far."""
    with agent_directory() as d:
        p = start_run("--name", "traced", "--report", d + "/r.json", "--", "sh", "-c",
                      "read line; exit 7", cwd=d, stdin=subprocess.PIPE)
        pid = wait_running("traced")["main_pid"]
        layers.checked(layers.libc.ptrace(layers.PTRACE_SEIZE, pid, None, None), "PTRACE_SEIZE")
        p.stdin.write(b"\n")
        p.stdin.flush()
        wait_until(lambda: " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text(), 20, "its end")
        yield p, d + "/r.json", pid


def test_traced():
    """A tracer is told of the end first; he may keep it to himself, for a while."""
    with traced_to_its_end() as (p, report, pid):
        time.sleep(0.3)
        expect_equal(os.waitpid(pid, layers.WALL), (pid, 7 << 8))
        r = Result(p, report)
    expect_equal((r.status, r.report["ended"], r.report["exit_code"]), (7, "exited", 7), r)
    expect_equal((r.report["pids"]["left_at_end"], r.report["error"]), (0, None), r)


def test_traced_for_too_long():
    """He does not let go: the run ends all the same, and says why its status is not known."""
    with traced_to_its_end() as (p, report, pid):
        r = Result(p, report)
        expect_equal(os.waitpid(pid, layers.WALL), (pid, 7 << 8))
    expect_equal((r.status, r.report["ended"], r.report["exit_code"]), (125, "exited", None), r)
    expect_equal(r.report["error"], "its status is kept back by who traces it", r)
    expect_equal(r.stderr, b"harpe-gov: the command ended: its status is kept back by who traces it\n",
                 r)


EACH_OTHER = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
TRACE_ME, ATTACH, SEIZE, TRACE_EXIT = 0, 16, 0x4206, 0x40
first, (ready, tell) = os.getpid(), os.pipe()
second = os.fork()
for request in SEIZE, ATTACH, TRACE_ME:
    r = libc.ptrace(request, second or first, None, ctypes.c_void_p(TRACE_EXIT))
    os.write(1, b"%d %d\\n" % (r, ctypes.get_errno()))
if second == 0:
    os.write(tell, b"x")
    signal.pause()
os.read(ready, 1)
os._exit(7)
"""


def test_trace_each_other():
    """Two that traced each other to their end could be killed by nobody, and who asks to be traced may
    get systemd for a tracer: no guest traces."""
    r = run("--", "python3", "-c", EACH_OTHER)
    expect_equal((r.status, r.report["ended"], r.stdout), (7, "exited", b"-1 1\n" * 6), r)


def test_policy_lost():
    """The table is changed by somebody who took the daemon's socket: guests end and say so."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        delete_table_as_owner()
        r = Result(p, d + "/r.json", timeout=30)  # nobody else runs anything
    expect_equal((r.status, r.report["ended"]), (125, "policy-lost"), r)
    expect("skuid @pool drop" in sh("nft list chain inet harpe_gov output"), "it is rebuilt")
    expect_equal(run("--", "true").status, 0)


def delete_table_as_owner():
    """Root takes the daemon's netlink socket (pidfd_getfd(2)) and deletes the owned table with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(daemon_pid())
    try:
        for name in os.listdir(f"/proc/{daemon_pid()}/fd"):
            fd = libc.syscall(438, pidfd, int(name), 0)
            if fd < 0:
                continue
            with socket.socket(fileno=fd) if is_nfnetlink(fd) else contextlib.closing(
                    os.fdopen(fd, "rb", buffering=0)) as s:
                if isinstance(s, socket.socket):
                    s.send(delete_table_batch())  # the kernel refuses all but the owner
    finally:
        os.close(pidfd)


def is_nfnetlink(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:") and \
            socket_option(fd, socket.SO_DOMAIN) == socket.AF_NETLINK and \
            socket_option(fd, socket.SO_PROTOCOL) == 12  # NETLINK_NETFILTER
    except OSError:
        return False


def socket_option(fd, option):
    with socket.socket(fileno=os.dup(fd)) as s:
        return s.getsockopt(socket.SOL_SOCKET, option)


def delete_table_batch():
    """BATCH_BEGIN, DELTABLE inet harpe_gov, BATCH_END (linux/netfilter/nfnetlink.h, nf_tables.h)."""
    name = b"harpe_gov\0"
    attribute = struct.pack("<HH", 4 + len(name), 1) + name + b"\0" * (-len(name) % 4)

    def message(kind, family, resource, body=b""):
        return struct.pack("<IHHIIBBH", 20 + len(body), kind, 1, 0, 0, family, 0,
                           socket.htons(resource)) + body

    return message(16, 0, 10) + message(10 << 8 | 2, 1, 0, attribute) + message(17, 0, 10)
