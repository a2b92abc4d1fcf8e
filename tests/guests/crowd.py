# Becomes as many as it can, and goes on trying: crowd.py processes|threads|orphans
import _thread
import os
import sys
import time


def processes():
    """Each of them tries too."""
    try:
        os.fork()
    except OSError:
        pass


def threads():
    try:
        _thread.start_new_thread(time.sleep, (600,))
    except RuntimeError:
        pass


def orphans():
    """Sessions of their own, without a parent."""
    try:
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.waitpid(child, 0)
    except OSError:
        pass


way = globals()[sys.argv[1]]
while True:
    way()
