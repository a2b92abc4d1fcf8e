# Is stopped, and stays so: stopped.py by-itself|by-its-tracer
import ctypes
import os
import signal
import sys
import time

PTRACE_TRACEME = 0


def by_itself():
    """With the whole of its process group, whoever that is."""
    os.kill(0, signal.SIGSTOP)


def by_its_tracer():
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    time.sleep(3600)


{"by-itself": by_itself, "by-its-tracer": by_its_tracer}[sys.argv[1]]()
