# SPDX-License-Identifier: GPL-2.0-or-later
"""No packet of a guest leaves the host, judged by what arrives at the far end of a cable. For each
layer: what it stops alone, and that the same gets out of the same guest without it."""
import contextlib
import fcntl
import itertools
import os
import socket
import struct
import subprocess
import termios
from socket import AF_INET, AF_INET6, AF_UNIX, IPPROTO_TCP, SOCK_DGRAM, SOCK_STREAM

from lib import Result, agent_directory, expect, expect_equal, run, sh, start_run, wait_ready
from leaks import far as far_end
from leaks import layers
from leaks.attempts import AF_RXRPC, AF_SMC, KINDS, ORPHANS, Attempt, available, control, go, guest
from leaks.far import FAR4, FAR6, NEAR4, NEAR6, cable

CLOSED_PORT, OPEN_PORT = 19998, 19999
TOKEN = b"LEAKED-BY-DESCRIPTOR"


def assert_as_expected(round_, *context):
    wrong = list(round_.wrong())
    expect(not wrong, *context, *wrong)


def only(*names):
    kinds = [kind for kind in KINDS if kind.name in names]
    expect_equal(len(kinds), len(names), names)
    return kinds


# ---- all layers ----


def test_everything_of_a_user():
    """The attempts are able: every one arrives from a user whom nobody confines."""
    kinds, _ = available()
    with cable() as far, control() as probe:
        assert_as_expected(go(far, probe, kinds + ORPHANS, lambda kind: True))


def test_kernel_has_all():
    """No attempt is left out for another reason than that this kernel is too old for it."""
    _, lacking = available()
    newer = {"smc-inet"} if kernel_release() < (6, 11) else set()
    expect(set(lacking) <= newer, f"this kernel has no {', '.join(lacking)}")


def kernel_release():
    return tuple(int(number) for number in os.uname().release.split(".")[:2])


def test_nothing_of_a_guest():
    """TCP, UDP, ICMP, SCTP, SMC, RXRPC, ...: not one packet, of whatever kind."""
    kinds, _ = available()
    with cable() as far, guest() as (_, probe):
        round_ = go(far, probe, kinds, lambda kind: False)
        assert_as_expected(round_)
        expect_equal([f for f in round_.frames if not f.is_chatter()], [])


def test_foreign_tables():
    """Others that accept everything, before us and after us, let nothing of a guest through."""
    kinds, _ = available()
    chains = "".join(f"chain c{n} {{ type filter hook output priority {priority}; accept; }}\n"
                     for n, priority in enumerate((-300, -10, 300)))
    table = f"table inet leaks_foreign {{ {chains} }}"
    with cable() as far, contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["nft", "delete", "table", "inet", "leaks_foreign"])
        sh(["nft", table])
        _, probe = stack.enter_context(guest())
        assert_as_expected(go(far, probe, kinds, lambda kind: False), "older than the guest")
        sh(["nft", f"delete table inet leaks_foreign; {table}"])
        assert_as_expected(go(far, probe, kinds, lambda kind: False), "newer than the guest")


# ---- descriptors from outside ----


@contextlib.contextmanager
def sockets_of_root(far):
    """Connected to the far end, by root: TCP and UDP."""
    far.listen(OPEN_PORT)
    far.take_datagrams(OPEN_PORT)
    with socket.create_connection((FAR4, OPEN_PORT)) as tcp, \
            socket.socket(AF_INET6, SOCK_DGRAM) as udp:
        udp.connect((FAR6, OPEN_PORT))
        yield tcp, udp


def holding(tcp, udp):
    """A command that has them as descriptors 7 and 8."""
    script = f'exec 7<&{tcp.fileno()} 8<&{udp.fileno()}; exec "$@"'
    return {"wrap": lambda words: ("bash", "-c", script, "bash", *words),
            "pass_fds": (tcp.fileno(), udp.fileno())}


def tokens(far, seconds, enough=None):
    """How many packets with the token arrive, in that time or until there are enough."""
    frames = []

    def count():
        return sum(TOKEN in f.data for f in frames)

    far.wait(frames, lambda: count() == enough, seconds)
    return count()


WRITES = [{"name": str(fd), "way": "descriptor", "descriptor": fd, "payload": TOKEN.hex()}
          for fd in (7, 8)]
LOOK = [{"name": "look", "way": "descriptors"}]


def test_inherited_descriptors():
    """Sockets that root made and the caller holds: a guest has none of them."""
    with cable() as far, sockets_of_root(far) as pair:
        with control(**holding(*pair)) as probe:
            expect_equal(probe.ask(WRITES), {"7": "done", "8": "done"})
            expect_equal(tokens(far, 10, 2), 2)
        with guest(**holding(*pair)) as (_, probe):
            expect_equal(probe.ask(WRITES), {"7": "EBADF", "8": "EBADF"})
            expect_equal(probe.ask(LOOK), {"look": "0 1 2 3"}, "3 is the directory itself")
            expect_equal(tokens(far, 1), 0)


def test_socket_as_standard_stream():
    """A network socket as standard input, output or error is refused."""
    with cable() as far, sockets_of_root(far) as pair:
        for s, (fd, name) in itertools.product(pair, enumerate(("stdin", "stdout", "stderr"))):
            say = ["sh", "-c", f"printf {TOKEN.decode()} >&{fd}"]
            subprocess.run(say, user="other", group="other", check=True, **{name: s})
            expect_equal(tokens(far, 10, 1), 1, "the control", name)
            with agent_directory() as d:
                r = Result(start_run("--", *say, cwd=d, **{name: s}))
            expect_equal(r.status, 125, name, r)
            expect_equal(tokens(far, 0.5), 0, name, r)


# ---- each layer ----


def test_each_layer():
    """Whatever layers stand, under one guest that lives on: what they stop and what gets out."""
    kinds, _ = available()
    with cable() as far, guest() as (row, probe):
        with layers.of(row) as stack:
            for count in range(len(layers.ALL) + 1):
                for standing in map(frozenset, itertools.combinations(layers.ALL, count)):
                    stack.stand(())  # orphans get their connections
                    round_ = go(far, probe, kinds + ORPHANS,
                                lambda kind: not kind.stopped_by & standing,
                                lambda: stack.stand(standing))
                    assert_as_expected(round_, f"standing: {set(standing)}")
        probe.end()
    sh("systemctl restart harpe-gov.service")
    wait_ready()


SOCKETS = {
    "smc": ("socket", AF_SMC, SOCK_STREAM, 0),
    "smc, upper half": ("socket", AF_SMC | 7 << 32, SOCK_STREAM, 0),
    "smc, flags": ("socket", AF_SMC, SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0),
    "smc, i386": ("socket_i386", AF_SMC, SOCK_STREAM, 0),
    "mptcp, upper half": ("socket", AF_INET, SOCK_STREAM, 262 | 7 << 32),
    "rxrpc": ("socket", AF_RXRPC, SOCK_DGRAM, AF_INET),
    "netlink": ("socket", socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "vsock": ("socket", socket.AF_VSOCK, SOCK_STREAM, 0),
    "ring": ("io_uring", 0, 0, 0),
}
# Root only, filter or not.
RAW = {
    "raw": ("socket", AF_INET, socket.SOCK_RAW, IPPROTO_TCP),
    "raw6": ("socket", AF_INET6, socket.SOCK_RAW, IPPROTO_TCP),
    "packet": ("socket", socket.AF_PACKET, socket.SOCK_RAW, 0x300),
    "packet, cooked": ("socket", socket.AF_PACKET, SOCK_DGRAM, 0x300),
}


def socket_words(table):
    return [{"name": name, "way": way, "family": family, "type": kind, "protocol": protocol}
            for name, (way, family, kind, protocol) in table.items()]


def test_filter():
    """Layer 4 refuses at socket(2), by whatever door; without it the same guest gets them."""
    available()
    every = {f"{family}/{kind}": ("socket", family, kind, 0)
             for family in range(64) for kind in range(1, 11)}
    ip = {f"{family}/{kind}" for family in (AF_INET, AF_INET6)
          for kind in (SOCK_STREAM, SOCK_DGRAM)}
    unix = {f"{AF_UNIX}/{kind}" for kind in (1, 2, 3, 5)}
    with guest() as (row, probe):
        said = probe.ask(socket_words(SOCKETS | RAW))
        expect_equal(said, dict.fromkeys(SOCKETS | RAW, "EPERM"))
        said = probe.ask(socket_words(every))
        expect_equal({name for name, what in said.items() if what == "done"}, ip | unix, said)
        expect_equal({what for name, what in said.items() if not name.startswith(f"{AF_UNIX}/")},
                     {"done", "EPERM"}, said)
        with layers.without_filter(row):
            said = probe.ask(socket_words(SOCKETS | RAW))
        expect_equal(said, dict.fromkeys(SOCKETS, "done") | dict.fromkeys(RAW, "EPERM"))


# ---- a network namespace of its own ----


def test_isolated():
    """With the default profile nothing arrives either, and the report counts what was tried."""
    kinds, _ = available()
    with cable() as far, guest(net="isolated") as (_, probe):
        assert_as_expected(go(far, probe, kinds, lambda kind: False))
        r = probe.end()
    expect_equal((r.report["drops"]["uid"], r.report["drops"]["slice"]), (0, 0), r)
    expect(r.report["drops"]["unroutable"] >= len(only("udp4", "tcp4")), r)


def test_isolated_alone():
    """The namespace holds when none of the other layers stands."""
    kinds, _ = available()
    with cable() as far, guest(net="isolated") as (row, probe):
        with layers.of(row) as stack:
            stack.stand(())
            assert_as_expected(go(far, probe, kinds, lambda kind: False))
        probe.end()
    sh("systemctl restart harpe-gov.service")
    wait_ready()


def test_own_ports():
    """A guest's ports and abstract sockets are not the host's; its loopback is its own and works."""
    serve = """
import socket, sys
s = socket.create_server(("", 18080))
u = socket.socket(socket.AF_UNIX)
u.bind("\\0harpe-test")
with socket.create_connection(("127.0.0.1", 18080)) as c, s.accept()[0] as a:
    a.sendall(b"x")
    assert c.recv(1) == b"x"
for address in ("\\0host-test", ("127.0.0.1", 18081)):
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as c:
        assert c.connect_ex(address) == 111, address
print("up", flush=True)
sys.stdin.read()
"""
    with agent_directory() as d, socket.socket(AF_UNIX) as unix, \
            socket.create_server(("", 18081)) as listener:
        unix.bind("\0host-test")
        unix.listen()
        p = start_run("--", "python3", "-c", serve, cwd=d, stdin=subprocess.PIPE)
        try:
            expect_equal(p.stdout.readline(), b"up\n", "the guest's own loopback")
            with socket.create_server(("", 18080)), socket.socket(AF_UNIX) as mine:
                mine.bind("\0harpe-test")
            for s in (unix, listener):
                s.setblocking(False)
                expect_raises(BlockingIOError, s.accept)
        finally:
            p.communicate(timeout=60)
        expect_equal(p.returncode, 0)


def expect_raises(kind, f):
    try:
        f()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


# ---- what the report says of it ----


def test_drops():
    """The report counts what layer 1 dropped, and that nothing came as far as layer 2."""
    packets = 5
    with cable() as far, guest() as (_, probe):
        assert_as_expected(go(far, probe, only("udp4") * packets, lambda kind: False))
        r = probe.end()
    expect_equal((r.status, r.report["drops"]),
                 (0, {"uid": packets, "slice": 0, "unroutable": None}), r)
    r = run("--net", "drop", "--", "true")
    expect_equal(r.report["drops"], {"uid": 0, "slice": 0, "unroutable": None}, "the next guest",
                 r)


def test_stray_drops():
    """The report counts what only layer 2 dropped: packets of sockets without a file."""
    available()
    with cable() as far, guest() as (row, probe):
        with layers.without_filter(row):
            kinds = only("smc4", "rxrpc")
            assert_as_expected(go(far, probe, kinds, lambda kind: False))
        r = probe.end()
    expect_equal(r.report["drops"]["uid"], 0, r)
    expect(r.report["drops"]["slice"] >= 2, r)


# ---- nobody else is hurt ----


def far_socket(address, kind=SOCK_STREAM, protocol=0):
    with far_end.inside():
        s = socket.socket(AF_INET6 if ":" in address else AF_INET, kind, protocol)
    s.settimeout(10)
    return s


def assert_talks(far, near, there):
    """TCP of root's, in both directions, whoever begins."""
    listener = far.listen(OPEN_PORT)
    with socket.create_connection((there, OPEN_PORT), 10) as ours:
        theirs = listener.accept()[0]
        assert_echo(ours, theirs)
    with socket.create_server((near, OPEN_PORT), family=ours.family) as server, \
            far_socket(near) as theirs:
        theirs.connect((near, OPEN_PORT))
        assert_echo(server.accept()[0], theirs)
    far.forget()


def assert_echo(ours, theirs):
    with ours, theirs:
        for one, other in ((ours, theirs), (theirs, ours)):
            one.sendall(b"question")
            other.settimeout(10)
            expect_equal(other.recv(100), b"question")


def assert_refuses(near):
    """A closed port answers with a reset, which has no owner."""
    with far_socket(near) as s:
        try:
            s.connect((near, CLOSED_PORT))
        except ConnectionRefusedError:
            return
    raise AssertionError(f"{near} does not refuse")


def assert_answers_ping(near):
    """As the kernel does, in nobody's name; and to who has to ask for the neighbour first."""
    sh(f"ip -n {far_end.NETNS} neighbour flush dev {far_end.FAR}")
    protocol, request, reply = (58, 128, 129) if ":" in near else (1, 8, 0)
    with far_socket(near, SOCK_DGRAM, protocol) as s:
        s.sendto(bytes((request,)) + bytes(7), (near, 0))
        expect_equal(s.recv(100)[0], reply)


def assert_closes_in_order(far, there):
    """What was sent arrives to the end, though nobody holds the socket any more."""
    listener = far.listen(OPEN_PORT)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with socket.create_connection((there, OPEN_PORT), 10) as ours:
        theirs = listener.accept()[0]
        ours.setblocking(False)
        sent = ours.send(bytes(100000))
        waiting = struct.unpack("i", fcntl.ioctl(ours, termios.TIOCOUTQ, bytes(4)))[0]
    expect(waiting > 10000, "nothing was waiting at close()", sent, waiting)
    theirs.settimeout(10)
    received = 0
    while data := theirs.recv(4096):
        received += len(data)
    theirs.close()
    far.forget()
    expect_equal(received, sent)


def test_nobody_else_is_hurt():
    """While a guest tries everything: root's and other users' traffic, and the kernel's own."""
    kinds, _ = available()
    with cable() as far, guest() as (_, probe), control() as other:
        attempts = [Attempt(kind, False) for kind in kinds * 10]
        probe.tell([a.words(patience=60) for a in attempts])
        assert_as_expected(go(far, other, kinds, lambda kind: True), "another user")
        for near, there in ((NEAR4, FAR4), (NEAR6, FAR6)):
            assert_talks(far, near, there)
            assert_refuses(near)
            assert_answers_ping(near)
            assert_closes_in_order(far, there)
        expect(not probe.is_heard(), "the guest had ended its attempts before")
