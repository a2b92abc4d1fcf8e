# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways out of a host that are tried, and who tries them. Each attempt carries a token, and goes
to a port of its own where its protocol has ports."""
import contextlib
import dataclasses
import errno
import itertools
import json
import select
import socket
import struct
import subprocess
import time
from socket import (AF_INET, AF_INET6, IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_IP, IPPROTO_IPV6,
                    IPPROTO_SCTP, IPPROTO_UDPLITE, SO_BROADCAST, SOCK_DGRAM, SOCK_SEQPACKET,
                    SOCK_STREAM, SOL_SOCKET)

import lib
from leaks import far as far_end
from leaks.far import FAR4, FAR6, NEAR, NEAR4, NEAR6

PROBE = lib.GUESTS / "leak_probe.py"
AF_RXRPC, AF_SMC = 33, 43
SOCK_DCCP, IPPROTO_DCCP, SOL_DCCP, DCCP_SOCKOPT_SERVICE = 6, 33, 269, 2
IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_GROUP = 39, 42
IPPROTO_L2TP, IPPROTO_SMC, IPPROTO_MPTCP = 115, 256, 262
LACKING = (errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT)
MODULES = ("smc", "rxrpc", "sctp", "dccp_ipv4", "l2tp_ip")

QUICK, PATIENT = 1.5, 15  # seconds: of an attempt that must not get through, of one that must
SETTLE = 0.5  # what has been sent must arrive within

RST, SYN_ACK = 0x04, 0x12


# ---- addresses ----


def in4(address, port=0):
    return struct.pack("=H", AF_INET) + struct.pack("!H", port) + \
        socket.inet_aton(address) + bytes(8)


def in6(address, port=0, scope=0):
    return struct.pack("=H", AF_INET6) + struct.pack("!HI", port, 0) + \
        socket.inet_pton(AF_INET6, address) + struct.pack("=I", scope)


def mapped(address, port):
    return in6("::ffff:" + address, port)


def rxrpc(address, port):
    """A service behind an address of UDP."""
    transport = in4(address, port)
    return struct.pack("=HHHH", AF_RXRPC, 1, SOCK_DGRAM, len(transport)) + \
        transport.ljust(28, b"\0")


def l2tp(address, _port):
    return struct.pack("=HH4sI", AF_INET, 0, socket.inet_aton(address), 1) + bytes(4)


def on_cable(address, port):
    return in6(address, port, far_end.near_index())


def packed(address):
    return socket.inet_pton(AF_INET6 if ":" in address else AF_INET, address)


def group4(number):
    return f"239.77.{number // 250}.{1 + number % 250}"


def group6(number):
    return f"ff05::4c45:{number:x}"


# ---- membership of groups ----


def join4(group):
    return ((IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, packed(group) + packed(NEAR4)),)


def join4_source(group):
    value = packed(group) + packed(NEAR4) + packed(FAR4)
    return ((IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, value),)


def join6(group):
    value = packed(group) + struct.pack("=I", far_end.near_index())
    return ((IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, value),)


def join_any(group):
    """The option that takes a sockaddr."""
    level, address = (IPPROTO_IPV6, in6(group)) if ":" in group else (IPPROTO_IP, in4(group))
    value = struct.pack("=Ixxxx128s", far_end.near_index(), address)
    return ((level, MCAST_JOIN_GROUP, value),)


# ---- what an attempt is ----

CABLE_OPTION = (SOL_SOCKET, socket.SO_BINDTODEVICE, NEAR.encode() + b"\0")
MULTICAST4 = (IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(NEAR4))
BROADCAST = (SOL_SOCKET, SO_BROADCAST, struct.pack("=i", 1))
REUSE = (SOL_SOCKET, socket.SO_REUSEADDR, struct.pack("=i", 1))
DCCP_SERVICE = (SOL_DCCP, DCCP_SOCKOPT_SERVICE, struct.pack("!I", 1))

BY_USER, BY_CGROUP, BY_ADDRESS, BY_FILTER = 1, 2, 3, 4  # the layers
ORDINARY = frozenset((BY_USER, BY_CGROUP, BY_ADDRESS))
EXOTIC = ORDINARY | {BY_FILTER}
NO_FILE = frozenset((BY_CGROUP, BY_ADDRESS, BY_FILTER))  # sockets that the kernel makes for itself
NO_OWNER = frozenset((BY_CGROUP, BY_ADDRESS))  # closed, with data in it
# The answer to a SYN belongs to a request: it has the user of the listener, but no cgroup.
BY_LISTENER = frozenset((BY_USER, BY_ADDRESS))
NO_FILE_LISTENER = frozenset((BY_ADDRESS, BY_FILTER))
JOIN = frozenset((BY_FILTER,))  # the kernel itself tells the network which group it is in now


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    stopped_by: frozenset
    way: str
    family: int
    type: int
    protocol: int
    address: object  # function of (destination, port)
    to: object  # a destination, or a function of the attempt's number
    options: object = ()  # (level, option, value)..., or a function of the destination
    listener: int = None  # the protocol of the listener at the far end
    shows: str = "token"  # what arrives of it: token, port, neighbour, group, syn-ack
    may_lack: bool = False  # not every kernel has it
    size: int = 0  # of the payload, at least

    def exists(self):
        """Can the kernel make such a socket?"""
        try:
            socket.socket(self.family, self.type, self.protocol).close()
        except OSError as error:
            return error.errno not in LACKING
        return True


def neighbour4(number):
    return f"198.18.{1 + number // 250}.{1 + number % 250}"


def neighbour6(number):
    return f"2001:db8::1:{number:x}"


def link_local(_number):
    lib.wait_until(far_end.link_local, 10, "the far end has a link-local address")
    return far_end.link_local()[0]


TCP, SCTP = socket.IPPROTO_TCP, IPPROTO_SCTP

KINDS = (
    Kind("tcp4", ORDINARY, "connect", AF_INET, SOCK_STREAM, 0, in4, FAR4, listener=TCP),
    Kind("tcp6", ORDINARY, "connect", AF_INET6, SOCK_STREAM, 0, in6, FAR6, listener=TCP),
    Kind("tcp-mapped", ORDINARY, "connect", AF_INET6, SOCK_STREAM, 0, mapped, FAR4, listener=TCP),
    Kind("tcp-link-local", ORDINARY, "connect", AF_INET6, SOCK_STREAM, 0, on_cable, link_local,
         listener=TCP),
    Kind("tcp-fastopen4", ORDINARY, "fastopen", AF_INET, SOCK_STREAM, 0, in4, FAR4, listener=TCP),
    Kind("tcp-fastopen6", ORDINARY, "fastopen", AF_INET6, SOCK_STREAM, 0, in6, FAR6, listener=TCP),
    Kind("tcp-fastopen-close", ORDINARY, "fastopen_close", AF_INET, SOCK_STREAM, 0, in4, FAR4,
         listener=TCP),
    Kind("udp4", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, FAR4),
    Kind("udp6", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, in6, FAR6),
    Kind("udp-mapped", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, mapped, FAR4),
    Kind("udp-fragments4", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, FAR4, size=5000),
    Kind("udp-fragments6", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, in6, FAR6, size=5000),
    Kind("udp-link-local", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, on_cable, link_local),
    Kind("udp-multicast4", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, "224.0.0.251",
         (MULTICAST4,)),
    Kind("udp-multicast6", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, on_cable, "ff02::1"),
    Kind("udp-broadcast", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, "192.0.2.255",
         (BROADCAST,)),
    Kind("udp-broadcast-all", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, "255.255.255.255",
         (BROADCAST, CABLE_OPTION)),
    Kind("udp-neighbour4", ORDINARY, "sendto", AF_INET, SOCK_DGRAM, 0, in4, neighbour4,
         shows="neighbour"),
    Kind("udp-neighbour6", ORDINARY, "sendto", AF_INET6, SOCK_DGRAM, 0, in6, neighbour6,
         shows="neighbour"),
    Kind("listen4", BY_LISTENER, "listen", AF_INET, SOCK_STREAM, 0, in4, "0.0.0.0", (REUSE,),
         shows="syn-ack"),
    Kind("listen6", BY_LISTENER, "listen", AF_INET6, SOCK_STREAM, 0, in6, "::", (REUSE,),
         shows="syn-ack"),
    Kind("ping4", EXOTIC, "sendto", AF_INET, SOCK_DGRAM, IPPROTO_ICMP, in4, FAR4),
    Kind("ping6", EXOTIC, "sendto", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, in6, FAR6),
    Kind("udplite4", EXOTIC, "sendto", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, in4, FAR4),
    Kind("udplite6", EXOTIC, "sendto", AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE, in6, FAR6),
    Kind("sctp-stream", EXOTIC, "connect", AF_INET, SOCK_STREAM, SCTP, in4, FAR4, listener=SCTP),
    Kind("sctp-packets", EXOTIC, "sendto", AF_INET6, SOCK_SEQPACKET, SCTP, in6, FAR6,
         listener=SCTP),
    Kind("mptcp4", EXOTIC, "connect", AF_INET, SOCK_STREAM, IPPROTO_MPTCP, in4, FAR4,
         listener=TCP),
    Kind("mptcp6", EXOTIC, "connect", AF_INET6, SOCK_STREAM, IPPROTO_MPTCP, in6, FAR6,
         listener=TCP),
    Kind("dccp", EXOTIC, "connect", AF_INET, SOCK_DCCP, IPPROTO_DCCP, in4, FAR4, (DCCP_SERVICE,),
         shows="port", may_lack=True),
    Kind("l2tp", EXOTIC, "sendto", AF_INET, SOCK_DGRAM, IPPROTO_L2TP, l2tp, FAR4, may_lack=True),
    Kind("join4", JOIN, "options", AF_INET, SOCK_DGRAM, 0, None, group4, join4, shows="group"),
    Kind("join4-source", JOIN, "options", AF_INET, SOCK_DGRAM, 0, None, group4, join4_source,
         shows="group"),
    Kind("join4-protocol-independent", JOIN, "options", AF_INET, SOCK_DGRAM, 0, None, group4,
         join_any, shows="group"),
    Kind("join4-by-ipv6-socket", JOIN, "options", AF_INET6, SOCK_DGRAM, 0, None, group4, join4,
         shows="group"),
    Kind("join6", JOIN, "options", AF_INET6, SOCK_DGRAM, 0, None, group6, join6, shows="group"),
    Kind("join6-protocol-independent", JOIN, "options", AF_INET6, SOCK_DGRAM, 0, None, group6,
         join_any, shows="group"),
    Kind("smc4", NO_FILE, "connect", AF_SMC, SOCK_STREAM, 0, in4, FAR4, listener=TCP),
    Kind("smc6", NO_FILE, "connect", AF_SMC, SOCK_STREAM, 1, in6, FAR6, listener=TCP),
    Kind("smc-inet", NO_FILE, "connect", AF_INET, SOCK_STREAM, IPPROTO_SMC, in4, FAR4, listener=TCP,
         may_lack=True),
    Kind("smc-listen", NO_FILE_LISTENER, "listen", AF_SMC, SOCK_STREAM, 0, in4, "0.0.0.0", (REUSE,),
         shows="syn-ack"),
    Kind("rxrpc", NO_FILE, "call", AF_RXRPC, SOCK_DGRAM, AF_INET, rxrpc, FAR4),
)
# Connected while nothing stood in the way; sends and closes at once when it may no longer.
ORPHANS = (
    Kind("orphan4", NO_OWNER, "release", AF_INET, SOCK_STREAM, 0, in4, FAR4, listener=TCP),
    Kind("orphan6", NO_OWNER, "release", AF_INET6, SOCK_STREAM, 0, in6, FAR6, listener=TCP),
)

numbers = itertools.count(1)


def load_modules():
    """As an administrator might have; some of them are not loaded on demand for everybody."""
    for module in MODULES:
        subprocess.run(["modprobe", "-q", module], check=False)


def available():
    """The kinds that this kernel knows, and the names of those that it does not."""
    load_modules()
    lacking = [kind.name for kind in KINDS if not kind.exists()]
    lib.expect(all(kind.may_lack for kind in KINDS if kind.name in lacking), lacking)
    return tuple(kind for kind in KINDS if kind.name not in lacking), lacking


class Attempt:
    def __init__(self, kind, getting_through):
        self.kind, self.number = kind, next(numbers)
        self.port = 20000 + self.number
        self.token = f"LEAK{self.number:08x}KAEL".encode()
        self.getting_through = getting_through
        self.to = kind.to(self.number) if callable(kind.to) else kind.to

    def payload(self):
        if self.kind.protocol in (IPPROTO_ICMP, IPPROTO_ICMPV6):
            echo = 8 if self.kind.family == AF_INET else 128
            return struct.pack("!BBHHH", echo, 0, 0, 0, 1) + self.token
        return self.token.ljust(self.kind.size, b".")

    def options(self):
        options = self.kind.options
        return options(self.to) if callable(options) else options

    def words(self, **changes):
        """For the probe."""
        return {
            "name": self.kind.name, "way": self.kind.way, "family": self.kind.family,
            "type": self.kind.type, "protocol": self.kind.protocol,
            "options": [(level, option, value.hex()) for level, option, value in self.options()],
            "address": self.kind.address(self.to, self.port).hex() if self.kind.address else "",
            "payload": self.payload().hex(), "patience": PATIENT if self.getting_through else QUICK,
            **({"key": str(self.number)} if self.kind.way in ("listen", "release") else {}),
            **changes}

    def meet(self, far):
        """The far end's part."""
        if self.kind.listener is not None:
            far.listen(self.port, self.kind.listener)

    def seen_in(self, frame):
        """Has this packet to do with the attempt?"""
        source, destination = frame.ports()
        if self.kind.way == "listen":  # a refusal is the kernel's own
            return source == self.port and not frame.tcp_flags() & RST
        if self.kind.shows == "neighbour" and frame.asks_for_neighbour() or \
                self.kind.shows == "group" and frame.tells_of_groups():
            return packed(self.to) in frame.rest
        return destination == self.port or self.token in frame.data

    def delivered_by(self, frame):
        """Does this packet carry what was to get out?"""
        if self.kind.shows == "token":
            return self.token in frame.data
        if self.kind.shows == "syn-ack":
            return self.seen_in(frame) and frame.tcp_flags() & SYN_ACK == SYN_ACK
        return self.seen_in(frame)


# ---- who tries ----


class Probe:
    """A process that runs the probe, as whoever it was started."""

    def __init__(self, process, report=None):
        self.process, self.report = process, report
        self.uid = self.hear()["uid"]

    def is_heard(self, seconds=0):
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def hear(self, seconds=60):
        if not self.is_heard(seconds):
            raise AssertionError(f"the probe says nothing within {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the probe has ended\n{self.end()}")
        return json.loads(line)

    def tell(self, words):
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, words):
        self.tell(words)
        return self.hear()

    def end(self):
        """The end of its input. What came of the process, with a guest's report."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdin = None
        return lib.Result(self.process, self.report)


COMMAND = ("python3", str(PROBE))


@contextlib.contextmanager
def control(user="other", wrap=lambda words: words, **options):
    """The probe as a user whom nobody confines."""
    with subprocess.Popen(wrap(COMMAND), user=user, group=user, extra_groups=[], cwd="/",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options) as process:
        try:
            yield Probe(process)
        finally:
            process.kill()


@contextlib.contextmanager
def guest(wrap=lambda words: words, net="drop", **options):
    """The probe as a guest, on the host's network: its row of `ps` and the probe."""
    with lib.agent_directory() as directory:
        report = directory + "/report.json"
        words = ("harpe-gov", "run", "--name", "leaks", "--net", net, "--report", report, "--",
                 *COMMAND)
        process = lib.as_agent(wrap(words), cwd=directory, stdin=subprocess.PIPE, **options)
        try:
            probe = Probe(process, report)
            lib.expect(probe.uid in lib.POOL, probe.uid)
            yield lib.wait_running("leaks"), probe
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(30)


# ---- one round ----


@dataclasses.dataclass
class Round:
    attempts: list
    frames: list
    said: dict

    def verdict(self, attempt):
        if any(attempt.delivered_by(f) for f in self.frames):
            return "arrives"
        return "shows" if any(attempt.seen_in(f) for f in self.frames) else "nothing"

    def wrong(self):
        """What did not happen as expected, in words."""
        for a in self.attempts:
            have, want = self.verdict(a), "arrives" if a.getting_through else "nothing"
            if have != want:
                yield f"{a.kind.name}: {have} where {want} was expected; the probe: " \
                      f"{self.said.get(a.kind.name)}; {[f for f in self.frames if a.seen_in(f)]}"


def go(far, probe, kinds, getting_through, between=lambda: None):
    """Tries every kind once; getting_through says of which it is expected. The layers are changed
    between what an attempt needs beforehand and the attempt."""
    attempts = [Attempt(kind, getting_through(kind)) for kind in kinds]
    for a in attempts:
        a.meet(far)
    orphans = [a for a in attempts if a.kind.way == "release"]
    if orphans:
        probe.ask([a.words(way="connect", payload="", patience=PATIENT) for a in orphans])
    between()
    far.arrived()
    listens = [a for a in attempts if a.kind.way == "listen"]
    said = probe.ask([a.words() for a in listens]) if listens else {}
    probe.tell([a.words() for a in attempts if a.kind.way != "listen"])
    for a in (a for a in listens if said[a.kind.name] == "done"):
        far.connect(NEAR6 if a.kind.family == AF_INET6 else NEAR4, a.port)
    result = Round(attempts, [], {**said, **probe.hear()})
    expected = [a for a in attempts if a.getting_through]
    far.wait(result.frames, lambda: all(result.verdict(a) == "arrives" for a in expected), PATIENT)
    time.sleep(SETTLE)
    result.frames += far.arrived()
    if listens:
        probe.ask([a.words(way="release", payload="") for a in listens])
    far.forget()
    return result
