# SPDX-License-Identifier: GPL-2.0-or-later
"""The far end of a cable: a network namespace with listeners and a capture. Only what arrives here
counts. No process lives in it: a socket belongs to the namespace in which it was made."""
import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import time

NETNS, NEAR, FAR = "leaks-far", "leaks0", "leaks1"
NEAR4, FAR4, NEAR6, FAR6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"
NEIGHBOURS = "198.18.0.1/15"  # nobody lives there: who sends there asks for the neighbour first
PING_GROUPS = ("net/ipv4/ping_group_range", "0 2147483647")
SYSCTLS = {
    PING_GROUPS[0]: PING_GROUPS[1],
    "net/ipv4/tcp_fastopen": "5",  # data in the first SYN, without a cookie
}

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6
SO_TIMESTAMP, UDP_ENCAP, UDP_ENCAP_L2TPINUDP = 29, 100, 3
ETH_P_ALL, ETH_P_IP, ETH_P_ARP, ETH_P_IPV6 = 3, 0x0800, 0x0806, 0x86DD
HAVE_PORTS = (socket.IPPROTO_TCP, socket.IPPROTO_UDP, 33, socket.IPPROTO_SCTP, 136)
CAPTURE_BYTES = 64 << 20
# What a host says of itself, in nobody's name: neighbour and router discovery, group membership.
CHATTER6 = (130, 131, 132, 133, 134, 135, 136, 143)

libc = ctypes.CDLL(None, use_errno=True)


def sh(command):
    subprocess.run(command, shell=True, check=True, text=True, capture_output=True)


def setns(fd):
    if libc.setns(fd, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside():
    """Sockets that are made and sysctls that are written here are the far end's."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/run/netns/{NETNS}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(there)
        yield
    finally:
        setns(own)
        os.close(own)
        os.close(there)


class Frame:
    """One Ethernet frame, as far as the tests read it."""

    def __init__(self, data):
        self.data = data
        self.ethertype = struct.unpack_from("!H", data, 12)[0]
        self.protocol, self.rest = None, data[14:]
        if self.ethertype == ETH_P_IP and len(data) >= 34:
            self.protocol, self.rest = data[23], data[14 + (data[14] & 15) * 4:]
        elif self.ethertype == ETH_P_IPV6 and len(data) >= 54:
            self.protocol, self.rest = data[20], data[54:]
            if self.protocol == 0 and len(self.rest) >= 8:  # hop-by-hop options
                self.protocol = self.rest[0]
                self.rest = self.rest[8 + self.rest[1] * 8:]

    def ports(self):
        if self.protocol in HAVE_PORTS and len(self.rest) >= 4:
            return struct.unpack_from("!HH", self.rest)
        return None, None

    def tcp_flags(self):
        is_tcp = self.protocol == socket.IPPROTO_TCP and len(self.rest) >= 14
        return self.rest[13] if is_tcp else 0

    def asks_for_neighbour(self):
        return self.ethertype == ETH_P_ARP or \
            self.protocol == socket.IPPROTO_ICMPV6 and self.rest[:1] == b"\x87"

    def tells_of_groups(self):
        return self.protocol == socket.IPPROTO_IGMP or \
            self.protocol == socket.IPPROTO_ICMPV6 and self.rest[:1] == b"\x8f"

    def is_chatter(self):
        return self.ethertype == ETH_P_ARP or \
            self.protocol == socket.IPPROTO_ICMPV6 and self.rest[:1] and self.rest[0] in CHATTER6

    def __repr__(self):
        return f"<{self.ethertype:04x} protocol {self.protocol} ports {self.ports()} " \
               f"{self.data[14:].hex()}>"


class Far:
    def __init__(self):
        with inside():
            self.capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.capture.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, CAPTURE_BYTES)
        self.capture.bind((FAR, 0))
        self.capture.setblocking(False)
        self.listeners = []

    def close(self):
        self.forget()
        self.capture.close()

    def listen(self, port, protocol=socket.IPPROTO_TCP):
        """The kernel answers, and takes what is sent; nobody accepts."""
        with inside():
            s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("::", port))
        s.listen(8)
        self.listeners.append(s)
        return s

    def take_datagrams(self, port):
        with inside():
            s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.bind(("::", port))
        self.listeners.append(s)

    def connect(self, address, port):
        """A connection from here to the near end; does not wait for an answer."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with inside():
            s = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            s.connect((address, port))
        self.listeners.append(s)
        return s

    def forget(self):
        for s in self.listeners:
            s.close()
        self.listeners = []

    def arrived(self):
        """What has come in from the cable since the last call."""
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, where = self.capture.recvfrom(65536)
                if where[2] != socket.PACKET_OUTGOING:
                    frames.append(Frame(data))
        lost = struct.unpack("II", self.capture.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        if lost:
            raise AssertionError(f"the capture lost {lost} packets")
        return frames

    def wait(self, frames, condition, seconds):
        """Adds to frames what arrives until the condition holds, but no longer than that."""
        deadline = time.monotonic() + seconds
        frames += self.arrived()
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
            frames += self.arrived()


def read_sysctl(name):
    with open(f"/proc/sys/{name}") as f:
        return f.read().strip()


def write_sysctl(name, value):
    with open(f"/proc/sys/{name}", "w") as f:
        f.write(value)


def near_index():
    return socket.if_nametoindex(NEAR)


def link_local():
    """The far end's addresses that are valid on the cable only: the kernel makes one a little later."""
    with inside(), open("/proc/net/if_inet6") as f:
        rows = [line.split() for line in f]
    return [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))
            for row in rows if row[-1] == FAR and row[0].startswith("fe80")]


def lay_cable():
    sh(f"ip netns add {NETNS} && ip link add {NEAR} type veth peer name {FAR} netns {NETNS}")
    write_sysctl(f"net/ipv6/conf/{NEAR}/accept_dad", "0")
    with inside():
        write_sysctl(f"net/ipv6/conf/{FAR}/accept_dad", "0")
        write_sysctl(*PING_GROUPS)
    sh(f"""
        ip address add {NEAR4}/24 dev {NEAR}
        ip address add {NEIGHBOURS} dev {NEAR}
        ip address add {NEAR6}/64 dev {NEAR} nodad
        ip link set {NEAR} up
        ip -n {NETNS} address add {FAR4}/24 dev {FAR}
        ip -n {NETNS} address add {FAR6}/64 dev {FAR} nodad
        ip -n {NETNS} link set lo up
        ip -n {NETNS} link set {FAR} up""")


def cut_cable():
    for command in (f"ip link del {NEAR}", f"ip netns del {NETNS}"):
        subprocess.run(command, shell=True, check=False, capture_output=True)


kept = []


def keep_code_patched():
    """A socket of RXRPC uses features for which the kernel patches its code when the first socket
    has them and when the last one goes. QEMU's emulation of two processors can crash over that, so
    this one has them to the end."""
    if not kept:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
        s.setsockopt(socket.IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_L2TPINUDP)
        kept.append(s)


@contextlib.contextmanager
def cable():
    """A far end for as long as a test lasts."""
    keep_code_patched()
    before = {name: read_sysctl(name) for name in SYSCTLS}
    far = None
    try:
        cut_cable()
        lay_cable()
        for name, value in SYSCTLS.items():
            write_sysctl(name, value)
        far = Far()
        yield far
    finally:
        if far:
            far.close()
        cut_cable()
        for name, value in before.items():
            write_sysctl(name, value)
