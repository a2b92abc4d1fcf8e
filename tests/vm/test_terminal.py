# SPDX-License-Identifier: GPL-2.0-or-later
"""A caller at a terminal: the test is the terminal, and the caller sits in front of it."""
import contextlib
import fcntl
import json
import os
import pathlib
import select
import signal
import struct
import termios
import time

from callers import RAW_CLIENT
from lib import (AGENT, POOL, Result, agent_directory, as_agent, expect, expect_equal,
                 guest_cgroup, pool_processes, scopes, sh, supervisors, wait_running, wait_until)

FLAG = 3  # of what tcgetattr() returns: the local modes


class Terminal:
    """A process of agent's in a session of its own that the terminal controls."""

    def __init__(self, command, streams=(0, 1, 2), owned=True, **options):
        self.master, self.slave = os.openpty()
        if owned:
            os.fchown(self.slave, AGENT.pw_uid, -1)
        self.set_size(33, 77)
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        names = ("stdin", "stdout", "stderr")
        options.update({names[i]: self.slave for i in streams})
        self.process = as_agent(
            command, env={"PS1": "prompt> ", "TERM": "dumb"}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0), **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        data = os.read(self.master, 65536)
        self.text += data
        return data

    def expect(self, words, seconds=60):
        """Reads until the words are there; what is behind them is for the next call."""
        deadline = time.monotonic() + seconds
        while words not in self.text:
            if not self.read(1) and time.monotonic() > deadline:
                raise AssertionError(f"no {words!r} on the terminal:\n{self.text!r}")
        seen, self.text = self.text.split(words, 1)
        return seen

    def is_raw(self):
        modes = termios.tcgetattr(self.slave)
        return not modes[FLAG] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def wait_raw(self):
        wait_until(self.is_raw, 30, "the caller's terminal is raw")

    def wait_end(self):
        status = self.process.wait(timeout=60)
        expect_equal(termios.tcgetattr(self.slave), self.before, "the terminal as it was")
        return status


@contextlib.contextmanager
def guest_on_terminal(*args, **options):
    """`harpe-gov run --name victim` on a terminal; the directory takes the report r.json."""
    with agent_directory() as d, \
            Terminal(["harpe-gov", "run", "--name", "victim", "--report", d + "/r.json", *args],
                     cwd=d, **options) as t:
        t.directory = d
        yield t


def report(terminal):
    return json.loads(pathlib.Path(terminal.directory + "/r.json").read_text())


LOOK = """
import fcntl, json, os, struct, termios
size = lambda: struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))[:2]
tty = os.open("/dev/tty", os.O_RDWR)
print(json.dumps({"size": size(), "names": [os.ttyname(i) for i in range(3)], "pts":
    sorted(os.listdir("/dev/pts")), "owner": os.fstat(0).st_uid == os.getuid(), "same":
    os.fstat(0).st_ino == os.fstat(1).st_ino, "foreground": os.tcgetpgrp(tty) == os.getpid(),
    "fds": sorted(os.listdir("/proc/self/fd"))}), flush=True)
with open("/dev/stdout", "w") as f:
    f.write("opened anew\\n")
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print("ready", flush=True)
signal.sigwait([signal.SIGWINCH])
print("size", *size())
"""


def test_guest_has_a_terminal():
    """Size, name, owner, foreground: as a program in a terminal expects it, in a devpts of its own."""
    with guest_on_terminal("--", "python3", "-c", LOOK) as t:
        seen = json.loads(t.expect(b"\r\n"))
        expect_equal(seen["size"], [33, 77])
        expect_equal((seen["names"], seen["pts"]), (["/dev/pts/0"] * 3, ["0", "ptmx"]))
        expect(seen["owner"] and seen["same"] and seen["foreground"], seen)
        expect_equal(seen["fds"], ["0", "1", "2", "3", "4"])  # /dev/tty and the list itself
        t.expect(b"opened anew\r\n")
        t.expect(b"ready\r\n")
        expect_equal([p for p in pathlib.Path("/dev/pts").iterdir() if p.stat().st_uid in POOL], [])
        t.set_size(20, 60)
        t.expect(b"size 20 60\r\n")
        expect_equal(t.wait_end(), 0)


def test_keys_arrive():
    """The caller's terminal is raw, the guest's is not: lines are edited and echoed there, once."""
    for owned in (True, False):
        with guest_on_terminal("--", "sh", "-c", "echo ready; cat; echo end", owned=owned) as t:
            t.expect(b"ready\r\n")
            t.wait_raw()
            t.type(b"ax\x7fb\r")
            t.expect(b"ax\b \bb\r\nab\r\n")
            t.type(b"\x04")
            t.expect(b"end\r\n")
            expect_equal((t.wait_end(), t.text), (0, b""))


def test_interrupt_key():
    """^C ends the guest's foreground by SIGINT; the client dies of the same."""
    with guest_on_terminal("--", "sh", "-c", "echo ready; exec sleep 600") as t:
        t.expect(b"ready\r\n")
        t.wait_raw()
        t.type(b"\x03")
        expect_equal(t.wait_end(), -signal.SIGINT)
        expect_equal((report(t)["ended"], report(t)["signal"]), ("signaled", signal.SIGINT))


def test_interrupt_key_during_set_up():
    """^C before the guest runs is not lost."""
    with guest_on_terminal("--", "sleep", "600") as t:
        wait_until(lambda: b"SigCgt:\t0000000000000000" not in pathlib.Path(
            f"/proc/{t.process.pid}/status").read_bytes(), 10, "the client listens")
        t.type(b"\x03")
        expect_equal(t.wait_end(), -signal.SIGINT)


def test_restored_whatever_ends_it():
    """Limit, operator, signal to the client, lost supervisor: the caller's terminal is as before."""
    ends = (("--time=3s", "true", 124, "wall-clock"),
            ("--time=1min", "harpe-gov kill victim", -9, "killed"),
            ("--time=1min", "kill -TERM {client}", -15, "signaled"),
            ("--time=1min", "kill -HUP {client}", -1, "signaled"),
            ("--time=1min", None, 125, "governor-lost"))
    for option, command, status, ended in ends:
        with guest_on_terminal(option, "--", "sh", "-c", "stty -echo; echo ready; sleep 600") as t:
            t.expect(b"ready\r\n")
            t.wait_raw()
            if command:
                sh(command.format(client=t.process.pid))
            else:
                os.kill(*supervisors(), signal.SIGKILL)
            expect_equal((t.wait_end(), report(t)["ended"]), (status, ended), command)


def test_client_killed():
    """SIGKILL of the client ends the guest; its terminal cannot be restored by anybody."""
    with guest_on_terminal("--", "sh", "-c", "trap '' HUP; echo ready; sleep 600") as t:
        t.expect(b"ready\r\n")
        t.process.kill()
        wait_until(lambda: not pool_processes() and not scopes(), 5, "the guest is gone")


def test_output_is_complete():
    """What the guest writes right before its end arrives whole."""
    with guest_on_terminal("--", "python3", "-c", "print('x' * 300000 + 'end', end='')") as t:
        seen = t.expect(b"end")
        expect_equal((len(seen), set(seen)), (300000, {ord("x")}))
        expect_equal((t.wait_end(), t.text), (0, b""))


def test_streams_apart():
    """Only what was a terminal becomes one: the rest is passed as it is."""
    with guest_on_terminal("--", "sh", "-c", "tty; test -t 1 || echo file; test -t 2 && cat >&2",
                           streams=(0, 2), stdout=-1) as t:
        expect_equal(t.process.stdout.readline(), b"/dev/pts/0\n")
        expect_equal(t.process.stdout.readline(), b"file\n")
        t.wait_raw()
        t.type(b"seen\r\x04")
        t.expect(b"seen\r\nseen\r\n")
        expect_equal(t.wait_end(), 0)
    with guest_on_terminal("--", "sh", "-c", "test -t 0 || test -t 1 && wc -c", streams=(1, 2),
                           stdin=-1) as t:
        t.process.stdin.write(b"12345")
        t.process.stdin.close()
        t.expect(b"5\r\n")
        expect(not t.is_raw(), "nothing is read from the terminal")
        expect_equal(t.wait_end(), 0)


PUSHER = """
import fcntl, os, sys, termios
for tty in (0, os.open("/dev/tty", os.O_RDWR)):
    for c in b"echo pushed\\r":
        try:
            fcntl.ioctl(tty, 0x5412, bytes([c]))
        except OSError:
            pass
modes = termios.tcgetattr(0)
modes[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, modes)
print("\\033[6n", end="")
os.tcsetpgrp(0, os.getpgrp())
print("done", flush=True)
os.kill(os.getpid(), 9)
"""


@contextlib.contextmanager
def shell(directory):
    """An interactive shell in a terminal: the caller."""
    with Terminal(["bash", "--norc", "--noprofile", "-i"], cwd=directory) as t:
        t.expect(b"prompt> ")
        yield t


def test_prompt_is_safe():
    """TIOCSTI, modes, foreground and pending answers: nothing of it is left at the shell's prompt."""
    with agent_directory() as d, shell(d) as t:
        pathlib.Path(d + "/push.py").write_text(PUSHER)
        t.type(b"harpe-gov run -- python3 push.py\r")
        t.expect(b"done")
        t.expect(b"Killed")
        t.expect(b"prompt> ")
        t.type(b"echo visi'ble'\r")
        seen = t.expect(b"\r\nvisible\r\n")
        expect_equal(seen, b"echo visi'ble'", "echo is on, and nothing else was in the line")
        expect(b"pushed" not in t.text)


COUNTER = "sh -c 'i=0; while sleep 0.2; do i=$((i+1)); echo tick $i; done'"


def frozen(name="victim"):
    directory = guest_cgroup(name)
    return directory and "frozen 1" in (directory / "cgroup.events").read_text()


def test_stop_and_go_on():
    """^Z freezes all of the guest and gives the prompt back; fg thaws it, raw again."""
    with agent_directory() as d, shell(d) as t:
        t.type(b"harpe-gov run --name victim -- " + COUNTER.encode() + b"\r")
        t.expect(b"tick 3\r\n")
        t.type(b"\x1a")
        t.expect(b"Stopped")
        t.expect(b"prompt> ")
        wait_until(frozen, 10, "the guest is frozen")
        t.type(b"stty -a | grep -c ' icanon'\r")
        t.expect(b"\r\n1\r\n")
        t.set_size(21, 61)
        t.type(b"fg\r")
        t.expect(b"tick ")
        wait_until(lambda: not frozen(), 10, "the guest goes on")  # that tick may be from before
        t.type(b"\x03")
        t.expect(b"prompt> ")


def test_stopped_clock_runs_on():
    """The wall clock does not stop with the guest."""
    with agent_directory() as d, shell(d) as t:
        t.type(b"harpe-gov run --name victim --time 12s --report r.json -- " + COUNTER.encode()
               + b"\r")
        t.expect(b"tick 1\r\n")
        t.type(b"\x1a")
        t.expect(b"Stopped")
        wait_until(frozen, 10, "the guest is frozen")
        wait_until(lambda: not pool_processes(), 20, "the guest is gone")
        t.type(b"fg\r")
        t.expect(b"wall-clock limit")
        t.expect(b"prompt> ")
        expect_equal(json.loads(pathlib.Path(d + "/r.json").read_text())["ended"], "wall-clock")


def test_stop_without_a_terminal():
    """SIGTSTP to a client without a terminal: the guest stops with it, and dies with it."""
    with agent_directory() as d:
        p = as_agent(["harpe-gov", "run", "--name", "victim", "--", "sleep", "600"], cwd=d,
                     process_group=0)
        wait_running("victim")
        p.send_signal(signal.SIGTSTP)
        wait_until(frozen, 10, "the guest is frozen")
        _, status = os.waitpid(p.pid, os.WUNTRACED)
        expect(os.WIFSTOPPED(status), status)
        p.send_signal(signal.SIGCONT)
        wait_until(lambda: not frozen(), 10, "the guest goes on")
        p.send_signal(signal.SIGTSTP)
        wait_until(frozen, 10, "the guest is frozen again")
        p.kill()
        wait_until(lambda: not pool_processes() and not scopes(), 5, "the guest is gone")
        Result(p)


def test_job_control_inside():
    """A guest with job control of its own gets ^Z itself."""
    with guest_on_terminal("--", "bash", "--norc", "--noprofile", "-i") as t:
        t.wait_raw()
        t.type(b"PS1='inner> '\r")
        t.expect(b"\r\ninner> ")
        t.type(b"sleep 600\r")
        time.sleep(2)
        t.type(b"\x1a")
        t.expect(b"Stopped")
        t.expect(b"inner> ")
        expect(not frozen(), "the guest itself was not stopped")
        t.type(b"kill -9 %1; wait; exit 3; exit 3\r")  # the first may warn of stopped jobs
        expect_equal(t.wait_end(), 3)


def test_in_the_background():
    """A client in the background is stopped neither by reading nor by writing; fg gives it the keys."""
    with agent_directory() as d, shell(d) as t:
        t.type(b"stty tostop; harpe-gov run --name victim -- sh -c 'echo out; read x; echo got $x' &\r")
        t.expect(b"out\r\r\n")
        t.type(b"echo sh'ell'; jobs\r")
        t.expect(b"\r\nshell\r\n")
        t.expect(b"Running")
        t.type(b"fg\r")
        t.wait_raw()
        t.type(b"line\r")
        t.expect(b"got line\r\n")
        t.expect(b"prompt> ")


def test_callers_terminal_is_never_passed():
    """A client that sends its terminal: refused, or replaced when it says that it is one."""
    for change, words in (("", b"standard input is a terminal or device"),
                          ("attr(13, struct.pack('=I', 8)), ", b"three standard streams")):
        script = RAW_CLIENT.replace("fds = [strings, os.open(\"/\", os.O_PATH | os.O_DIRECTORY), null",
                                    "fds = [strings, os.open(\"/\", os.O_PATH | os.O_DIRECTORY), 0")
        script = script.replace("attr(10, limits)", change + "attr(10, limits)")
        script = script.replace("sys.stdin.readline()", "print(s.recv(9000))")
        with Terminal(["python3", "-c", script]) as t:
            t.expect(words)
