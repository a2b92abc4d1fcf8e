# Asks for an approval over the broker's socket, says what came, and works in its own directory.
import json
import os
import socket
import struct


def exchange(service, **fields):
    """One request and its answer: length and JSON, length and blob."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["HARPE_BROKER_SOCKET"])
        body = json.dumps({"service": service, **fields}).encode()
        s.sendall(struct.pack(">I", len(body)) + body + struct.pack(">I", 0))
        (length,) = struct.unpack(">I", s.recv(4, socket.MSG_WAITALL))
        return json.loads(s.recv(length, socket.MSG_WAITALL))


decision = exchange("approval", title="send it")["decision"]
with open(os.environ["HARPE_AUDIT_LOG"], "a", encoding="ascii") as log:
    log.write(json.dumps({"category": "guest.decision", "decision": decision}) + "\n")
os.makedirs("work/deep")
with open("work/deep/note", "w", encoding="ascii") as note:
    note.write(decision)
os.rename("work/deep/note", "kept")
print(open("kept", encoding="ascii").read())
