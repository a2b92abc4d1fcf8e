# SPDX-License-Identifier: GPL-2.0-or-later
"""What the daemon needs and does not find: one sentence with the remedy, soon, and nothing half-done;
and what a caller is told meanwhile."""
import contextlib
import os
import pathlib
import subprocess
import time

from lib import (Result, agent_directory, expect, expect_equal, run, scopes, sh, start_run,
                 wait_ready, wait_until)

DAEMON = "/usr/sbin/harpe-govd"
STATE = pathlib.Path("/run/harpe-gov/state")
SOON = 10  # seconds; by itself nobody waits longer than 5


def tables():
    """What nft lists, or that it cannot."""
    done = subprocess.run(["nft", "list", "tables"], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout


def refused(*command, **options):
    """Runs the daemon, which must refuse. Returns its one sentence."""
    before = tables(), scopes(), os.listdir("/run/harpe-gov"), STATE.read_bytes()
    begin = time.monotonic()
    done = subprocess.run(command or [DAEMON], check=False, capture_output=True, text=True,
                          timeout=60, **options)
    took = time.monotonic() - begin
    expect(done.returncode != 0, done)
    expect_equal((done.stdout, done.stderr.count("\n"), done.stderr[:12]), ("", 1, "harpe-govd: "),
                 done)
    expect(took < SOON, f"{took:.1f} s", done)
    after = tables(), scopes(), os.listdir("/run/harpe-gov"), STATE.read_bytes()
    expect_equal(after, before)
    return done.stderr


def refused_in(script, *arguments):
    """The same in a mount namespace of its own, once the shell script has been run in it."""
    return refused("unshare", "-m", "sh", "-ec", f'{script}\nexec {DAEMON} "$@"', "sh", *arguments)


def expect_words(sentence, *words):
    for word in words:
        expect(word in sentence, f"no {word!r} in {sentence!r}")


def probes_pass():
    """By hand, the daemon has no socket: that is what it says once all probes have passed."""
    expect_words(refused(), "passed no socket", "start harpe-gov.socket")


def nobody_runs(*words):
    """A caller is told the same, soon; nothing is started."""
    with agent_directory(0o777) as d:
        begin = time.monotonic()
        r = run("--", "touch", "there", cwd=d)
        took = time.monotonic() - begin
        expect_equal(r.status, 125, r)
        expect_words(r.stderr.decode(), *words)
        expect_equal((r.report["ended"], r.report["guest_ran"]), ("setup-failed", False), r)
        expect(took < SOON, f"{took:.1f} s", r)
        expect_equal((os.listdir(d), scopes()), ([], []))


def runs_again():
    sh("systemctl restart harpe-gov.service")
    wait_ready()
    r = run("--", "echo", "fine")
    expect_equal((r.status, r.stdout), (0, b"fine\n"), r)


@contextlib.contextmanager
def service_refuses(*words):
    """The service is made to start anew, and cannot."""
    subprocess.run(["systemctl", "stop", "harpe-gov.service"], check=True, capture_output=True)
    before = tables()
    subprocess.run(["systemctl", "start", "harpe-gov.service"], check=False, capture_output=True)
    try:
        wait_until(lambda: all(w in STATE.read_text() for w in words), SOON,
                   f"{words} in {STATE}, which has {STATE.read_text()!r}")
        expect_equal(tables(), before)
        yield
    finally:
        subprocess.run(["systemctl", "stop", "harpe-gov.service"], check=False, capture_output=True)
        subprocess.run(["systemctl", "reset-failed", "harpe*"], check=False, capture_output=True)


def test_healthy():
    """On a healthy host all probes pass, by hand as well, and the daemon that serves is left alone.
    systemctl's private door to systemd is not needed: the bus is."""
    probes_pass()
    expect_words(refused_in("mount --bind /dev/null /run/systemd/private"), "passed no socket")
    r = run("--", "true")
    expect_equal(r.status, 0, r)


def test_degraded():
    """A failed unit elsewhere is none of our business."""
    subprocess.run(["systemd-run", "-q", "--wait", "--unit=broken", "false"], check=False)
    try:
        state = subprocess.run(["systemctl", "is-system-running"], check=False, text=True,
                               capture_output=True).stdout.strip()
        expect_equal(state, "degraded")
        runs_again()
    finally:
        sh("systemctl reset-failed broken")


def test_not_root():
    """Started by a user."""
    expect_words(refused(user="agent"), "must be started as root", "systemctl start")
    expect_words(refused(DAEMON, "--firewall", user="agent"), "must be started as root")


def test_in_a_user_namespace():
    """Root of a user namespace has no right to the host's firewall."""
    for arguments in [], ["--firewall"]:
        expect_words(refused("unshare", "-U", "-r", DAEMON, *arguments), "user namespace",
                     "on the host itself")


def test_without_a_capability():
    """A container without CAP_NET_ADMIN, or any other that is needed."""
    for name in "net_admin", "sys_admin", "sys_ptrace":
        expect_words(refused("setpriv", f"--bounding-set=-{name}", f"--inh-caps=-{name}", DAEMON),
                     f"CAP_{name.upper()} is missing", "CapabilityBoundingSet=")
    # where it does not see that a daemon serves, which makes it leave at once
    hidden = "mount -t tmpfs none /run/harpe-gov && exec setpriv --bounding-set=-net_admin "
    expect_words(refused("unshare", "-m", "sh", "-c", f"{hidden} {DAEMON} --firewall"),
                 "CAP_NET_ADMIN is missing")


def test_without_systemd():
    """A host that was not booted with systemd: the daemon and the client say so."""
    hide = "mount -t tmpfs none /run/systemd"
    expect_words(refused_in(hide), "systemd is not running here", "PID 1")
    script = f"{hide}\nmount -t tmpfs none /run/harpe-gov\nexec harpe-gov run -- touch /tmp/ran"
    r = Result(subprocess.Popen(["unshare", "-m", "sh", "-ec", script], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE))
    expect_equal((r.status, r.stderr.count(b"\n"), os.path.exists("/tmp/ran")), (125, 1, False), r)
    expect_words(r.stderr.decode(), "systemd is not running here")


def test_without_cgroup_v2():
    """A v1 or a hybrid hierarchy, for the early firewall as well."""
    v1 = "mount -t tmpfs none /sys/fs/cgroup"
    hybrid = v1 + "; mkdir /sys/fs/cgroup/unified; mount -t cgroup2 none /sys/fs/cgroup/unified"
    for script, what in (v1, "is v1"), (hybrid, "is a hybrid of v1 and v2"):
        for arguments in [], ["--firewall"]:
            expect_words(refused_in(script, *arguments), "cgroup v2 needed", what,
                         "systemd.unified_cgroup_hierarchy=1")


def test_without_a_controller_in_the_kernel():
    """cgroup_disable=memory."""
    script = ("echo cpuset cpu io pids >/tmp/controllers\n"
              "mount --bind /tmp/controllers /sys/fs/cgroup/cgroup.controllers")
    expect_words(refused_in(script), "memory controller is not available in /sys/fs/cgroup:",
                 "cgroup_disable=memory")
    os.unlink("/tmp/controllers")


@contextlib.contextmanager
def drop_in(unit, text):
    path = pathlib.Path(f"/etc/systemd/system/{unit}.d/take.conf")
    path.parent.mkdir()
    path.write_text(f"[Slice]\n{text}\n")
    try:
        sh("systemctl daemon-reload")
        yield path
    finally:
        path.unlink()
        path.parent.rmdir()
        sh("systemctl daemon-reload")


def test_without_a_controller():
    """DisableControllers= in a drop-in: runs are refused from then on, and so is the next start."""
    for unit, controller in ("harpe.slice", "cpu"), ("harpe-isolated.slice", "memory"):
        with drop_in(unit, f"DisableControllers={controller}") as path:
            missing = f"{controller} controller is not available in "
            r = run("--", "true")
            expect_equal((r.status, r.report["ended"]), (125, "setup-failed"), r)
            expect_words(r.report["error"], missing, "DisableControllers=")
            expect_words(refused(), missing + unit, str(path), "daemon-reload")
            with service_refuses(missing + unit, str(path)):
                nobody_runs("harpe-gov.service does not start", missing + unit, str(path))
        runs_again()


def test_io_is_optional():
    """The io controller may be missing."""
    with drop_in("harpe.slice", "DisableControllers=io"):
        runs_again()


def test_without_user_namespaces():
    """user.max_user_namespaces=0."""
    old = sh("sysctl -n user.max_user_namespaces").strip()
    sh("sysctl -w user.max_user_namespaces=0")
    try:
        expect_words(refused(), "user namespaces are disabled", "sysctl user.max_user_namespaces")
        with service_refuses("user namespaces are disabled"):
            nobody_runs("harpe-gov.service does not start: user namespaces are disabled")
    finally:
        sh(f"sysctl -w user.max_user_namespaces={old}")
    runs_again()


def test_without_a_bus():
    """No socket of the system bus; and a broker that has stopped."""
    expect_words(refused_in("mount -t tmpfs none /run/dbus"), "no connection to the system bus",
                 "systemctl start dbus.socket")
    broker = sh("systemctl show -P MainPID dbus.service").strip()
    sh(["kill", "-STOP", broker])
    try:
        sentence = refused()
    finally:
        sh(["kill", "-CONT", broker])
    expect_words(sentence, "the system bus does not answer", "systemctl restart dbus.service")
    probes_pass()


@contextlib.contextmanager
def frozen_systemd():
    freeze = pathlib.Path("/sys/fs/cgroup/init.scope/cgroup.freeze")
    freeze.write_text("1")
    try:
        yield
    finally:
        freeze.write_text("0")


def test_systemd_is_frozen():
    """PID 1 does not answer: neither the daemon nor, without a daemon, a caller waits for it."""
    with frozen_systemd():
        sentence = refused()
    expect_words(sentence, "systemd (PID 1) does not answer")
    subprocess.run(["systemctl", "stop", "harpe-gov.service"], check=True, capture_output=True)
    with frozen_systemd():
        nobody_runs("harpe-gov.service is not running", "systemctl status harpe-gov.service")
    runs_again()


def unload(name):
    """The module and those that use it, which earlier tests may have had loaded."""
    module = pathlib.Path("/sys/module") / name

    def gone():
        for holder in module.glob("holders/*"):
            subprocess.run(["rmmod", holder.name], check=False, capture_output=True)
        return subprocess.run(["rmmod", name], check=False, capture_output=True).returncode == 0

    if module.exists():
        wait_until(gone, 30, f"module {name} unloaded; {sh('lsmod | grep nf')}")


@contextlib.contextmanager
def without_module(name):
    """Not loaded, and not to be loaded."""
    path = pathlib.Path("/etc/modprobe.d/without.conf")
    subprocess.run(["systemctl", "stop", "harpe-gov.service", "harpe-gov-firewall.service"],
                   check=True, capture_output=True)
    sh("nft flush ruleset")
    path.write_text(f"install {name} /bin/false\n")
    try:
        unload(name)
        yield
    finally:
        path.unlink()


def test_without_nf_tables():
    """A kernel without nf_tables, or without the match for sockets: no guest without rules."""
    for name in "nft_socket", "nf_tables":
        with without_module(name):
            words = f"load the module {name}"
            done = subprocess.run([DAEMON, "--firewall"], check=False, capture_output=True,
                                  text=True, timeout=SOON)
            expect(done.returncode != 0, done)
            expect_words(done.stderr, words)
            with service_refuses(words):
                nobody_runs("harpe-gov.service does not start", words)
        runs_again()


def test_supervisors_do_not_fit():
    """Half an upgrade: the program of supervisors is gone, or another one."""
    path = "/usr/libexec/harpe-gov/harpe-gov-supervisor"
    other = "printf '#!/bin/sh\\nexit 2\\n' >/tmp/other; chmod 755 /tmp/other; mount --bind /tmp/other"
    expect_words(refused_in(f"{other} {path}"), path, "is of another version",
                 "install all of harpe-gov anew")
    os.unlink("/tmp/other")
    for bad in "/bin/false", "/dev/null", "/etc/hostname":
        expect_words(refused_in(f"mount --bind {bad} {path}"), path, "cannot be run",
                     "install all of harpe-gov anew")
    expect_words(refused_in(f"mount -t tmpfs none {os.path.dirname(path)}"), path, "cannot be run")
    probes_pass()


def test_without_a_socket():
    """No socket, and nobody behind it: the client says which."""
    subprocess.run(["systemctl", "stop", "harpe-gov.socket", "harpe-gov.service"], check=True,
                   capture_output=True)
    try:
        nobody_runs("cannot connect to /run/harpe-gov/socket", "systemctl start harpe-gov.socket")
    finally:
        sh("systemctl start harpe-gov.socket")
    runs_again()


def test_started_by_a_caller():
    """A connection starts the service; the caller waits for it."""
    subprocess.run(["systemctl", "stop", "harpe-gov.service"], check=True, capture_output=True)
    with agent_directory() as d:
        r = Result(start_run("--", "echo", "fine", cwd=d))
        expect_equal((r.status, r.stdout), (0, b"fine\n"), r)
    wait_ready()
