# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit finds every single thing that is not as it must be, and names it; of healthy hosts it
says nothing bad."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess

from leaks import layers
from lib import (POOL, agent_directory, as_agent, configured, expect, expect_equal, has_scopes, root_ps,
                 sh, start_run, wait_ready, wait_running, wait_until)


def audit():
    process = subprocess.run(["harpe-gov", "audit", "--json"], capture_output=True, text=True,
                             check=False, timeout=120)
    expect(process.stdout, process.stderr)
    report = json.loads(process.stdout)
    expect_equal(report["schema"], 1)
    checks = {c["id"]: c for c in report["checks"]}
    results = {c["result"] for c in checks.values()}
    status = 1 if "FAIL" in results else 2 if "UNKNOWN" in results else 0
    expect_equal(process.returncode, status, process.stderr)
    return checks


def of(checks, result):
    return {i: c["found"] for i, c in checks.items() if c["result"] == result}


def assert_healthy(unknown=()):
    checks = audit()
    expect_equal(of(checks, "FAIL"), {})
    expect_equal(sorted(of(checks, "UNKNOWN")), sorted(unknown), of(checks, "UNKNOWN"))
    return checks


def assert_fails(checks, check, *words):
    """That check fails, and says these words."""
    found = of(checks, "FAIL")
    expect(check in found, f"{check} does not fail:", json.dumps(found, indent=1))
    text = " ".join(found[check])
    for word in words:
        expect(word in text, f"{check} does not name {word!r}:", text)


def assert_found(check, *words):
    assert_fails(audit(), check, *words)


@contextlib.contextmanager
def guest(*args, name="audited"):
    with agent_directory() as directory:
        p = start_run("--name", name, *args, "--", "sleep", "600", cwd=directory)
        row = wait_running(name)
        yield row
        p.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(row["main_pid"], signal.SIGKILL)  # one that was moved out of its scope
        p.communicate()
        wait_until(lambda: all(r["id"] != row["id"] for r in root_ps()), 30, "the guest is gone")


def nft(text):
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


# ---- healthy hosts ----


def test_healthy():
    """A host with and without guests: everything passes."""
    assert_healthy()
    with guest():
        checks = assert_healthy()
        expect("1 guest" in checks["HG-RUN-001"]["found"][0], checks["HG-RUN-001"])
    with guest("--net", "drop"), guest("--memory", "64M", "--cpu", "0.1%", name="other"):
        assert_healthy([i for i, c in audit().items() if i == "HG-DOOR-005"
                        and c["result"] == "UNKNOWN"])


SHAPES = {
    "accept before and behind": """
        table inet early { chain o { type filter hook output priority -300; accept; }; }
        table ip late { chain o { type filter hook output priority 300; accept; }; }""",
    "docker": """
        table ip nat {
            chain DOCKER { tcp dport 8080 dnat to 172.17.0.2:80; }
            chain OUTPUT { type nat hook output priority -100; policy accept;
                ip daddr != 127.0.0.0/8 fib daddr type local jump DOCKER; }
            chain POSTROUTING { type nat hook postrouting priority 100; policy accept;
                ip saddr 172.17.0.0/16 masquerade; }
        }
        table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; }""",
    "firewalld": """
        table inet firewalld {
            chain filter_OUTPUT { type filter hook output priority 10; policy accept;
                ct state { established, related } accept; oifname "lo" accept; }
            chain mangle_PRE { type filter hook prerouting priority -140; policy accept; }
        }""",
    "others drop as well": """
        table inet strict { chain o { type filter hook output priority 0; policy drop;
            oifname "lo" accept; }; }""",
    "a local proxy": """
        table ip proxy { chain o { type nat hook output priority -100;
            tcp dport 80 redirect to :3128; }; }""",
    "a table of our name in another family": """
        table ip harpe_gov { chain output { type filter hook output priority -10; accept; }; }""",
    "a table that sleeps": """
        table inet asleep { flags dormant; chain o { type filter hook output priority -300;
            accept; }; }""",
    "egress": """
        table netdev out { chain e { type filter hook egress device lo priority 0; accept; }; }""",
}


def test_healthy_with_others():
    """What Docker, firewalld, proxies and drops of others do to the ruleset is no matter."""
    for name, text in SHAPES.items():
        tables = [" ".join(line.split()[1:3]) for line in text.splitlines()
                  if line.strip().startswith("table")]
        nft(text)
        try:
            checks = assert_healthy()
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        finally:
            for table in tables:
                sh(f"nft delete table {table}")
        if name == "accept before and behind":
            expect("2 other chains at output" in checks["HG-FW-022"]["found"][0],
                   checks["HG-FW-022"])


def test_healthy_without_ipv6():
    """IPv6 disabled by sysctl."""
    sh("sysctl -w net.ipv6.conf.all.disable_ipv6=1")
    try:
        with guest():
            assert_healthy()
    finally:
        sh("sysctl -w net.ipv6.conf.all.disable_ipv6=0")


# ---- one thing changed ----


def scope_of(row):
    return pathlib.Path(row["cgroup"])


def raised(path, text):
    def change(row):
        (scope_of(row) / path).write_text(text)
    return change


def moved_out(row):
    pathlib.Path("/sys/fs/cgroup/init.scope/cgroup.procs").write_text(str(row["main_pid"]))


# A copy of the host's mount, taken along into the guest's mount namespace: open_tree(2), setns(2),
# move_mount(2).
SHOW = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, path = sys.argv[1], sys.argv[2].encode()
tree = libc.syscall(428, -100, path, 1)
assert tree >= 0 and libc.setns(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), 0x20000) == 0
assert libc.syscall(429, tree, b"", -100, path, 4) == 0, ctypes.get_errno()
"""


def sees_the_hosts(path):
    def change(row):
        sh(["python3", "-c", SHOW, str(row["main_pid"]), path])
    return change


LIMIT = "HG-RUN-005"
GUEST_CHANGES = [
    (raised("memory.max", "max"), {LIMIT: "memory.max"}),
    # harpe.slice still caps it: what the guest was made with is not there all the same
    (raised("memory.swap.max", "max"), {LIMIT: "memory.swap.max"}),
    (raised("cpu.max", "max 100000"), {LIMIT: "cpu.max"}),
    (raised("guest/pids.max", "max"), {LIMIT: "pids.max"}),
    (moved_out, {"HG-RUN-004": "/init.scope", "HG-RUN-002": "/init.scope"}),
    (sees_the_hosts("/run"), {"HG-DOOR-001": "/run", "HG-DOOR-002": "/run/dbus/system_bus_socket",
                              "HG-DOOR-004": "/run/"}),
    (sees_the_hosts("/proc"), {"HG-DOOR-001": "/proc"}),
]


def test_changed_guest():
    """A guest whose limit was raised, that was moved or that sees the host's /run."""
    for change, words in GUEST_CHANGES:
        with guest("--memory", "64M", "--cpu", "50%", "--pids", "20") as row:
            change(row)
            checks = audit()
            for check, word in words.items():
                who = str(row["main_pid"]) if check == "HG-RUN-002" else row["id"]
                assert_fails(checks, check, who, word)
    assert_healthy()


@contextlib.contextmanager
def process_of(uid, *command):
    p = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                          *command])
    try:
        wait_until(lambda: os.stat(f"/proc/{p.pid}").st_uid == uid, 10, "it is that uid's")
        yield p
    finally:
        p.kill()
        p.wait()


def joins(row, p):
    (scope_of(row) / "guest/cgroup.procs").write_text(str(p.pid))


def test_stranger_in_guest():
    """In a live guest's scope: a process with another uid, and one with the guest's uid that nothing
    confines."""
    with guest() as row:
        with process_of(POOL[-1], "sleep", "600") as p:
            joins(row, p)
            assert_found("HG-RUN-006", row["id"], str(p.pid), "sleep", str(POOL[-1]))
        with process_of(row["uid"], "sleep", "600") as p:
            joins(row, p)
            expect_equal(of(audit(), "FAIL").get("HG-RUN-006"), None)
            assert_found("HG-RUN-007", row["id"], str(p.pid), "no_new_privs 0", "seccomp filter 0")
    assert_healthy()


def test_filter_detached():
    """Systemd's BPF programs are taken off a live guest's scope."""
    with guest("--net", "drop") as row:
        programs = layers.Programs(scope_of(row))
        try:
            programs.stand(False)
            assert_found("HG-BPF-001", row["id"])
        finally:
            programs.restore()
        expect("HG-BPF-001" not in of(audit(), "FAIL"))
    assert_healthy()


def test_stray_process():
    """A process with a uid of the pool that is no guest's."""
    with process_of(POOL[7], "sleep", "600") as p:
        assert_found("HG-RUN-002", str(p.pid), "sleep", str(POOL[7]))
    assert_healthy()


def test_stranger_in_slice():
    """A unit of somebody else's in a profile's slice, and one in harpe.slice."""
    for where in ("harpe.slice", "harpe-drop.slice"):
        sh(["systemd-run", "--slice", where, "--unit", "stranger", "sleep", "600"])
        try:
            assert_found("HG-RUN-003", "sleep", "stranger.service")
        finally:
            sh("systemctl stop stranger.service")
    assert_healthy()


def test_leftovers():
    """A file and a System V object of uids of the pool."""
    path = pathlib.Path("/var/tmp/left")
    path.write_text("x")
    os.chown(path, POOL[3], POOL[3])
    try:
        assert_found("HG-RUN-008", str(path), str(POOL[3]))
    finally:
        path.unlink()
    ipc = sh(["setpriv", f"--reuid={POOL[4]}", "--clear-groups", "ipcmk", "-M", "4096"]).split()[-1]
    try:
        assert_found("HG-RUN-009", f"id {ipc} ", str(POOL[4]))
    finally:
        sh(["ipcrm", "-m", ipc])
    assert_healthy()


ADD_KEY = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
PROCESS_KEYRING = -2
def add(name):
    if libc.syscall(248, b"user", name, b"x", 1, PROCESS_KEYRING) < 0: sys.exit("add_key")
add(b"own")  # makes the keyring, which is root's
libc.setfsuid(int(sys.argv[1]))
add(b"left")
libc.setfsuid(0)
print("there", flush=True)
time.sleep(600)
"""


def test_keys():
    """A key of a uid of the pool that no guest has."""
    uid = POOL[6]
    with subprocess.Popen(["python3", "-c", ADD_KEY, str(uid)], stdout=subprocess.PIPE) as p:
        try:
            expect_equal(p.stdout.readline(), b"there\n")
            assert_found("HG-RUN-010", str(uid))
        finally:
            p.kill()
    wait_until(lambda: f"{uid}:" not in pathlib.Path("/proc/key-users").read_text(), 30,
               "the key is gone")
    assert_healthy()


@contextlib.contextmanager
def line_in(path, line):
    file = pathlib.Path(path)
    before = file.read_text() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_text((before or "") + line + "\n")
    try:
        yield
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before)


def test_pool_of_somebody_else():
    """An account, a group and a container range in the pool; a dynamic user's uid."""
    with line_in("/etc/passwd", f"eve:x:{POOL[9]}:100::/:/bin/sh"):
        assert_found("HG-POOL-001", "/etc/passwd")
        assert_found("HG-POOL-002", str(POOL[9]), "eve")
    with line_in("/etc/group", f"eves:x:{POOL[9]}:"):
        assert_found("HG-POOL-001", "/etc/group")
        assert_found("HG-POOL-002", "eves")
    with line_in("/etc/subuid", f"agent:{POOL[0] - 10}:65536"):
        assert_found("HG-POOL-001", "/etc/subuid")
    with line_in(f"/run/systemd/dynamic-uid/{POOL[5]}", "dyn"):
        assert_found("HG-POOL-003", str(POOL[5]))
    assert_healthy()


def test_open_socket_of_root():
    """A docker socket that is open to all."""
    code = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('/run/docker.sock'); " \
           "s.listen(); time.sleep(600)"
    p = subprocess.Popen(["python3", "-c", code])
    socket = pathlib.Path("/run/docker.sock")
    try:
        wait_until(socket.exists, 20, "the socket is there")
        os.chmod(socket, 0o660)
        assert_healthy()
        os.chmod(socket, 0o666)
        assert_found("HG-DOOR-003", "/run/docker.sock", "0666")
    finally:
        p.kill()
        p.wait()
        socket.unlink()


def test_abstract_socket():
    """An abstract socket that a guest without a network of its own can reach is named."""
    code = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0helper'); " \
           "s.listen(); time.sleep(600)"
    p = subprocess.Popen(["python3", "-c", code])
    try:
        wait_until(lambda: "@helper" in pathlib.Path("/proc/net/unix").read_text(), 20, "@helper")
        with guest():
            assert_healthy()
        with guest("--net", "drop"):
            check = audit()["HG-DOOR-005"]
            expect_equal(check["result"], "PASS" if has_scopes() else "UNKNOWN", check)
            word = "Landlock" if has_scopes() else "@helper"
            expect(any(word in f for f in check["found"]), check)
    finally:
        p.kill()
        p.wait()


def test_foreign_allow():
    """IPAddressAllow= above the profiles' slices."""
    for where in ("harpe.slice", "-.slice"):
        sh(["systemctl", "set-property", "--runtime", "--", where, "IPAddressAllow=192.0.2.1"])
        try:
            assert_found("HG-BPF-002", where)
        finally:
            sh(["systemctl", "set-property", "--runtime", "--", where, "IPAddressAllow="])
    assert_healthy()


def test_slice_without_filter():
    """IPAddressDeny= is taken from a profile's slice."""
    for slice_ in ("harpe-drop.slice", "harpe-isolated.slice"):
        sh(["systemctl", "set-property", "--runtime", slice_, "IPAddressDeny="])
        try:
            assert_found("HG-BPF-002", slice_)
        finally:
            sh(["systemctl", "revert", slice_])
    assert_healthy()


ALLOWED = """
[access]
profiles = isolated drop reject web
[profile web]
allow = tcp 192.0.2.10:443
allow = tcp [2001:db8::10]:443
allow = tcp 127.0.0.1:3128
"""
REWRITES = [
    ("iptables-nft", "-p tcp --dport 80 -j DNAT --to-destination 192.0.2.10:443", "UNKNOWN"),
    ("iptables-nft", "-p tcp --dport 80 -j DNAT --to-destination 192.0.2.10", "UNKNOWN"),
    ("iptables-nft", "-p tcp --dport 80 -j REDIRECT --to-ports 3128", "UNKNOWN"),
    ("ip6tables-nft", "-p tcp -j DNAT --to-destination [2001:db8::10]:443", "UNKNOWN"),
    ("iptables-nft", "-p tcp --dport 80 -j DNAT --to-destination 192.0.2.10:444", "PASS"),
    ("iptables-nft", "-p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80", "PASS"),
    ("iptables-nft", "-p tcp --dport 80 -j REDIRECT --to-ports 3129", "PASS"),
    ("ip6tables-nft", "-p tcp -j DNAT --to-destination [2001:db8::11]:443", "PASS"),
    ("ip6tables-nft", "-p tcp -j REDIRECT --to-ports 3128", "PASS"),
]


def test_rewrites():
    """Somebody turns destinations into others: a matter only when a profile allows those."""
    with configured(ALLOWED):
        for tool, rule, result in REWRITES:
            sh(f"{tool} -t nat -A OUTPUT {rule}")
            try:
                check = audit()["HG-FW-021"]
                expect_equal(check["result"], result, rule, check)
            finally:
                sh(f"{tool} -t nat -F OUTPUT")
        sh("nft flush ruleset")


def test_copies():
    """Somebody's chain sends a copy of everything before it is dropped."""
    text = "table ip copies { chain o { type filter hook output priority -300; " \
           "ip daddr 203.0.113.1 dup to 192.0.2.1; }; }"
    nft(text)
    try:
        assert_found("HG-FW-020", "chain ip copies o")
    finally:
        sh("nft delete table ip copies")
    assert_healthy()


def test_configuration():
    """A configuration that is not what is loaded, and one that is bad."""
    drop_in = "/etc/harpe-gov/harpe-gov.conf.d/zz-audit.conf"
    with line_in(drop_in, "[pool]\ncount = 200"):
        assert_found("HG-FW-006", "uid 90200")
    with line_in(drop_in, "[pool]\ncount = many"):
        assert_found("HG-FW-008", "zz-audit.conf")
    assert_healthy()


def test_not_enabled():
    """The table would not be there at the next boot."""
    sh("systemctl disable harpe-gov-firewall.service")
    try:
        assert_found("HG-SYS-002", "harpe-gov-firewall.service")
    finally:
        sh("systemctl enable harpe-gov-firewall.service")
    assert_healthy()


UNOWNED = [
    ("nft insert rule inet harpe_gov output accept", "HG-FW-004", "rule 1 in chain output"),
    ("nft add table inet harpe_gov '{ flags dormant; }'", "HG-FW-001", "flags 0x1"),
    ("nft delete element inet harpe_gov pool '{ 90001 }'", "HG-FW-006", "uid 90001 is missing"),
    ("nft flush map inet harpe_gov profiles", "HG-FW-007", "set profiles"),
    ("nft add chain inet harpe_gov output '{ policy drop; }'", "HG-FW-003", "policy 0"),
    ("systemctl stop harpe-gov-firewall harpe.slice && systemctl start harpe.slice "
     "harpe-drop.slice harpe-isolated.slice harpe-reject.slice", "HG-FW-004",
     "rule 1 in chain output"),
    ("nft delete table inet harpe_gov", "HG-FW-001", "there is no table"),
]


def test_without_the_daemon():
    """A daemon that is stopped is named; then the table can be changed, and that is named too."""
    try:
        sh("systemctl stop harpe-gov.socket harpe-gov.service")
        checks = audit()
        assert_fails(checks, "HG-RUN-001", "no harpe-govd serves")
        assert_fails(checks, "HG-FW-002", "nobody owns it")
        for change, check, word in UNOWNED:
            sh("systemctl stop harpe-gov.socket harpe-gov.service")
            sh(change)
            checks = audit()
            assert_fails(checks, "HG-RUN-001", "no harpe-govd serves")
            assert_fails(checks, check, word)
            sh("systemctl start harpe-gov.socket harpe-gov.service")
            wait_ready()
    finally:
        sh("systemctl start harpe-gov-firewall harpe-gov.socket harpe-gov.service")
        wait_ready()
    assert_healthy()


def test_for_root_alone():
    """Others get one sentence; so does a word too much."""
    for command in (["harpe-gov", "audit"], ["/usr/sbin/harpe-govd", "--audit", "text"]):
        p = as_agent(command)
        out, err = p.communicate()
        expect_equal((p.returncode, out, err.count(b"\n")), (3, b"", 1), err)
    p = subprocess.run(["harpe-gov", "audit", "all"], capture_output=True, check=False)
    expect_equal((p.returncode, p.stderr.count(b"\n")), (3, 1), p.stderr)


def test_canary():
    """Packets that the layers have to stop; one without the table arrives and is named."""
    def canary():
        p = subprocess.run(["harpe-gov", "audit", "--json", "--canary"], capture_output=True,
                           text=True, check=False, timeout=120)
        checks = {c["id"]: c for c in json.loads(p.stdout)["checks"]}
        return p.returncode, checks

    status, checks = canary()
    expect_equal(of(checks, "FAIL"), {})
    expect_equal(sorted(of(checks, "UNKNOWN")), ["HG-NET-003"], of(checks, "UNKNOWN"))
    expect_equal(status, 2)
    try:
        sh("systemctl stop harpe-gov.socket harpe-gov.service")
        sh("nft delete table inet harpe_gov")
        status, checks = canary()
        expect("HG-NET-002" in of(checks, "FAIL"), checks["HG-NET-002"])
        expect_equal(checks["HG-NET-001"]["result"], "UNKNOWN", checks["HG-NET-001"])
        expect_equal(status, 1)
    finally:
        sh("systemctl start harpe-gov-firewall harpe-gov.socket harpe-gov.service")
        wait_ready()
    assert_healthy()
