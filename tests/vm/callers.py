# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of the tests' own making, which sends what the real one never would."""

# Its guest is `sleep 600`; when a line comes on its standard input it goes on behind this text.
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
    parent = struct.pack("=I", len(extra))
    s.sendmsg([message(16, attr(7, b"victim\\0"), attr(10, limits), attr(19, parent))],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    return s

def signal(number):
    return message(WIRE_SIGNAL, attr(1, struct.pack("=I", number)))

WIRE_SIGNAL = 23
s = start()
sys.stdin.readline()
"""
