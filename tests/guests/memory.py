# A child takes memory until it is stopped; its parent would end well.
import os

if os.fork() == 0:
    taken = []
    while True:
        taken.append(b"x" * (1 << 20))
os.wait()
