# SPDX-License-Identifier: GPL-2.0-or-later
"""Brings the cable up; then sends as root, a few times a second, to port 19996, and writes down how
many packets of the sender were dropped: lines "SECONDS-SINCE-BOOT COUNT" in /out/dropped."""
import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from boot import notify  # noqa: E402
from leaks import far  # noqa: E402

PORT = 19996
UID = 90255


def dropped(tries=3):
    """"-" when it is not there. nft reads more than one message, and gives up when the ruleset is
    another one meanwhile, as when the daemon hands it back: so it is asked more than once."""
    for _ in range(tries):
        text = subprocess.run(["nft", "get", "element", "inet", "harpe_gov", "pool", f"{{ {UID} }}"],
                              capture_output=True, text=True, check=False).stdout
        found = re.search(rf"{UID} counter packets (\d+)", text)
        if found:
            return found[1]
    return "-"


def main():
    far.sh(f"ip link set {far.NEAR} up && ip address add {far.NEAR4}/24 dev {far.NEAR} && "
           f"ip address add {far.NEAR6}/64 dev {far.NEAR} nodad && "
           f"ip -n {far.NETNS} link set {far.FAR} up")
    ready = False
    with open("/out/dropped", "w", buffering=1) as log, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        while True:
            with contextlib.suppress(OSError):
                s.sendto(b"control", (far.FAR4, PORT))
            print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.2f} {dropped()}", file=log)
            if not ready:
                notify.ready()
                ready = True
            time.sleep(0.2)


main()
