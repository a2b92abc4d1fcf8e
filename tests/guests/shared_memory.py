# Fills memory that is a file, of the kind that is named, up to 512 MiB or until it is stopped.
import ctypes
import mmap
import os
import sys
from multiprocessing import shared_memory

MIB, PIECE, MOST = 1 << 20, 16 << 20, 512 << 20
IPC_CREAT, MAY_READ_AND_WRITE = 0o1000, 0o600
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p


def a_file():
    with open(f"/dev/shm/x{os.getuid()}", "wb") as f:
        for _ in range(MOST // MIB):
            f.write(bytes(MIB))
            f.flush()


def an_anonymous_file():
    fd = os.memfd_create("x")
    while True:
        os.write(fd, bytes(MIB))


def new_file(number):
    return os.open(f"/dev/shm/y{number}", os.O_RDWR | os.O_CREAT, 0o600)


def mappings_without_a_name():
    """What stays of a file that was removed."""
    for number in range(MOST // PIECE):
        fd = new_file(number)
        os.unlink(f"/dev/shm/y{number}")
        os.truncate(fd, PIECE)
        yield mmap.mmap(fd, PIECE)
        os.close(fd)


def segments_of_posix():
    kept = []  # or they would be closed
    for _ in range(MOST // PIECE):
        kept.append(shared_memory.SharedMemory(create=True, size=PIECE))
        yield kept[-1].buf


def segments_of_system_v():
    for key in range(1, 1 + MOST // PIECE):
        segment = libc.shmget(key, ctypes.c_size_t(PIECE), IPC_CREAT | MAY_READ_AND_WRITE)
        address = libc.shmat(segment, None, 0)
        yield (ctypes.c_char * PIECE).from_address(address)


def fill(pieces):
    kept = []
    for piece in pieces:
        kept.append(piece)
        for offset in range(0, PIECE, mmap.PAGESIZE):
            piece[offset:offset + 1] = b"x"


KINDS = {
    "file": a_file,
    "memfd": an_anonymous_file,
    "unlinked": lambda: fill(mappings_without_a_name()),
    "posix": lambda: fill(segments_of_posix()),
    "sysv": lambda: fill(segments_of_system_v()),
}
KINDS[sys.argv[1]]()
print("all of it")
