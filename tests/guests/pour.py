# 10 MiB to each of both outputs, taking turns.
import os
import sys

SIZE, CHUNK = 10 << 20, 1 << 16


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


for _ in range(SIZE // CHUNK):
    write(1, b"o" * CHUNK)
    write(2, b"e" * CHUNK)
sys.exit(7)
