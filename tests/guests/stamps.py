# Leaves a process behind that has another name, no stream, and writes into a file all the time.
import ctypes
import os
import time

FILE, PR_SET_NAME = "stamps", 15


def stamp():
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    for fd in range(3):
        os.close(fd)
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"kworker/0:1", 0, 0, 0)
    with open(FILE, "w") as f:
        while True:
            print(time.time(), file=f, flush=True)
            time.sleep(0.05)


if os.fork() == 0:
    stamp()
while not os.path.exists(FILE) or os.path.getsize(FILE) == 0:
    time.sleep(0.05)
