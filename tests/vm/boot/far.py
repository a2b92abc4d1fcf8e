# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the cable and its far end, which is not up yet, and writes down what arrives there: lines
"SECONDS-SINCE-BOOT PORT" in /out/arrived."""
import errno
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from boot import notify  # noqa: E402
from leaks import far  # noqa: E402


def main():
    far.sh("modprobe veth; modprobe af_packet; modprobe ipv6 || :")
    far.sh(f"ip netns add {far.NETNS} && ip link add {far.NEAR} type veth peer name {far.FAR} "
           f"netns {far.NETNS} && ip -n {far.NETNS} address add {far.FAR4}/24 dev {far.FAR} && "
           f"ip -n {far.NETNS} address add {far.FAR6}/64 dev {far.FAR} nodad")
    there = far.Far()
    there.capture.setblocking(True)
    with open("/out/arrived", "w", buffering=1) as log:
        print("0 0", file=log)
        notify.ready()
        while True:
            try:
                frame = far.Frame(there.capture.recv(4096))
            except OSError as error:  # said once: the cable is not up yet
                if error.errno != errno.ENETDOWN:
                    raise
                continue
            port = frame.ports()[1]
            if port:
                print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.2f} {port}", file=log)


main()
