# Tries to get a word out by TCP and by UDP: connect_out.py ADDRESS PORT WORD
# Without arguments they come from the environment, as Harpe passes none.
import os
import socket
import sys

address, port, word = sys.argv[1:] or os.environ["TARGET"].split()
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    with socket.socket(type=kind) as s:
        s.settimeout(3)
        try:
            s.connect((address, int(port)))
            s.send(word.encode())
            print("sent")
        except OSError as error:
            print(type(error).__name__)
