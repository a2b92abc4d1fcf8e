# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes the layers of the guests' isolation away under a guest that runs, and puts them back. The
product knows nothing of it: root does with the kernel what a bug in a layer would amount to.

    1  the rule on the pool's uids       the daemon, which owns the table, is stopped, and its
    2  the rules on the slice's cgroup   netlink socket borrowed
    3  IPAddressDeny= of the scope       BPF programs are detached
    4  seccomp                           suspended by a tracer"""
import contextlib
import ctypes
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess

import lib

ALL = frozenset((1, 2, 3, 4))
TABLE, CHAIN = b"harpe_gov\0", b"output\0"

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

SYS_BPF, SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 321, 434, 438  # x86-64


def checked(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


# ---- 1 and 2: rules of nf_tables ----

NETLINK_NETFILTER = 12
SO_PROTOCOL, SO_DOMAIN = 38, 39
NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST, ACK, DUMP, CREATE, APPEND = 1, 4, 0x300, 0x400, 0x800
NFTABLES = 10  # the subsystem
BATCH_BEGIN, BATCH_END = 16, 17
NEWTABLE, GETTABLE, DELTABLE, NEWRULE, GETRULE, DELRULE = (
    NFTABLES << 8 | n for n in (0, 1, 2, 6, 7, 8))
NFPROTO_INET = 1
TABLE_NAME, TABLE_FLAGS, TABLE_OWNER = 1, 2, 7
RULE_TABLE, RULE_CHAIN, RULE_EXPRESSIONS = 1, 2, 4
NESTED = 0x8000


def attribute(kind, data):
    padding = b"\0" * (-len(data) % 4)
    return struct.pack("=HH", len(data) + 4, kind) + data + padding


def attributes(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


def message(kind, flags, seq, family, body=b"", resource=0):
    body = struct.pack("!BBH", family, 0, resource) + body
    return struct.pack("=IHHII", len(body) + 16, kind, flags, seq, 0) + body


def messages(data):
    while len(data) >= 16:
        size, kind, _, seq, _ = struct.unpack_from("=IHHII", data)
        yield kind, seq, data[16:size]
        data = data[(size + 3) & ~3:]


def receive(s):
    poll = select.poll()
    poll.register(s, select.POLLIN)
    if not poll.poll(10000):
        raise TimeoutError("no answer from nf_tables")
    return s.recv(1 << 16)


def dump(kind, body=b""):
    """The attributes of every object."""
    objects = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as s:
        s.sendto(message(kind, REQUEST | DUMP, 1, NFPROTO_INET, body), (0, 0))
        while True:
            for answer, _, data in messages(receive(s)):
                if answer == NLMSG_DONE:
                    return objects
                if answer == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", data)[0], "nf_tables")
                objects.append(attributes(data[4:]))


def send(s, parts, flags=0):
    """One transaction: parts are (kind, flags, body). Returns the numbers of its messages."""
    seqs = range(0x7E570001, 0x7E570001 + len(parts))
    batch = message(BATCH_BEGIN, REQUEST, seqs[0] - 1, 0, resource=NFTABLES)
    for seq, (kind, kind_flags, body) in zip(seqs, parts):
        batch += message(kind, REQUEST | flags | kind_flags, seq, NFPROTO_INET, body)
    batch += message(BATCH_END, REQUEST, seqs[-1] + 1, 0, resource=NFTABLES)
    s.sendto(batch, (0, 0))
    return seqs


def commit(s, parts):
    """The same, and it was done."""
    seqs = send(s, parts, ACK)
    missing = set(seqs)
    while missing:
        for answer, seq, data in messages(receive(s)):
            if answer == NLMSG_ERROR and (seq in seqs or seq == seqs[0] - 1):
                number = -struct.unpack_from("=i", data)[0]
                if number:
                    raise OSError(number, "nf_tables: " + os.strerror(number))
                missing.discard(seq)


def owner_of_table():
    for table in dump(GETTABLE):
        if table[TABLE_NAME] == TABLE:
            return struct.unpack("!I", table[TABLE_OWNER])[0]
    raise AssertionError("there is no table")


def borrow_descriptors(pid):
    """Duplicates of all the sockets of a process."""
    pidfd = checked(libc.syscall(SYS_PIDFD_OPEN, pid, 0), "pidfd_open")
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                    yield checked(libc.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0),
                                  "pidfd_getfd")
    finally:
        os.close(pidfd)


def owning_socket(pid):
    """The daemon's netlink socket, whose port owns the table."""
    owner, found = owner_of_table(), None
    for fd in borrow_descriptors(pid):
        s = socket.socket(fileno=fd)
        if s.getsockopt(socket.SOL_SOCKET, SO_DOMAIN) == socket.AF_NETLINK and \
                s.getsockopt(socket.SOL_SOCKET, SO_PROTOCOL) == NETLINK_NETFILTER and \
                s.getsockname()[0] == owner:
            found = s
        else:
            s.close()
    if not found:
        raise AssertionError(f"process {pid} has no socket with port {owner}, the table's owner")
    return found


class Rules:
    """The rules as they were found, and which of them stand."""

    WHERE = attribute(RULE_TABLE, TABLE) + attribute(RULE_CHAIN, CHAIN)

    def __init__(self, s):
        self.socket = s
        self.rules = [(self.layer(rule), rule[RULE_EXPRESSIONS]) for rule in self.there()]
        self.standing = None

    def there(self):
        return dump(GETRULE, self.WHERE)

    @staticmethod
    def layer(rule):
        words = rule[RULE_EXPRESSIONS]
        if b"socket\0" in words:
            return 2
        if b"meta\0" in words and b"lookup\0" in words:
            return 1
        raise AssertionError(f"a rule of no layer: {words!r}")

    def stand(self, layers):
        """Empties the chain and fills it again, in one transaction."""
        parts = [(DELRULE, 0, self.WHERE)] if self.there() else []
        kept = [words for layer, words in self.rules if layer in layers]
        for words in kept:
            body = self.WHERE + attribute(RULE_EXPRESSIONS | NESTED, words)
            parts.append((NEWRULE, CREATE | APPEND, body))
        if parts:
            commit(self.socket, parts)
        lib.expect_equal(sorted(self.layer(r) for r in self.there()),
                         sorted(layer for layer, _ in self.rules if layer in layers))

    def restore(self):
        self.stand(ALL)
        self.socket.close()


# ---- 3: programs on the scope's cgroup ----

BPF_PROG_ATTACH, BPF_PROG_DETACH, BPF_PROG_GET_FD_BY_ID, BPF_PROG_QUERY = 8, 9, 13, 16
ATTACH_TYPES = (0, 1)  # ingress, egress
QUERY_EFFECTIVE = 1
PROGRAMS_MAX = 64


def bpf(command, attr):
    buffer = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    result = libc.syscall(SYS_BPF, command, buffer, 128)
    return checked(result, f"bpf command {command}"), buffer.raw


def programs(cgroup_fd, attach_type, flags=0):
    """The ids of the programs on a cgroup, or of those in force there, and their flags."""
    ids = (ctypes.c_uint32 * PROGRAMS_MAX)()
    attr = struct.pack("=IIIIQI", cgroup_fd, attach_type, flags, 0, ctypes.addressof(ids),
                       PROGRAMS_MAX)
    _, attr = bpf(BPF_PROG_QUERY, attr)
    attach_flags, count = struct.unpack_from("=I8xI", attr, 12)
    return list(ids[:count]), attach_flags


class Programs:
    def __init__(self, scope):
        self.scope = os.open(scope, os.O_RDONLY | os.O_DIRECTORY)
        self.guest = os.open(scope / "guest", os.O_RDONLY | os.O_DIRECTORY)
        self.attached, self.standing = [], True
        for attach_type in ATTACH_TYPES:
            ids, flags = programs(self.scope, attach_type)
            lib.expect(ids, f"no program of attach type {attach_type} on {scope}")
            for number in ids:
                fd, _ = bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("=I", number))
                self.attached.append((attach_type, fd, flags))

    def stand(self, wanted):
        if wanted != self.standing:
            for attach_type, fd, flags in self.attached:
                attr = struct.pack("=IIII", self.scope, fd, attach_type, flags if wanted else 0)
                bpf(BPF_PROG_ATTACH if wanted else BPF_PROG_DETACH, attr)
        self.standing = wanted
        for attach_type in ATTACH_TYPES:
            count = len(programs(self.guest, attach_type, QUERY_EFFECTIVE)[0])
            lib.expect_equal(count > 0, wanted, f"{count} programs of attach type {attach_type}")

    def restore(self):
        with contextlib.suppress(FileNotFoundError):
            self.stand(True)
        for _, fd, _ in self.attached:
            os.close(fd)
        os.close(self.guest)
        os.close(self.scope)


# ---- 4: the system call filter ----

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
PTRACE_O_SUSPEND_SECCOMP = 1 << 21
WALL = 0x40000000


class Filter:
    """The guest's first process, with its filter or without."""

    def __init__(self, pid):
        self.pid, self.standing = pid, True

    def stand(self, wanted):
        if wanted == self.standing:
            return
        if not wanted:
            checked(libc.ptrace(PTRACE_SEIZE, self.pid, None, PTRACE_O_SUSPEND_SECCOMP),
                    "PTRACE_SEIZE")
        else:
            checked(libc.ptrace(PTRACE_INTERRUPT, self.pid, None, None), "PTRACE_INTERRUPT")
            os.waitpid(self.pid, WALL)
            checked(libc.ptrace(PTRACE_DETACH, self.pid, None, None), "PTRACE_DETACH")
        self.standing = wanted

    def restore(self):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self.stand(True)


# ---- all of them ----


@contextlib.contextmanager
def daemon_stopped():
    """Nothing notices what is done to the table; nor does systemd that nobody answers."""
    pid = lib.daemon_pid()
    lib.sh("systemctl service-watchdogs no")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGCONT)
        subprocess.run(["systemctl", "service-watchdogs", "yes"], check=False)


class Layers:
    def __init__(self, rules, programs_, filter_):
        self.rules, self.programs, self.filter = rules, programs_, filter_

    def stand(self, layers):
        """From now on these layers stand, and no other."""
        self.rules.stand(layers)
        self.programs.stand(3 in layers)
        self.filter.stand(4 in layers)


def scope_of(row):
    return lib.guest_slice(row["main_pid"]) / f"harpe-{row['id']}.scope"


@contextlib.contextmanager
def without_filter(row):
    """The guest of this row of `ps` with layers 1, 2 and 3."""
    filter_ = Filter(row["main_pid"])
    try:
        filter_.stand(False)
        yield
    finally:
        filter_.restore()


@contextlib.contextmanager
def of(row):
    """The layers of the guest of this row of `ps`. All of them stand at the end."""
    with contextlib.ExitStack() as stack:
        pid = stack.enter_context(daemon_stopped())
        rules = Rules(owning_socket(pid))
        stack.callback(rules.restore)
        programs_ = Programs(scope_of(row))
        stack.callback(programs_.restore)
        filter_ = Filter(row["main_pid"])
        stack.callback(filter_.restore)
        yield Layers(rules, programs_, filter_)
