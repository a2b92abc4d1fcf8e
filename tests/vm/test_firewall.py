# SPDX-License-Identifier: GPL-2.0-or-later
"""harpe-gov firewall on a host with the daemon: what it says is what happens to guests."""
import json
import subprocess

from leaks.far import FAR4, cable
from lib import Result, as_agent, configured, expect, expect_equal, run, sh

OPEN, CLOSED = 18443, 18444

WEB = f"""
[access]
profiles = isolated drop reject web
[profile web]
allow = tcp {FAR4}:{OPEN}
"""

CONNECT = """
import socket, sys
s = socket.socket()
s.settimeout(3)
s.connect((sys.argv[1], int(sys.argv[2])))
"""


def firewall(*words, status=0):
    """What it printed, both streams; its exit status must be as expected."""
    r = subprocess.run(["harpe-gov", "firewall", *map(str, words)], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    expect_equal(r.returncode, status, r.stdout)
    return r.stdout


def test_show():
    """The daemon's table is in force and its owner is named; nobody takes it from the daemon."""
    text = firewall("show")
    expect(text.startswith("owner: netlink port "), text)
    expect("in force as wanted" in text, text)
    for verb in "apply", "remove":
        text = firewall(verb, status=3)
        expect("belongs to the netlink socket with port" in text, text)
    expect("in force as wanted" in firewall("show"))
    r = Result(as_agent(["harpe-gov", "firewall", "show"]))
    expect_equal(r.status, 3, r)
    expect(b"only root" in r.stderr, r)


def test_export():
    """The exported file, loaded where nothing is, is what the daemon has; paths are the slices'."""
    with configured(WEB):
        text = firewall("export")
        expect('"harpe.slice/harpe-web.slice" : jump profile_web' in text, text)
        listed = ("nft -s list table inet harpe_gov | "
                  "grep -v -e 'flags owner' -e '^$' | sed 's/ # progname.*//'")
        live = sh(listed)
        sh("harpe-gov firewall export >/run/exported.nft")
        loaded = subprocess.run(["unshare", "-n", "sh", "-c", f"nft -f /run/exported.nft; {listed}"],
                                check=True, stdout=subprocess.PIPE, text=True).stdout
        expect_equal(live, loaded)


def test_explain():
    """What explain says of a guest's connection is what the guest gets, also through a table of
    somebody else's."""
    with cable() as far, configured(WEB):
        for port in (OPEN, CLOSED):
            far.listen(port)
        for port, passes in (OPEN, True), (CLOSED, False):
            text = firewall("explain", "--profile", "web", "tcp", f"{FAR4}:{port}",
                            status=0 if passes else 1)
            r = run("--net", "web", "--", "python3", "-c", CONNECT, FAR4, str(port))
            expect_equal(r.status == 0, passes, text, r)
        try:
            sh(f"nft 'add table inet other; add chain inet other o {{ type filter hook output "
               f"priority 5; }}; add rule inet other o tcp dport {OPEN} drop'")
            found = json.loads(firewall("explain", "--json", "--profile=web", "tcp",
                                        f"{FAR4}:{OPEN}", status=1))
            last = found["live"]["steps"][-1]
            expect_equal(last["decided"]["rule"], f"tcp dport {OPEN} drop", found)
            r = run("--net", "web", "--", "python3", "-c", CONNECT, FAR4, str(OPEN))
            expect(r.status != 0, r)
        finally:
            sh("nft delete table inet other")
