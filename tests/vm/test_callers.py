# SPDX-License-Identifier: GPL-2.0-or-later
"""All kinds of callers: signals, streams, services, other namespaces, arguments, directories."""
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import time

from callers import RAW_CLIENT
from lib import (Result, agent_directory, as_agent, assert_nothing_left, expect,
                 expect_equal, pool_processes, run, scopes, sh, start_run, wait_running, wait_until)

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
    p = raw_client("s.sendmsg([signal(15)], [(1, 1, array.array('i', [0]))]); "
                   "s.recv(9000); print(s.recv(9000))",  # that it runs, and the report
                   stdin=-1)
    wait_running("victim")
    r = Result(p, data=b"\n")
    expect(b"signal" not in r.stderr and len(r.stdout) > 300, r)


# ---- the caller's parent ----

PARENT = "harpe-gov run %s --name victim --report r.json -- sleep 600 2>err & echo started; wait"


def kill_parent(option, directory):
    p = as_agent(["sh", "-c", PARENT % option], cwd=directory)
    wait_running("victim")
    expect_equal(p.stdout.readline(), b"started\n")
    p.kill()
    p.wait()


def test_with_parent():
    """--with-parent: SIGKILL of the caller's parent ends the guest, and the report says so."""
    with agent_directory() as d:
        kill_parent("--with-parent", d)
        wait_until(lambda: os.path.getsize(d + "/r.json"), 5, "the report is written")
        assert_nothing_left(5)
        report = json.load(open(d + "/r.json"))
        expect_equal((report["ended"], report["error"]), ("caller-gone", "its parent has ended"))
        wait_until(lambda: open(d + "/err").read() == "harpe-gov: the caller went away: the guest was "
                   "killed: its parent has ended\n", 5, f"its sentence: {open(d + '/err').read()!r}")


def test_without_parent():
    """Without the option the guest outlives it."""
    with agent_directory() as d:
        kill_parent("", d)
        time.sleep(2)
        wait_running("victim")
        sh("harpe-gov kill victim")
        wait_until(lambda: os.path.getsize(d + "/r.json"), 5, "the report is written")


def test_run_sh_ends_with_harpe():
    """The recipe for Harpe: the guest ends when the process that called run.sh is killed."""
    with agent_directory() as d:
        with open(d + "/out.py", "w") as f:
            f.write("import time; time.sleep(600)")
        p = as_agent(["sh", "-c", "/usr/share/harpe-gov/run.sh.example out.py & wait"], cwd=d)
        wait_until(pool_processes, 30, "a guest runs")
        p.kill()
        wait_until(lambda: not pool_processes() and not scopes(), 5, "the guest is gone")
        p.communicate()


def test_hostile_parent():
    """What is sent as the parent and is no pidfd is refused; one of a dead process is caller-gone."""
    for script, words in (("p = os.pipe()[0]", b"no pidfd"),
                          ("p = os.open('/dev/null', 0)", b"no pidfd"),
                          ("p = os.pidfd_open(os.spawnlp(os.P_NOWAIT, 'true', 'true'));"
                           "os.wait()", b"its parent ended before the command ran")):
        p = as_agent(["python3", "-c", RAW_CLIENT.replace("start()", script + "; s = start([p])")
                      + "print(s.recv(9000))"])
        r = Result(p, data=b"\n")
        expect(words in r.stdout, script, r)


# ---- standard streams ----

# Writes what 0, 1 and 2 are into the file that is named.
LOOK = """
import json, os, sys
seen = {fd: [os.readlink(f"/proc/self/fd/{fd}"), os.fstat(int(fd)).st_ino]
        for fd in sorted(os.listdir("/proc/self/fd"))[:-1]}
with open(sys.argv[1], "w") as f:
    json.dump(seen, f)
"""


def look(directory, command=("harpe-gov", "run", "--"), **options):
    """What a guest has as 0, 1 and 2."""
    r = Result(as_agent([*command, "python3", "-c", LOOK, "seen"], cwd=directory, **options))
    expect_equal(r.status, 0, r)
    with open(directory + "/seen") as f:
        seen = json.load(f)
    os.unlink(directory + "/seen")
    return seen


def test_streams_are_passed():
    """Files and pipes are the guest's own 0, 1 and 2, not copies; there is nothing else."""
    with agent_directory(0o777) as d, open(d + "/in", "w+") as given, open(d + "/out", "w") as out:
        read, write = os.pipe()
        seen = look(d, stdin=given, stdout=out, stderr=write)
        expect_equal({fd: inode for fd, (_, inode) in seen.items()},
                     {str(fd): os.fstat(f if isinstance(f, int) else f.fileno()).st_ino
                      for fd, f in ((0, given), (1, out), (2, write))}, seen)
        os.close(read)
        os.close(write)


def test_closed_streams():
    """What is closed is /dev/null for the guest, never another file."""
    with agent_directory(0o777) as d:
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            seen = look(d, ["sh", "-c", f'exec harpe-gov run --report r.json -- "$@" {closed}', "sh"])
            expect_equal(sorted(seen), ["0", "1", "2"], closed)
            for fd, text in (("0", "<&-"), ("1", " >&-"), ("2", "2>&-")):
                if text in " " + closed:
                    expect_equal(seen[fd][0], "/dev/null", closed)


def test_socket_pair():
    """One end of a Unix socket pair as all three, in both directions."""
    ours, theirs = socket.socketpair()
    with agent_directory() as d:
        p = start_run("--", "sh", "-c", "read x; echo got $x; echo error >&2", cwd=d, stdin=theirs,
                      stdout=theirs, stderr=theirs)
        theirs.close()
        ours.sendall(b"ping\n")
        text = b""
        while chunk := ours.recv(4096):
            text += chunk
        expect_equal((p.wait(), text), (0, b"got ping\nerror\n"))
    ours.close()


def test_refused_streams():
    """Sockets that lead elsewhere, directories and devices are refused by name."""
    stranger = socket.socket(socket.AF_UNIX)
    datagrams = socket.socketpair(type=socket.SOCK_DGRAM)[0]
    network = socket.socket()
    for stream, words in ((stranger, b"not connected"), (datagrams, b"no stream"),
                          (network, b"network"), (open("/dev/kmsg"), b"device")):
        r = run("--", "true", stdin=stream)
        expect_equal(r.status, 125, r)
        expect(b"standard input is" in r.stderr and words in r.stderr, words, r)
        stream.close()


COUNT = ["python3", "-c", "import sys; print(len(sys.stdin.buffer.read()))"]


def test_large_input():
    """100 MiB from a file, 10 MiB through a pipe, byte for byte."""
    with tempfile.TemporaryFile() as f:
        f.truncate(100 << 20)
        r = run("--", *COUNT, stdin=f)
    expect_equal((r.status, r.stdout), (0, b"%d\n" % (100 << 20)), r)
    with agent_directory() as d:
        r = Result(start_run("--", *COUNT, cwd=d, stdin=-1), data=bytes(10 << 20))
    expect_equal((r.status, r.stdout), (0, b"%d\n" % (10 << 20)), r)


def test_input_that_nobody_reads():
    """10 MiB that a guest never reads hold nobody up: the wall clock ends it."""
    with agent_directory() as d:
        p = start_run("--report", d + "/r.json", "--time", "2s", "--", "sleep", "60", cwd=d, stdin=-1)
        r = Result(p, d + "/r.json", data=bytes(10 << 20))
    expect_equal((r.status, r.report["ended"]), (124, "wall-clock"), r)


def test_input_that_never_comes():
    """A writer that is silent delays only a guest that reads."""
    with agent_directory() as d:
        read, write = os.pipe()
        r = Result(start_run("--", "echo", "fine", cwd=d, stdin=read))
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)
        p = start_run("--", *COUNT, cwd=d, stdin=read)
        os.close(read)
        time.sleep(3)
        expect_equal(p.poll(), None)
        os.close(write)
        r = Result(p)
    expect_equal((r.status, r.stdout), (0, b"0\n"), r)


def test_reader_that_goes_away():
    """`| head -c 10`: the guest gets SIGPIPE itself, as without a governor."""
    with agent_directory() as d:
        r = Result(as_agent(["bash", "-c", "harpe-gov run --report r.json -- yes | head -c 10;"
                                           " echo ${PIPESTATUS[0]}"], cwd=d), d + "/r.json")
    expect_equal(r.stdout, b"y\ny\ny\ny\ny\n141\n", r)
    expect_equal((r.report["ended"], r.report["signal"]), ("signaled", signal.SIGPIPE), r)


def test_full_file_system():
    """A full file system is the guest's error, and the run ends as any other."""
    with agent_directory() as d:
        sh(f"mkdir {d}/full && mount -t tmpfs -o size=64k,mode=0777 full {d}/full")
        try:
            command = ["sh", "-c", "exec harpe-gov run --report r.json -- head -c 1M /dev/zero >full/out"]
            r = Result(as_agent(command, cwd=d), d + "/r.json")
            expect_equal(os.path.getsize(d + "/full/out"), 64 << 10)
        finally:
            sh(f"umount {d}/full")
    expect_equal((r.status, r.report["ended"], r.report["exit_code"]), (1, "exited", 1), r)
    expect(b"No space left on device" in r.stderr, r)


# ---- where callers live ----

def systemd_run(script, *properties, options=("--pipe",)):
    p = subprocess.Popen(
        ["systemd-run", "--quiet", "--wait", "--collect", "--unit=caller", *options,
         *(f"--property={p}" for p in ("User=agent", "SupplementaryGroups=harpe-gov", *properties)),
         "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=-1, stderr=-1)
    return Result(p)


def test_service_with_journal():
    """A service whose output is the journal: the guest's lines arrive there."""
    sign = os.urandom(8).hex()
    r = systemd_run(f"cd /; harpe-gov run -- sh -c 'echo {sign}-out; echo {sign}-err >&2'",
                    options=())
    expect_equal(r.status, 0, r)
    sh("journalctl --sync")
    # Not by unit: journald books a line on the scope of who wrote it, if it still finds that.
    lines = sh("journalctl --boot --quiet --output=cat").split("\n")
    expect(f"{sign}-out" in lines and f"{sign}-err" in lines, lines)


def test_agent_service():
    """A sandboxed service that works below its private /tmp: the guest sees that directory."""
    r = systemd_run("d=$(mktemp -d); chmod 755 $d; cd $d; echo 'import os; print(os.getcwd(),"
                    " os.listdir())' >out.py; echo $d; exec harpe-gov run -- python3 out.py",
                    "PrivateTmp=yes", "ProtectSystem=strict", "NoNewPrivileges=yes",
                    "PrivateDevices=yes", "ProtectHome=yes", "RestrictSUIDSGID=yes",
                    "CapabilityBoundingSet=")
    expect_equal(r.status, 0, r)
    made, seen = r.stdout.decode().splitlines()
    expect_equal(seen, f"{made} ['out.py']", r)


def test_private_tmp_of_its_own():
    """The same, with --rw: nobody but the service can even name the directory, and it stays 0700."""
    r = systemd_run("umask 077; d=$(mktemp -d); cd $d; echo ': >made' >out.sh;"
                    " harpe-gov run --rw $d --pin out.sh:ro -- sh out.sh; stat -c '%a %U' . made",
                    "PrivateTmp=yes", "NoNewPrivileges=yes")
    expect_equal((r.status, r.stdout), (0, b"700 agent\n600 agent\n"), r)


def test_cron():
    """No terminal, hardly an environment, cwd /: works."""
    with agent_directory() as d:
        p = as_agent(["env", "-i", "/usr/bin/harpe-gov", "run", "--report", d + "/r.json", "--",
                      "/usr/bin/env"], cwd="/", start_new_session=True)
        r = Result(p, d + "/r.json")
    expect_equal((r.status, r.stdout, r.stderr), (0, b"", b""), r)


def test_ssh_without_terminal():
    """A session of its own with sockets for streams; the guest has no terminal either."""
    ours, theirs = socket.socketpair()
    with agent_directory() as d:
        p = start_run("--", "sh", "-c", "cat; ( : </dev/tty ) 2>/dev/null || echo none", cwd=d,
                      stdin=theirs, stdout=theirs, start_new_session=True)
        theirs.close()
        ours.sendall(b"over the wire\n")
        ours.shutdown(socket.SHUT_WR)
        r = Result(p)
        expect_equal((r.status, ours.recv(4096)), (0, b"over the wire\nnone\n"), r)
    ours.close()


def test_container():
    """From a user namespace of one's own: works, or says in one sentence why not."""
    inside = ["unshare", "-Ur", "-m", "harpe-gov", "run", "--", "id", "-u"]
    r = Result(as_agent(inside, cwd="/"))
    expect_equal(r.status, 0, r)
    expect(90000 <= int(r.stdout) < 90256, r)
    with agent_directory() as d:
        r = Result(as_agent(inside, cwd=d))
    expect_equal((r.status, r.stdout), (125, b""), r)
    expect_equal(r.stderr, b"harpe-gov: set-up failed, nothing ran: the caller's mount namespace "
                 b"belongs to another user namespace; call from outside of that container\n")


# ---- arguments, environment ----

ECHO = ["python3", "-c", "import sys; sys.stdout.buffer.write(open('/proc/self/cmdline', 'rb').read()"
        " + b'|' + open('/proc/self/environ', 'rb').read())"]


def test_bytes_of_arguments():
    """Arguments and environment arrive byte for byte."""
    arguments = [b"", b"\xff\xfe", b"a\nb", b"", bytes(range(1, 256)), b"--", b"'\"$x\\"]
    env = {b"\xc3\x28": b"\xff", b"EMPTY": b"", b"LARGE": bytes(range(1, 256)) * 402}
    with agent_directory() as d:
        r = Result(as_agent(["harpe-gov", "run", "--", *ECHO, *arguments], cwd=d, env=env))
        expect_equal(r.status, 0, r)
        expect(len(env[b"LARGE"]) >= 100 << 10)
        plain = Result(as_agent([*ECHO, *arguments], cwd=d, env=env))
    expect_equal(r.stdout, plain.stdout)


def test_large_arguments():
    """5 MiB of arguments, near the most that the kernel takes; what it does not take is said."""
    def large_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (32 << 20, 32 << 20))

    arguments = ["x" * (100 << 10)] * 52
    count = ["python3", "-c", "import sys; print(sum(map(len, sys.argv[1:])))"]
    with agent_directory() as d:
        r = Result(as_agent(["harpe-gov", "run", "--", *count, *arguments], cwd=d,
                            preexec_fn=large_stack))
        expect_equal((r.status, r.stdout), (0, b"%d\n" % (52 * (100 << 10))), r.stderr)


# ---- working directories ----


def test_bad_working_directories():
    """Each error is one sentence with the path."""
    agent = "exec setpriv --reuid=agent --regid=agent --init-groups harpe-gov run -- true"
    cases = (
        ("mkdir {d}/gone; cd {d}/gone; rmdir {d}/gone", b"the working directory: {d}/gone (deleted) has been removed"),
        ("cd /tmp", b"the working directory: /tmp: every guest has a /tmp of its own"),
        ("cd /dev/shm", b"the working directory: /dev/shm: every guest has a /dev/shm of its own"),
        ("install -d -m 0700 -o agent {d}/private; cd {d}/private",
         b"{d}/private: the guest cannot enter"),
        ("mount -t tmpfs x /usr/src; cd /usr/src", b"/usr/src: is another directory for a guest"),
    )
    with agent_directory() as d:
        for script, words in cases:
            p = subprocess.Popen(["unshare", "-m", "sh", "-ec", script.format(d=d) + "; " + agent],
                                 stdout=-1, stderr=-1)
            r = Result(p)
            expect_equal((r.status, r.stdout, r.stderr.count(b"\n")), (125, b"", 1), script, r)
            expect(words.replace(b"{d}", d.encode()) in r.stderr, words, r)


def test_mounts_of_the_callers_own():
    """A working directory that only the caller's mount namespace has is the guest's as well."""
    for place in "/mnt/x", "/srv":
        r = subprocess.run(["unshare", "-m", "sh", "-ec",
                            f"mount -t tmpfs x $(echo {place} | cut -c -4); mkdir -p {place}; cd {place};"
                            " echo text >file; exec setpriv --reuid=agent --regid=agent --init-groups"
                            " harpe-gov run -- cat file"], capture_output=True, check=False)
        expect_equal((r.returncode, r.stdout), (0, b"text\n"), r)


def test_symbolic_link_as_working_directory():
    """The guest is where the link leads."""
    with agent_directory() as d:
        os.symlink(d, d + ".link")
        try:
            r = Result(start_run("--", "sh", "-c", "/bin/pwd", cwd=d + ".link"))
        finally:
            os.unlink(d + ".link")
    expect_equal((r.status, r.stdout), (0, d.encode() + b"\n"), r)
