# Sends what it is told to send. Each line of standard input is a JSON list of attempts, each line
# of standard output says what came of them. Knows no protocol but how its sockets are used; one
# process, no threads, never a blocking call, so that an attempt that hangs costs its patience only.
#
# An attempt: name, way, family, type, protocol, options [[level, option, hex]], address (hex of a
# sockaddr), payload (hex), patience (seconds), key (of a socket that a later attempt uses). Other
# sockets stay open until the next line: what was sent must have the time to leave.
import ctypes
import errno
import json
import mmap
import os
import select
import socket
import sys
import time

MSG_FASTOPEN = 0x20000000
SOL_RXRPC, RXRPC_USER_CALL_ID = 272, 1
SYS_SOCKET, SYS_SOCKET_I386, SYS_IO_URING_SETUP = 41, 359, 425  # of x86-64, but the second
# push rbx; mov eax, edi; mov ebx, esi; xchg ecx, edx; int 0x80; pop rbx; ret
CALL_I386 = bytes.fromhex("53 89f8 89f3 87ca cd80 5b c3")
libc = ctypes.CDLL(None, use_errno=True)
kept = {}  # by key
this_line = []


def call(function, *args):
    """A system call of libc's; Python's own refuse addresses of families that it does not know."""
    result = function(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def open_socket(a):
    fd = call(libc.socket, a["family"], a["type"] | socket.SOCK_NONBLOCK, a["protocol"])
    s = socket.socket(a["family"], a["type"], a["protocol"], fileno=fd)
    this_line.append(s)
    for level, option, value in a.get("options", []):
        s.setsockopt(level, option, bytes.fromhex(value))
    return s


def keep(s, a):
    this_line.remove(s)
    kept[a["key"]] = s


def connect(s, a):
    address = bytes.fromhex(a["address"])
    try:
        call(libc.connect, s.fileno(), address, len(address))
    except BlockingIOError:
        pass


def send_to(s, a, flags=0):
    payload, address = bytes.fromhex(a["payload"]), bytes.fromhex(a["address"])
    call(libc.sendto, s.fileno(), payload, len(payload), flags | socket.MSG_DONTWAIT, address,
         len(address))


# ---- ways: each returns a socket that is to become writable, or None when all is done ----


def way_connect(a):
    s = open_socket(a)
    connect(s, a)
    return s


def way_sendto(a):
    send_to(open_socket(a), a)


def way_fastopen(a):
    """The data goes with the SYN."""
    s = open_socket(a)
    try:
        send_to(s, a, MSG_FASTOPEN)
    except BlockingIOError:
        pass
    a["payload"] = ""
    return s


def way_fastopen_close(a):
    way_fastopen(a).close()


def way_call(a):
    """A call of AF_RXRPC; its first packet carries the payload."""
    s = open_socket(a)
    connect(s, a)
    number = (1).to_bytes(ctypes.sizeof(ctypes.c_ulong), sys.byteorder)
    s.sendmsg([bytes.fromhex(a["payload"])], [(SOL_RXRPC, RXRPC_USER_CALL_ID, number)],
              socket.MSG_DONTWAIT)


def way_options(a):
    """The options say it all."""
    open_socket(a)


def way_listen(a):
    s = open_socket(a)
    address = bytes.fromhex(a["address"])
    call(libc.bind, s.fileno(), address, len(address))
    s.listen()
    keep(s, a)


def way_release(a):
    """Sends on a socket that is connected already, and closes it with the data in it."""
    s = kept.pop(a["key"], None)
    if not s:
        raise OSError(errno.ENOTCONN, "there is no such socket")
    try:
        if a["payload"]:
            s.send(bytes.fromhex(a["payload"]))
    finally:
        s.close()


def way_descriptor(a):
    os.write(a["descriptor"], bytes.fromhex(a["payload"]))


def way_descriptors(_):
    """Which descriptors there are, as the outcome."""
    raise OSError(0, " ".join(sorted(os.listdir("/proc/self/fd"), key=int)))


# ---- ways to a socket; nothing is sent ----


def as_long(number):
    return ctypes.c_ulong(number & 0xFFFFFFFFFFFFFFFF)


def way_socket(a):
    """With all the 64 bits of the arguments."""
    os.close(call(libc.syscall, SYS_SOCKET, *map(as_long, (a["family"], a["type"], a["protocol"]))))


def way_socket_i386(a):
    """By the 32-bit call, which has another number and another architecture."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(CALL_I386)
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 4)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    fd = function(address)(SYS_SOCKET_I386, a["family"], a["type"], a["protocol"])
    if fd < 0:
        raise OSError(-fd, os.strerror(-fd))
    os.close(fd)


def way_io_uring(_):
    """Sockets can be made and used through a ring."""
    os.close(call(libc.syscall, SYS_IO_URING_SETUP, 1, ctypes.create_string_buffer(256)))


WAYS = {name[4:]: way for name, way in list(globals().items()) if name.startswith("way_")}


def outcome(error):
    return errno.errorcode.get(error.errno, str(error.strerror))


def finish(s, a):
    number = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))
    if a["payload"]:
        s.send(bytes.fromhex(a["payload"]))
    if "key" in a:
        keep(s, a)
    else:
        s.close()


def begin(attempts, results):
    waiting = {}
    while this_line:
        this_line.pop().close()
    for a in attempts:
        results[a["name"]] = "done"
        try:
            s = WAYS[a["way"]](a)
            if s:
                waiting[s.fileno()] = (s, a, time.monotonic() + a["patience"])
        except OSError as error:
            results[a["name"]] = outcome(error)
    return waiting


def wait(waiting, results):
    poll = select.poll()
    for fd in waiting:
        poll.register(fd, select.POLLOUT)
    while waiting:
        ready = dict(poll.poll(50))
        for fd, (s, a, deadline) in list(waiting.items()):
            if fd not in ready and time.monotonic() < deadline:
                continue
            try:
                if fd in ready:
                    finish(s, a)
                else:
                    results[a["name"]] = "nothing"
                    s.close()
            except OSError as error:
                results[a["name"]] = outcome(error)
            poll.unregister(fd)
            del waiting[fd]


print(json.dumps({"uid": os.getuid()}), flush=True)
for line in sys.stdin:
    said = {}
    wait(begin(json.loads(line), said), said)
    print(json.dumps(said), flush=True)
