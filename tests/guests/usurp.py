# Tries to put something of its own in the place of what its caller uses afterwards, by name. Prints
# what worked, which must be nothing.
import ctypes
import os
import shutil
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)
DIRECTORY = os.getcwd()


def replace(name, make):
    make("mine")
    try:
        os.rename("mine", name)
    finally:
        if os.path.lexists("mine"):
            os.remove("mine")


def exchange(name):
    open("mine", "w").close()
    try:
        if libc.renameat2(-100, b"mine", -100, name.encode(), 2) < 0:  # RENAME_EXCHANGE
            raise OSError(ctypes.get_errno(), "renameat2")
    finally:
        os.remove("mine")


def move_directory(_):
    os.rename(DIRECTORY, DIRECTORY + ".old")


def unmount(name):
    if libc.umount2(name.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "umount2")


WAYS = {
    "unlink": os.unlink,
    "rename away": lambda name: os.rename(name, name + ".old"),
    "symbolic link": lambda name: replace(name, lambda mine: os.symlink("/etc/shadow", mine)),
    "fifo": lambda name: replace(name, os.mkfifo),
    "hard link of another": lambda name: replace(name, lambda mine: os.link("own", mine)),
    "exchange": exchange,
    "the whole directory": move_directory,
    "remove the directory": lambda _: shutil.rmtree(DIRECTORY),
    "unmount": unmount,
}
ID_BITS = {
    "chmod": lambda f, m: os.chmod(f, m),
    "fchmod": lambda f, m: os.fchmod(os.open(f, os.O_RDONLY), m),
    "open": lambda f, m: os.open(f + ".new", os.O_CREAT | os.O_WRONLY, m),
    "mknod": lambda f, m: os.mknod(f + ".node", stat.S_IFREG | m),
    "mkdir": lambda f, m: os.mkdir(f + ".dir", m),
    "creat": lambda f, m: libc.creat((f + ".creat").encode(), m),
}

for target in sys.argv[1:]:
    for name, way in WAYS.items():
        open("own", "w").close()
        try:
            way(target)
            print("worked:", name, target)
        except OSError:
            pass
        if not os.path.lexists(target):
            print("gone after", name, target)
open("own", "w").close()
for name, way in ID_BITS.items():
    for bits in 0o4755, 0o2755, 0o6755:
        try:
            way("own", bits)
        except OSError:
            pass
