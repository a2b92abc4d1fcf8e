# Takes that many MiB, each page another, and reads them all that often: touch.py MIB [TIMES]
import random
import sys

MIB = 1 << 20
taken = [random.randbytes(MIB) for _ in range(int(sys.argv[1]))]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0):
    for block in taken:
        block.count(b"x")
print("all of it")
