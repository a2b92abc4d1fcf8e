#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls a sandbox/run.sh in the manner of the Harpe agent framework and prints one JSON object per
run: returncode, stdout, stderr, timed_out, seconds, reap_seconds, audit, approvals, left_behind.

What matters of that manner: a fresh run directory (0755) below the temporary directory with out.py
(0644) and an empty audit.jsonl (0666), which is also the working directory; an environment made
from nothing; output by pipes that are read to their end; on a time-out SIGKILL to the process group
of run.sh, then reading on without a limit."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time


def prepare(guest):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="run-"))
    directory.chmod(0o755)
    shutil.copyfile(guest, directory / "out.py")
    (directory / "out.py").chmod(0o644)
    (directory / "audit.jsonl").touch()
    (directory / "audit.jsonl").chmod(0o666)
    return directory


def environment(directory, pairs):
    made = {"HARPE_AUDIT_LOG": str(directory / "audit.jsonl"),
            "HARPE_BROKER_SOCKET": str(directory / "broker.sock")}
    if "PATH" in os.environ:
        made["PATH"] = os.environ["PATH"]
    made.update(pair.split("=", 1) for pair in pairs)
    return made


def approve(broker, asked):
    """Says yes to every request at the broker's socket: length and JSON, length and blob."""
    while True:
        try:
            peer, _ = broker.accept()
        except OSError:
            return
        with peer:
            (length,) = struct.unpack(">I", peer.recv(4, socket.MSG_WAITALL))
            asked.append(json.loads(peer.recv(length, socket.MSG_WAITALL)))
            body = json.dumps({"ok": True, "decision": "approved"}).encode()
            peer.sendall(struct.pack(">I", len(body)) + body + struct.pack(">I", 0))


def kill_and_collect(process):
    begin = time.monotonic()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except PermissionError:
        pass  # what happens when another uid runs below a wrapper of the agent's
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
    return time.monotonic() - begin


def run(options):
    directory = prepare(options.guest)
    broker = socket.socket(socket.AF_UNIX)
    broker.bind(str(directory / "broker.sock"))
    broker.listen()
    asked = []
    threading.Thread(target=approve, args=(broker, asked), daemon=True).start()
    begin = time.monotonic()
    process = subprocess.Popen(
        [os.path.abspath(options.run_sh), str(directory / "out.py")], cwd=directory,
        env=environment(directory, options.env), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = {"timed_out": False, "reap_seconds": 0.0}
    try:
        result["stdout"], result["stderr"] = process.communicate(timeout=options.timeout)
        result["returncode"] = process.returncode
    except subprocess.TimeoutExpired:
        result.update(timed_out=True, returncode=-1, stdout="", stderr="",
                      reap_seconds=round(kill_and_collect(process), 3))
    result["seconds"] = round(time.monotonic() - begin, 3)
    broker.shutdown(socket.SHUT_RDWR)
    broker.close()
    result["approvals"] = len(asked)
    result["audit"] = (directory / "audit.jsonl").read_text().splitlines()
    shutil.rmtree(directory, ignore_errors=True)
    result["left_behind"] = [p.name for p in directory.iterdir()] if directory.exists() else []
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_sh")
    parser.add_argument("guest")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--concurrent", type=int, default=1)
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(options.concurrent) as pool:
        for result in pool.map(run, [options] * options.concurrent):
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
