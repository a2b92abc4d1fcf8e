# SPDX-License-Identifier: GPL-2.0-or-later
"""The table outlives what happens on hosts, and others' tables outlive us. Judged at the far end of a
cable, where nothing of the pool's uids may arrive: two processes send every 20 ms, a guest, and one
that root gave a uid of the pool outside harpe.slice, which only the rule on the uids stops."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from leaks import layers
from leaks.far import FAR4, FAR6, cable
from lib import (POOL, Result, agent_directory, daemon_pid, expect, expect_equal, pool_processes,
                 ps, python, run, sh, start_run, wait_ready, wait_running, wait_until)
from test_startup import service_refuses

PORT = 19997  # the sender's
STRAY = POOL[-1]
TOKEN = "LEAKED-PAST-THE-TABLE"
SENDER = [*python("sender.py"), TOKEN, FAR4, FAR6]
SETTLE = 0.1  # seconds: some rounds of the sender
LOST = 5  # seconds until a lost policy has its consequences, under emulation
STARTS = int(os.environ.get("HARPE_WRITERS_STARTS", "32"))  # among writers
AT_ONCE = 16
STORM = 500  # commits
STORM_CPU = 3  # seconds, under emulation


def listing():
    return sh("nft -a -s -t list table inet harpe_gov")


def drops(*uids):
    """How many packets of each the table has dropped."""
    text = sh("nft list set inet harpe_gov pool")
    return [int(re.search(rf"\b{uid} counter packets (\d+)", text)[1]) for uid in uids]


def wait_drops(*uids):
    """Until the table has dropped more of each."""
    before = drops(*uids)
    wait_until(lambda: all(b < a for b, a in zip(before, drops(*uids))), 10,
               f"more of {uids} is dropped than {before}")


def came(far):
    return [f for f in far.arrived() if PORT in f.ports()]


@contextlib.contextmanager
def stray():
    sh(["systemd-run", "-q", "--unit=stray", "setpriv", f"--reuid={STRAY}", f"--regid={STRAY}",
        "--clear-groups", *SENDER])
    try:
        wait_drops(STRAY)
        yield
    finally:
        sh("systemctl stop stray.service")


@contextlib.contextmanager
def sending_guest():
    """Its row of `ps` and its process; it is killed at the end."""
    with agent_directory() as d:
        p = start_run("--name", "sender", "--net", "drop", "--report", d + "/r.json", "--", *SENDER,
                      cwd=d)
        try:
            row = wait_running("sender")
            wait_drops(row["uid"])
            yield row, p, d + "/r.json"
        finally:
            if p.poll() is None:
                p.kill()
                p.communicate()


def assert_sender_is_able(far):
    """What a user who is not of the pool sends arrives."""
    with subprocess.Popen(SENDER, user="other", group="other", extra_groups=[]) as p:
        try:
            kinds = set()

            def all_kinds():
                kinds.update((f.ethertype, f.protocol) for f in came(far))
                return len(kinds) == 4

            wait_until(all_kinds, 30, "UDP and TCP over IPv4 and IPv6 arrive")
        finally:
            p.kill()
    time.sleep(SETTLE)
    came(far)


def assert_survives(far, row, commands):
    """The table is the one that the daemon loaded, to the handles; it dropped what was sent."""
    for command in commands:
        table = listing()
        sh(command)
        wait_drops(STRAY, row["uid"])
        expect_equal(came(far), [], command)
        expect_equal(listing(), table, command)
    expect_equal([r["id"] for r in ps() if r["state"] == "running"], [row["id"]])


JOURNAL = ["journalctl", "-u", "harpe-gov.service", "-o", "cat"]


def journal_cursor():
    """The cursor of an entry that the same words find: one is skipped in any case."""
    return re.search("^-- cursor: (.*)$", sh([*JOURNAL, "-n", "1", "--show-cursor"]), re.M)[1]


def journal_since(cursor):
    return sh([*JOURNAL, f"--after-cursor={cursor}"])


# ---- others ----

IPTABLES = """*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:BRIDGES - [0:0]
-A FORWARD -j BRIDGES
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A OUTPUT -p udp -j ACCEPT
COMMIT
"""
FLUSHES = (
    "systemctl restart nftables.service",
    "nft flush ruleset",
    f"iptables-nft-restore <<'END'\n{IPTABLES}END",
    "iptables-nft -F && iptables-nft -X && ip6tables-nft -F && iptables-nft -t nat -F",
    f"iptables-nft-restore <<'END'\n{IPTABLES}END",
    "nft flush ruleset",
    "! nft delete table inet harpe_gov",
    "! nft flush chain inet harpe_gov output",
    "! nft add table inet harpe_gov '{ flags dormant; }'",
)
# What `firewall-cmd --reload` and `--complete-reload` ask of it, with the patience that emulation needs.
FIREWALLD = "busctl call --timeout=110 org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1 " \
    "org.fedoraproject.FirewallD1 "
RELOADS = (FIREWALLD + "reload", FIREWALLD + "completeReload")
DOCKER = ("iptables-nft -F && iptables-nft -t nat -F", "systemctl restart docker.service")
HAND_MADE = """
table inet by_hand {
	set s { type ipv4_addr; flags interval; elements = { 198.51.100.0/24 } }
	chain output { type filter hook output priority -300; counter accept; }
}
table ip harpe_gov {
	set pool { type ipv4_addr; elements = { 192.0.2.77 } }
	chain output { type filter hook output priority -10; accept; }
}
table ip6 harpe_gov { chain output { type filter hook output priority 0; accept; }; }
"""


def others():
    """Every object of other tables, handles too, but for what is counted."""
    found = []
    text = re.sub(r'"(packets|bytes)": \d+', r'"\1": 0', sh("nft -j -s -a list ruleset"))
    for entry in json.loads(text)["nftables"]:
        (kind, what), = entry.items()
        name = what.get("name") if kind == "table" else what.get("table")
        if kind != "metainfo" and (what["family"], name) != ("inet", "harpe_gov"):
            found.append((kind, what))
    return found


@contextlib.contextmanager
def neighbours():
    """firewalld, rules of iptables-nft, and tables of somebody's, two of them named like ours."""
    sh("systemctl stop nftables.service && systemctl start firewalld.service")
    try:
        wait_until(lambda: "inet firewalld" in sh("nft list tables"), 60, "firewalld has its table")
        sh(["iptables-nft-restore"], input=IPTABLES)
        sh(["nft", "-f", "-"], input=HAND_MADE)
        yield
    finally:
        sh("systemctl stop firewalld.service polkit.service && nft flush ruleset")


def test_flush():
    """nftables.service, nft and iptables-nft empty everything but our table."""
    with cable() as far, stray(), sending_guest() as (row, _, _):
        assert_sender_is_able(far)
        try:
            assert_survives(far, row, FLUSHES)
        finally:
            sh("nft flush ruleset")


def test_neighbours():
    """firewalld reloads beside us; its table and all others stay as they are over start, reload and
    restart of the daemon and 5 runs."""
    with neighbours(), cable() as far, stray():
        before = others()
        expect({what.get("name") for kind, what in before if kind == "table"} >=
               {"firewalld", "filter", "by_hand", "harpe_gov"}, before)
        for verb in "stop", "start", "reload", "restart":
            sh(f"systemctl {verb} harpe-gov.service")
            expect_equal((came(far), others()), ([], before), verb)
        wait_ready()
        with agent_directory() as d:
            for p in [start_run("--", "true", cwd=d) for _ in range(5)]:
                r = Result(p)
                expect_equal(r.status, 0, r)
        expect_equal((came(far), others()), ([], before), "5 runs")
        with sending_guest() as (row, _, _):
            assert_survives(far, row, RELOADS)


@contextlib.contextmanager
def docker():
    """Docker's own daemons, and its rules by iptables-nft."""
    sh("systemctl start docker.service")
    try:
        wait_until(lambda: "chain DOCKER" in sh("nft list ruleset"), 60, "Docker has its chains")
        yield
    finally:
        sh("systemctl stop docker.service docker.socket containerd.service; nft flush ruleset; "
           "ip link delete docker0; sysctl -q -w net.ipv4.ip_forward=0")


def test_docker():
    """Docker starts its table anew beside us; it and all others stay as they are over reload and restart
    of the daemon and 5 runs, and nothing of theirs is bad for the audit."""
    with docker(), cable() as far, stray():
        sh(["nft", "-f", "-"], input=HAND_MADE)
        before = others()
        for verb in "reload", "restart":
            sh(f"systemctl {verb} harpe-gov.service")
            expect_equal((came(far), others()), ([], before), verb)
        wait_ready()
        with agent_directory() as d:
            for p in [start_run("--", "true", cwd=d) for _ in range(5)]:
                r = Result(p)
                expect_equal(r.status, 0, r)
        expect_equal((came(far), others()), ([], before), "5 runs")
        by_hand = sh("nft -a -s list table inet by_hand")
        with sending_guest() as (row, _, _):
            assert_survives(far, row, DOCKER)
        expect_equal(sh("nft -a -s list table inet by_hand"), by_hand)


# ---- writing while others write ----

WRITERS = (
    """while :; do nft -f - <<'END'
add table inet writer
delete table inet writer
table inet writer { chain output { type filter hook output priority 5; accept; }; }
END
done""",
    "while :; do iptables-nft -A OUTPUT -p udp -j ACCEPT; iptables-nft -D OUTPUT 1; done",
)


@contextlib.contextmanager
def writers():
    processes = [subprocess.Popen(["bash", "-c", w], start_new_session=True,
                                  stderr=subprocess.DEVNULL) for w in WRITERS]
    try:
        yield
    finally:
        for p in processes:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        sh("nft flush ruleset")


def test_among_writers():
    """16 runs at once, again and again, and reloads while others write: none fails."""
    cursor = journal_cursor()
    begin = time.monotonic()
    with writers(), agent_directory() as d:
        for _ in range(STARTS // AT_ONCE):
            processes = [start_run("--net", "drop", "--", "true", cwd=d) for _ in range(AT_ONCE)]
            sh("systemctl reload harpe-gov.service")
            for p in processes:
                r = Result(p)
                expect_equal(r.status, 0, r)
    text = journal_since(cursor)
    expect_equal(text.count("was read again"), STARTS // AT_ONCE, text)
    expect("stays as it was" not in text and "policy lost" not in text, text)
    print(f"# {STARTS // AT_ONCE * AT_ONCE} starts and {STARTS // AT_ONCE} reloads in "
          f"{time.monotonic() - begin:.0f} s, none failed")


OLDER = f"""
add table inet harpe_gov
delete table inet harpe_gov
table inet harpe_gov {{
	counter dropped {{ }}
	set pool {{ type uid; flags interval; elements = {{ {POOL[0]}-{POOL[-1]} }} }}
	map profiles {{ type uid : verdict; elements = {{ {POOL[0]} : jump old }} }}
	chain old {{ counter name dropped drop; }}
	chain output {{
		type filter hook output priority -5;
		meta skuid vmap @profiles
		meta skuid @pool counter name dropped drop
	}}
}}
"""


def test_older_layout():
    """A table of an older version, with sets and chains of other kinds, is replaced at once."""
    with cable() as far, stray():
        sh("systemctl stop harpe-gov.service")
        try:
            sh(["nft", "-f", "-"], input=OLDER + HAND_MADE)
            before = others()
            sh("systemctl start harpe-gov.service")
            wait_ready()
            expect_equal((came(far), others()), ([], before))
            expect_equal(run("--", "true").status, 0)
            expect("dropped" not in listing(), listing())
            sh("harpe-gov firewall show")
        finally:
            sh("systemctl start harpe-gov.service; nft flush ruleset")


@contextlib.contextmanager
def foreign_owner():
    """Somebody else's program owns a table with our name."""
    with subprocess.Popen(["nft", "-i"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          text=True) as p:
        p.stdin.write("delete table inet harpe_gov\n"
                      "add table inet harpe_gov { flags owner; chain theirs { }; }\n")
        p.stdin.flush()
        wait_until(lambda: "flags owner" in sh("nft list ruleset"), 10, "nft owns the table")
        yield


def test_owned_by_another():
    """It stays as it is; the service says why it does not start, and starts when it is gone."""
    sh("systemctl stop harpe-gov.service")
    try:
        with foreign_owner():
            before = listing()
            with service_refuses("belongs to the netlink socket with port"):
                expect_equal(listing(), before)
    finally:
        sh("systemctl start harpe-gov.service")
        wait_ready()
    expect_equal(run("--", "true").status, 0)


# ---- from start to end ----

AWAY = (
    "systemctl restart harpe-gov.service",
    "systemctl restart harpe-gov.socket",
    "cp -p /usr/sbin/harpe-govd /usr/sbin/harpe-govd.new && "  # as an upgrade does
    "mv /usr/sbin/harpe-govd.new /usr/sbin/harpe-govd && systemctl daemon-reload && "
    "systemctl restart harpe-gov.service",
    "systemctl restart harpe-gov-firewall.service",
    "systemctl kill --kill-whom=main --signal=KILL harpe-gov.service",
    "systemctl daemon-reexec; until systemctl is-active -q harpe-gov.service; do sleep 0.1; done",
    "systemctl stop harpe-gov.service harpe-gov.socket",
    "systemctl restart harpe-gov-firewall.service",
    "systemctl stop harpe-gov-firewall.service",
    "systemctl start harpe-gov-firewall.service harpe-gov.socket harpe-gov.service",
)


def test_daemon_away():
    """Whatever is restarted, killed or stopped of ours: the table is there at every moment."""
    with cable() as far, stray():
        for command in AWAY:
            sh(command)
            time.sleep(SETTLE)
            expect_equal(came(far), [], command)
        wait_ready()
        expect_equal(came(far), [])
        wait_drops(STRAY)
        expect_equal(run("--", "true").status, 0)


@contextlib.contextmanager
def slow_restart():
    """The daemon is not started again before somebody stops the service."""
    path = pathlib.Path("/run/systemd/system/harpe-gov.service.d/slow.conf")
    path.parent.mkdir(exist_ok=True)
    path.write_text("[Service]\nRestartSec=60\n")
    sh("systemctl daemon-reload")
    try:
        yield
    finally:
        path.unlink()
        sh("systemctl daemon-reload; systemctl start harpe-gov.socket harpe-gov.service")
        wait_ready()


def tables_outlive_owners():
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 9)


def test_killed_and_stopped():
    """Stopped before it is started again: systemd drops the socket. The table stays, or is loaded
    again at once."""
    with cable() as far, stray(), slow_restart():
        sh("systemctl kill --kill-whom=main --signal=KILL harpe-gov.service")
        wait_until(lambda: "auto-restart" in sh("systemctl show -P SubState harpe-gov.service"), 10,
                   "it is to be started again")
        expect_equal(came(far), [])
        begin, last = time.monotonic(), 0
        sh("systemctl stop harpe-gov.socket harpe-gov.service")
        while time.monotonic() < begin + LOST:
            if came(far):
                last = time.monotonic() - begin
            time.sleep(0.01)
        print(f"# the table is there again {last:.2f} s after the stop began")
        expect(last == 0 if tables_outlive_owners() else last < LOST / 2, last)
        expect("flags owner" not in listing(), listing())
        wait_drops(STRAY)
        expect_equal("unowned" if "nobody" in sh("harpe-gov firewall show || :") else "owned",
                     "unowned")


def test_stopped_it_is_not_loaded_again():
    """A daemon that handed its table back leaves it to whoever comes: removed, it stays away."""
    cursor = journal_cursor()
    sh("systemctl stop harpe-gov.socket harpe-gov.service")
    try:
        sh("harpe-gov firewall remove")
        time.sleep(2)
        expect("harpe_gov" not in sh("nft list tables"), journal_since(cursor))
    finally:
        sh("systemctl start harpe-gov-firewall.service harpe-gov.socket harpe-gov.service")
        wait_ready()


# ---- lost all the same ----

TAMPERED = {
    "the rules are gone": [(layers.DELRULE, 0, layers.Rules.WHERE)],
    "the table is gone": [
        (layers.DELTABLE, 0, layers.attribute(layers.TABLE_NAME, layers.TABLE))],
}


def tamper(parts):
    """As the daemon, which owns the table. Nobody waits for an answer that it might read first."""
    s = layers.owning_socket(daemon_pid())
    with s:
        layers.send(s, parts)


def watch_loss(far, uid, begin):
    """Seconds until the guest was gone, and until the last packet of the stray process arrived."""
    gone, last = None, 0

    def quiet():
        nonlocal gone, last
        now = time.monotonic() - begin
        if came(far):
            last = now
        if gone is None and set(pool_uids()) == {STRAY}:
            gone = now
        return gone is not None and now > max(gone, last) + 0.5

    wait_until(quiet, LOST + 1, f"the guest of uid {uid} ends and nothing arrives any more")
    return gone, last


def pool_uids():
    for pid in pool_processes():
        with contextlib.suppress(OSError):
            yield os.stat(f"/proc/{pid}").st_uid


def test_lost():
    """The table is changed through its owner's socket: what gets out until it is rebuilt, when the
    guests end, and who is named."""
    with cable() as far, stray():
        for what, parts in TAMPERED.items():
            with sending_guest() as (row, p, report):
                cursor, begin = journal_cursor(), time.monotonic()
                tamper(parts)
                gone, last = watch_loss(far, row["uid"], begin)
                r = Result(p, report)
            print(f"# {what}: guest gone after {gone:.2f} s, table there after {last:.2f} s")
            expect(max(gone, last) < LOST, what, gone, last)
            expect_equal((r.status, r.report["ended"]), (125, "policy-lost"), what, r)
            name = pathlib.Path("/proc/self/comm").read_text().strip()
            text = journal_since(cursor)
            expect(f"{name}, process {os.getpid()}" in text, what, text)
            expect_equal(run("--", "true").status, 0)


# ---- a storm ----


def storm(commits):
    body = layers.attribute(layers.TABLE_NAME, b"storm\0")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, layers.NETLINK_NETFILTER) as s:
        for n in range(commits):
            kind, flags = (layers.DELTABLE, 0) if n % 2 else (layers.NEWTABLE, layers.CREATE)
            layers.send(s, [(kind, flags, body)])


def cpu_seconds(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def test_storm():
    """Foreign commits, faster than the daemon listens and more than it is told of: no guest ends, and
    looking costs little."""
    with cable() as far, stray(), sending_guest() as (row, _, _):
        pid, table = daemon_pid(), listing()
        before = cpu_seconds(pid)
        begin = time.monotonic()
        storm(STORM)
        took = time.monotonic() - begin
        with layers.daemon_stopped():
            storm(STORM)  # does not fit its socket
        wait_until(lambda: [r["id"] for r in ps()] == [row["id"]], 5, "the daemon answers")
        time.sleep(1)
        spent = cpu_seconds(pid) - before
        print(f"# {STORM} commits in {took:.2f} s; the daemon's CPU time {spent:.2f} s")
        expect(spent < STORM_CPU, spent)
        expect_equal((came(far), listing()), ([], table))
        expect_equal([r["state"] for r in ps()], ["running"])
