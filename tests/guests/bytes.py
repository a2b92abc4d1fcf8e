# One mebibyte of every byte value.
import os

data = bytes(range(256)) * 4096
while data:
    data = data[os.write(1, data):]
