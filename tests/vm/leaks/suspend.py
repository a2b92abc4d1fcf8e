# SPDX-License-Identifier: GPL-2.0-or-later
"""Suspends the system call filter of process PID and of all that it starts from now on: a bug in the
filter would amount to that. Says "ready", and goes on until none of them is left.

    python3 suspend.py PID"""
import ctypes
import os
import signal
import sys

PTRACE_CONT, PTRACE_SEIZE, PTRACE_LISTEN = 7, 0x4206, 0x4208
TRACE_FORK, TRACE_VFORK, TRACE_CLONE, SUSPEND_SECCOMP = 1 << 1, 1 << 2, 1 << 3, 1 << 21
EVENT_STOP = 128
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, data):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {pid}")


def go_on(pid, status):
    event, number = status >> 16, os.WSTOPSIG(status)
    if event == EVENT_STOP and number != signal.SIGTRAP:
        ptrace(PTRACE_LISTEN, pid, None)  # it is stopped, and is to stay so
    else:
        ptrace(PTRACE_CONT, pid, 0 if event else number)


def main():
    ptrace(PTRACE_SEIZE, int(sys.argv[1]),
           TRACE_FORK | TRACE_VFORK | TRACE_CLONE | SUSPEND_SECCOMP)
    print("ready", flush=True)
    while True:
        try:
            pid, status = os.waitpid(-1, WALL)
            if os.WIFSTOPPED(status):
                go_on(pid, status)
        except ProcessLookupError:
            pass  # killed meanwhile
        except ChildProcessError:
            return


main()
