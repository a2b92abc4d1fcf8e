#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A FUSE file system with one file whose reading never ends: stuck_fuse.py MOUNTPOINT

Who reads MOUNTPOINT/file sleeps uninterruptibly, SIGKILL included, until this process ends. Speaks
just enough of the protocol (linux/fuse.h) for that, and needs no library. Prints "mounted"."""
import ctypes
import errno
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 42
ROOT = 1
FILE = 2


def attributes(node):
    mode = 0o40755 if node == ROOT else 0o100644
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer_init(_body, _node):
    return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 1, 0, *[0] * 8)


def answer_lookup(body, _node):
    if body.rstrip(b"\0") != b"file":
        return errno.ENOENT
    return struct.pack("<4Q2I", FILE, 0, 3600, 3600, 0, 0) + attributes(FILE)


def answer_getattr(_body, node):
    return struct.pack("<Q2I", 3600, 0, 0) + attributes(node)


def answer_open(_body, _node):
    return struct.pack("<Q2I", 0, 0, 0)


ANSWERS = {INIT: answer_init, LOOKUP: answer_lookup, GETATTR: answer_getattr, OPEN: answer_open}


def serve(fuse):
    while True:
        try:
            request = os.read(fuse, 1 << 20)
        except OSError:
            return
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in (READ, FORGET, BATCH_FORGET):
            continue
        answer = ANSWERS.get(opcode, lambda *_: errno.ENOSYS)(request[40:], node)
        error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


def main():
    mountpoint = sys.argv[1]
    fuse = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"stuck", mountpoint.encode(), b"fuse", 0, options.encode()):
        sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    serve(fuse)


if __name__ == "__main__":
    main()
