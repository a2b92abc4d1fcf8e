# SPDX-License-Identifier: GPL-2.0-or-later
"""Network profiles of the configuration: what gets out, judged at the far end of a cable, and what
systemd and the kernel hold."""
import contextlib
import subprocess
import time

from lib import (DROP_IN, Result, agent_directory, configured, expect, expect_equal, run, sh,
                 start_run, wait_ready, wait_running, wait_until)
from leaks.far import FAR4, FAR6, cable

OPEN, CLOSED = 18443, 18444


def show(unit, name):
    return sh(f"systemctl show -P {name} {unit}").split()


WEB = f"""
[access]
profiles = isolated drop reject web
[profile web]
allow = tcp {FAR4}:{OPEN}
allow = tcp [{FAR6}]:{OPEN}-{OPEN}
allow = icmp {FAR4}
"""

CONNECT = """
import socket, sys
for address, port in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.settimeout(3)
    try:
        s.connect((address, port))
        s.sendall(b"GET")
        print(address, port, "connected")
    except OSError as e:
        print(address, port, type(e).__name__, e.errno)
"""


def connect(net, *words):
    return run("--net", net, "--", "python3", "-c", CONNECT, *map(str, words))


def test_allow_list():
    """What is allowed arrives, IPv4 and IPv6; the port beside it does not; systemd holds the same
    addresses, and nothing is committed for a run."""
    with cable() as far, configured(WEB):
        for port in (OPEN, CLOSED):
            far.listen(port)
        expect_equal(sorted(show("harpe-web.slice", "IPAddressAllow")), sorted([FAR4 + "/32", FAR6 + "/128"]))
        before = sh("nft -j list ruleset | wc -c; nft -a list table inet harpe_gov | grep -c handle")
        r = connect("web", FAR4, OPEN, FAR6, OPEN, FAR4, CLOSED, FAR6, CLOSED)
        expect_equal([line.split()[2] for line in r.stdout.decode().splitlines()],
                     ["connected", "connected", "TimeoutError", "TimeoutError"], r)
        expect(r.report["drops"]["uid"] >= 2, r)
        expect_equal(r.report["profile"], "web")
        expect_equal(sh("nft -j list ruleset | wc -c; nft -a list table inet harpe_gov | grep -c handle").split()[1],
                     before.split()[1])
        r = connect("drop", FAR4, OPEN)
        expect_equal(r.stdout.split()[2], b"TimeoutError", "another profile", r)


def test_tail_of_a_transfer():
    """1 MB that was sent before the guest ended arrives whole, at a slow reader."""
    send = f"""
import socket
s = socket.create_connection(("{FAR4}", {OPEN}))
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
s.sendall(b"x" * 1000000)
s.close()
"""
    with cable() as far, configured(WEB):
        listener = far.listen(OPEN)
        with agent_directory() as d:
            p = start_run("--net", "web", "--", "python3", "-c", send, cwd=d)
            listener.settimeout(60)
            theirs = listener.accept()[0]
            theirs.settimeout(60)
            total = 0
            while p.poll() is None and total < 1000000:
                total += len(theirs.recv(8192))
                time.sleep(0.05)
            expect(total < 1000000, "the guest ended before all had arrived")
            r = Result(p)
            while data := theirs.recv(8192):
                total += len(data)
                time.sleep(0.001)
    expect_equal((r.status, total), (0, 1000000), r)


def test_icmp():
    """ICMP only where a profile allows it."""
    sh("sysctl -q -w net.ipv4.ping_group_range='0 2147483647'")
    ping = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
s.settimeout(10)
s.sendto(bytes((8, 0, 0, 0, 0, 0, 0, 1)), ("{FAR4}", 0))
s.recv(100)
"""
    with cable(), configured(WEB):
        r = run("--net", "web", "--", "python3", "-c", ping)
        expect_equal(r.status, 0, r)
        r = run("--net", "drop", "--", "python3", "-c", ping)
        expect(b"PermissionError" in r.stderr, r)


def test_reject():
    """Profile reject fails at once; nothing arrives."""
    with cable() as far:
        far.listen(OPEN)
        r = connect("reject", FAR4, OPEN, FAR6, OPEN)
        said = [line.split()[2] for line in r.stdout.decode().splitlines()]
        expect_equal(said, ["ConnectionRefusedError"] * 2, r)
        expect(r.report["drops"]["uid"] >= 2, r)


def test_who_may():
    """A profile is for those whom the configuration names; others get one sentence."""
    with configured("[profile web]\nallow = tcp 192.0.2.1:1\n"):
        r = run("--net", "web", "--", "true")
        expect_equal(r.status, 125, r)
        expect(b"--net: web is none of the profiles that [access]" in r.stderr, r)
    r = run("--net", "web", "--", "true")
    expect_equal(r.status, 125, r)
    expect(b'--net: there is no network profile "web"' in r.stderr, r)


def test_reload_closes():
    """A reload that takes a line away closes it for guests that live; a bad one changes nothing."""
    loop = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        s.sendto(b"beat", ("{FAR4}", {OPEN}))
    except OSError:
        pass
    time.sleep(0.05)
"""

    def beats(far, seconds=10):
        frames = []
        far.arrived()
        far.wait(frames, lambda: any(b"beat" in f.data for f in frames), seconds)
        return any(b"beat" in f.data for f in frames)

    with cable() as far, configured(WEB + f"allow = udp {FAR4}:{OPEN}\n"):
        far.take_datagrams(OPEN)
        with agent_directory() as d:
            p = start_run("--net", "web", "--name", "beat", "--", "python3", "-c", loop, cwd=d)
            wait_running("beat")
            expect(beats(far), "before")
            good = DROP_IN.read_text()
            DROP_IN.write_text("[profile web]\nallow = udp example.com:53\n")
            bad = subprocess.run(["systemctl", "reload", "harpe-gov.service"], check=False,
                                 capture_output=True)
            expect(bad.returncode != 0, "a host name is refused", bad)
            expect(beats(far), "after a bad reload")
            DROP_IN.write_text(good.replace(f"allow = udp {FAR4}:{OPEN}\n", ""))
            sh("systemctl reload harpe-gov.service")  # returns before the daemon has done it
            wait_until(lambda: not beats(far, 2), 30, "closed after the line was taken away")
            expect(p.poll() is None, "the guest lives on")
            p.kill()
            p.wait(30)
    wait_ready()


PROXY = """
Port 8888
Listen 127.0.0.1
Timeout 60
Allow 127.0.0.1
ConnectPort 443
FilterDefaultDeny Yes
Filter "/tmp/proxy-names"
FilterExtended On
"""

FETCH = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:8888"}))
for url in sys.argv[1:]:
    try:
        print(opener.open(url, timeout=20).read().decode())
    except OSError as e:
        print(e)
"""


def test_proxy():
    """The recipe for names: a forward proxy that knows them, allowed as the only address."""
    page = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npage"
    hosts = "/etc/hosts"
    before = open(hosts).read()
    with cable() as far, contextlib.ExitStack() as stack, \
            configured("[defaults]\nnet = proxied\n[profile proxied]\nallow = tcp 127.0.0.1:8888\n"):
        listener = far.listen(80)
        listener.settimeout(60)
        stack.callback(lambda: open(hosts, "w").write(before))
        open(hosts, "a").write(f"{FAR4} good.test bad.test\n")
        open("/tmp/proxy-names", "w").write("^good[.]test$\n")
        open("/tmp/proxy.conf", "w").write(PROXY)
        proxy = subprocess.Popen(["tinyproxy", "-d", "-c", "/tmp/proxy.conf"],
                                 stdout=subprocess.DEVNULL, user="other", group="other")
        stack.callback(proxy.wait, 30)
        stack.callback(proxy.terminate)
        wait_until(lambda: b":22B8 " in open("/proc/net/tcp", "rb").read(), 30, "the proxy listens")
        with agent_directory() as d:
            p = start_run("--", "python3", "-c", FETCH, "http://bad.test/", "http://good.test/",
                          "http://192.0.2.2/", cwd=d)
            theirs = listener.accept()[0]
            theirs.settimeout(60)
            asked = b""
            while not asked.endswith(b"\r\n\r\n"):
                asked += theirs.recv(4096) or b"\r\n\r\n"
            theirs.sendall(page)
            theirs.close()
            r = Result(p)
    said = r.stdout.decode().splitlines()
    expect_equal(said[1], "page", r)
    expect("403" in said[0] and "403" in said[2], r)
    expect(b"good.test" in asked, asked)
