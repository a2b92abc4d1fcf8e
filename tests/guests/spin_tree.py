# Two processes use processor time.
import os

os.fork()
while True:
    pass
