# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends to the far end every 20 ms, whatever comes of it: UDP and the beginning of TCP, over IPv4 and
IPv6. Arguments: the token that the datagrams carry, and the addresses."""
import contextlib
import itertools
import socket
import sys
import time

PORT = 19997
EVERY = 0.02


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def say(token, address):
    with socket.socket(family(address), socket.SOCK_DGRAM) as s:
        s.sendto(token, (address, PORT))


def knock(address):
    with socket.socket(family(address), socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as s:
        s.connect((address, PORT))


def main():
    token, *addresses = sys.argv[1:]
    for address in itertools.cycle(addresses):
        for send in (lambda a: say(token.encode(), a)), knock:
            with contextlib.suppress(OSError):
                send(address)
        time.sleep(EVERY)


if __name__ == "__main__":
    main()
