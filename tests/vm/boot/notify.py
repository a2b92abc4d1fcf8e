# SPDX-License-Identifier: GPL-2.0-or-later
"""sd_notify(3)."""
import os
import socket


def ready():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))
        s.send(b"READY=1")
