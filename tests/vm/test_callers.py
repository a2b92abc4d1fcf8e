# SPDX-License-Identifier: GPL-2.0-or-later
"""All kinds of callers: signals, streams, services, other namespaces, arguments, directories."""
import os
import signal
import time

from lib import (Result, agent_directory, as_agent, expect, expect_equal, pool_processes, scopes,
                 start_run, wait_running, wait_until)

# ---- signals ----

# Says "ready", then the number of every signal that it gets; SIGQUIT ends it with exit code 9.
LISTENER = """
import os, signal, sys
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
           signal.SIGWINCH, signal.SIGQUIT]
signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
os.write(1, b"ready\\n")
while True:
    number = signal.sigwait(NUMBERS)
    os.write(1, b"%d\\n" % number)
    if number == signal.SIGQUIT:
        os._exit(9)
"""


def test_signals_reach_the_guest():
    """Every signal that is passed on arrives, each time; none of them ends the client."""
    with agent_directory() as d:
        p = start_run("--report", d + "/r.json", "--", "python3", "-c", LISTENER, cwd=d)
        expect_equal(p.stdout.readline(), b"ready\n")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1,
                       signal.SIGUSR2, signal.SIGWINCH, signal.SIGINT, signal.SIGINT):
            p.send_signal(number)
            expect_equal(p.stdout.readline(), b"%d\n" % number)
        p.send_signal(signal.SIGQUIT)
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"], r.report["exit_code"], r.stderr),
                 (9, "exited", 9, b""), r)


def test_signal_ends_guest():
    """A guest that does not care dies of it, with all of its tree, and so does the client."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sh", "-c",
                      "setsid sleep 600 & exec sleep 600", cwd=d)
        wait_running("victim")
        p.terminate()
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"], r.report["signal"], r.stderr),
                 (-signal.SIGTERM, "signaled", signal.SIGTERM, b""), r)


def test_signal_is_ignored_by_guest():
    """A guest that ignores SIGTERM runs on; SIGKILL of the client ends it."""
    with agent_directory() as d:
        p = start_run("--name", "victim", "--", "sh", "-c",
                      "trap '' TERM; echo ready; sleep 600; sleep 600", cwd=d)
        expect_equal(p.stdout.readline(), b"ready\n")
        p.terminate()
        p.terminate()
        time.sleep(2)
        wait_running("victim")
        expect_equal(p.poll(), None)
        p.kill()
        wait_until(lambda: not pool_processes() and not scopes(), 5, "the guest is gone")
        p.communicate()


def test_signal_before_the_guest_runs():
    """A signal during the set-up is not lost."""
    with agent_directory() as d:
        p = start_run("--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_until(lambda: b"SigCgt:\t0000000000000000" not in status_of(p.pid), 10,
                   "the client listens to signals")
        p.send_signal(signal.SIGINT)
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.report["ended"], r.report["signal"]),
                 (-signal.SIGINT, "signaled", signal.SIGINT), r)


def status_of(pid):
    with open(f"/proc/{pid}/status", "rb") as f:
        return f.read()


def test_nohup():
    """What the caller ignores stays ignored."""
    with agent_directory() as d:
        p = as_agent(["nohup", "harpe-gov", "run", "--", "sh", "-c", "echo ready; read x; exit 4"],
                     cwd=d, stdin=-1)
        expect_equal(p.stdout.readline(), b"ready\n")
        p.send_signal(signal.SIGHUP)
        time.sleep(1)
        p.stdin.write(b"x\n")
        r = Result(p)
    expect_equal(r.status, 4, r)


# A client of its own making: what the real one never sends. The guest is `sleep 600`.
RAW_CLIENT = """
import array, fcntl, os, socket, struct, sys, time
MFD_SEALS = 0x409, 0xf  # F_ADD_SEALS, all four

def attr(number, data):
    return struct.pack("=HH", 4 + len(data), number) + data + b"\\0" * (-len(data) % 4)

def message(kind, *attrs):
    body = b"".join(attrs)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body

def start(extra=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/harpe-gov/socket")
    strings = os.memfd_create("x", 3)
    os.write(strings, struct.pack("=II", 2, 1) + b"sleep\\0" + b"600\\0PATH=/bin\\0")
    fcntl.fcntl(strings, *MFD_SEALS)
    null = os.open("/dev/null", os.O_RDWR)
    fds = [strings, os.open("/", os.O_PATH | os.O_DIRECTORY), null, null, null,
           os.open("/proc/self/ns/mnt", os.O_RDONLY), *extra]
    limits = b"\\xff" * 16 * 16
    s.sendmsg([message(16, attr(7, b"victim\\0"), attr(10, limits))],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    return s

def signal(number):
    return message(WIRE_SIGNAL, attr(1, struct.pack("=I", number)))

WIRE_SIGNAL = 23
s = start()
sys.stdin.readline()
"""


def raw_client(script, **options):
    return as_agent(["python3", "-c", RAW_CLIENT + script], **options)


def test_hostile_client():
    """What is no signal, or none to be passed on, or the end of one direction, ends the guest."""
    for script in ("s.send(signal(9))", "s.send(signal(0))", "s.send(signal(1 << 31))",
                   "s.send(message(16))", "s.send(b'x' * 9000)", "s.send(b'')",
                   "s.shutdown(socket.SHUT_WR)", "s.close()"):
        p = raw_client(script + "; sys.stdin.read()", stdin=-1)
        wait_running("victim")
        p.stdin.write(b"\n")
        p.stdin.flush()
        wait_until(lambda: not pool_processes() and not scopes(), 5, f"no guest after {script}")
        expect_equal(p.communicate(), (b"", b""), script)
    # As good as the real one: the descriptor with it is dropped, and the guest dies of the signal.
    p = raw_client("s.sendmsg([signal(15)], [(1, 1, array.array('i', [0]))]); print(s.recv(9000))",
                   stdin=-1)
    wait_running("victim")
    r = Result(p, data=b"\n")
    expect(b"signal" not in r.stderr and len(r.stdout) > 300, r)
