# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest is in the kernel's eyes, whatever the daemon is; and what profiles add to it."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess

from lib import (Skip, agent_directory, configured, expect, expect_equal, has_scopes, run, sh,
                 start_run, wait_ready, wait_running, wait_until)
from test_audit import audit, of

UNIT = pathlib.Path("/run/systemd/system/harpe-gov.service.d/50-test.conf")
NESTED = "[access]\nprofiles = isolated drop nested\n[profile nested]\nuser-namespaces = yes\n"
SYS_IOPRIO_GET = 252


@contextlib.contextmanager
def unit_with(text):
    UNIT.parent.mkdir(parents=True, exist_ok=True)
    UNIT.write_text("[Service]\n" + text)
    try:
        sh("systemctl daemon-reload && systemctl restart harpe-gov.service")
        wait_ready()
        yield
    finally:
        UNIT.unlink()
        sh("systemctl daemon-reload && systemctl restart harpe-gov.service")
        wait_ready()


@contextlib.contextmanager
def sleeping(*options, command=("sleep", "600"), **more):
    """A guest that lives inside; its row of ps."""
    with agent_directory() as directory:
        process = start_run("--name", "sleeper", *options, "--", *command, cwd=directory, **more)
        try:
            yield wait_running("sleeper")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def status_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def io_class(pid):
    text = sh(["python3", "-c", "import ctypes; print(ctypes.CDLL(None).syscall("
               f"{SYS_IOPRIO_GET}, 1, {pid}) >> 13)"])
    return int(text)


def test_nothing_of_the_daemon():
    """Scheduling class, nice value, I/O priority, securebits, signals: as of a fresh program."""
    with unit_with("Nice=-5\nCPUSchedulingPolicy=rr\nIOSchedulingClass=realtime\n"
                   "SecureBits=keep-caps no-setuid-fixup\nIgnoreSIGPIPE=yes\n"):
        with sleeping(preexec_fn=lambda: os.nice(7)) as row:
            pid = row["main_pid"]
            status = status_of(pid)
            for key in "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
                expect_equal(int(status[key], 16), 0, key, status)
            expect_equal(os.sched_getscheduler(pid), os.SCHED_OTHER)
            expect_equal(os.getpriority(os.PRIO_PROCESS, pid), 0)
            expect_equal(io_class(pid), 0)
            expect_equal(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(), "0\n")
            expect_equal(status["Umask"], "0022")
            expect_equal(pathlib.Path(f"/proc/{pid}/loginuid").read_text(), str(row["uid"]))
        r = run("--", "python3", "-c", "import ctypes; print(ctypes.CDLL(None).prctl(27))")
        expect_equal((r.status, r.stdout), (0, b"0\n"), r)




IN_NAMESPACE = """
import ctypes, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(int(sys.argv[1], 16)), ctypes.get_errno())
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    print("netlink")
except OSError as e:
    print(e.errno)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.sendto(b"secret", ("127.0.0.1", int(sys.argv[2])))
except OSError as e:
    print(e.errno)
"""


TAKE_ALL = """
import ctypes, signal, sys
libc = ctypes.CDLL(None)
context, timer = ctypes.c_void_p(), ctypes.c_void_p()
signal.signal(signal.SIGALRM, signal.SIG_IGN)
libc.syscall(206, 32768, ctypes.byref(context))  # io_setup
made = 0
while made < 1000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    made += 1
sys.stdin.read()
"""


def waits_for_input(pid):
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 ")  # read(0, ...)


def test_what_the_host_has_once():
    """AIO contexts, and the interrupts of timers, are bounded for the whole host or not at all."""
    if os.uname().machine != "x86_64":
        raise Skip("the number of io_setup(2) above is x86-64's")
    before = pathlib.Path("/proc/sys/fs/aio-nr").read_text()
    with sleeping(command=("python3", "-c", TAKE_ALL), stdin=subprocess.PIPE) as row:
        wait_until(lambda: waits_for_input(row["main_pid"]), 20, "it has what it gets")
        timers = pathlib.Path(f"/proc/{row['main_pid']}/timers").read_text()
        expect_equal(timers.count("notify:"), 256)
        expect_equal(pathlib.Path("/proc/sys/fs/aio-nr").read_text(), before)


def test_nothing_of_file_systems():
    """In a directory that it may write to a guest can leave neither a device nor other flags."""
    with agent_directory(0o777, where="/var/tmp") as d:
        r = run("--rw", d, "--", "sh", "-c", "mknod whiteout c 0 0; chattr +A .; mkfifo fifo", cwd=d)
        expect_equal((r.status, r.stderr.count(b"not permitted")), (0, 2), r)
        expect_equal(sorted(os.listdir(d)), ["fifo"], r)


def test_user_namespaces():
    """Only where the profile says so; what is sent from one is dropped all the same."""
    with configured(NESTED), contextlib.closing(socket.socket(type=socket.SOCK_DGRAM)) as far:
        far.bind(("127.0.0.1", 0))
        far.settimeout(2)
        port = far.getsockname()[1]
        for net, said in ("drop", "-1 1\n1\n1\n"), ("nested", "0 0\nnetlink\n1\n"):
            r = run("--net", net, "--", "python3", "-c", IN_NAMESPACE, "10000000", str(port))
            expect_equal(r.stdout.decode(), said, net, r)
        try:
            expect(False, "arrived", far.recv(100))
        except TimeoutError:
            pass
        far.settimeout(10)
        socket.socket(type=socket.SOCK_DGRAM).sendto(b"mine", ("127.0.0.1", port))
        expect_equal(far.recv(100), b"mine")


REACH = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\\0helper")
    print("connected")
except OSError as e:
    print(e.errno)
"""


def test_scopes():
    """An abstract socket of the host's is reached only where the kernel has no scopes (SECURITY.md)."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as helper:
        helper.bind("\0helper")
        helper.listen()
        helper.settimeout(2)
        r = run("--net", "drop", "--", "python3", "-c", REACH)
        expect_equal(r.stdout, b"1\n" if has_scopes() else b"connected\n", r)
        reached = True
        try:
            helper.accept()
        except TimeoutError:
            reached = False
        expect_equal(reached, not has_scopes(), r)


def test_audit_knows_nested_capabilities():
    """Those of a guest in a namespace of its own count for nothing, where its profile allows one."""
    hold = ["unshare", "--user", "--map-root-user", "--net", "sleep", "600"]
    with configured(NESTED):
        with sleeping("--net", "nested", command=hold) as row:
            wait = "until readlink /proc/%d/exe | grep -q sleep; do sleep 0.1; done" % row["main_pid"]
            sh(["timeout", "60", "sh", "-c", wait])
            expect(int(status_of(row["main_pid"])["CapEff"], 16) != 0, status_of(row["main_pid"]))
            expect_equal(of(audit(), "FAIL"), {})
