# SPDX-License-Identifier: GPL-2.0-or-later
"""Who gets a place: quotas, the pool, waiting, access sections; and the configuration they are in."""
import grp
import pathlib
import subprocess
import time

from lib import (DROP_IN, Result, as_agent, configured, expect, expect_equal, ps, root_ps, run, scopes,
                 sh, start_run, wait_running, wait_until)


def sleepers(n, *options, seconds=600):
    return [start_run("--name", f"s{i}", *options, "--", "sleep", str(seconds), cwd="/")
            for i in range(n)]


def end(processes):
    sh("harpe-gov kill --all")
    for p in processes:
        p.communicate()


def test_quota():
    """One guest too many for the caller: refused at once, and the sentence says by what."""
    with configured("[access]\nmax-guests = 2\n"):
        taken = sleepers(2)
        wait_running("s0"), wait_running("s1")
        r = run("--", "true")
        expect_equal((r.status, r.report["ended"]), (125, "setup-failed"), r)
        expect(b"max-guests" in r.stderr and b"2 guests" in r.stderr, r)
        end(taken)
        r = run("--", "true")
        expect_equal(r.status, 0, r)


def test_pool_memory():
    """The sum of the memory limits is bounded; what could never fit is said to be so."""
    with configured("[pool]\nmemory = 256M\n"):
        taken = sleepers(2, "--memory", "100M")
        wait_running("s0"), wait_running("s1")
        r = run("--memory", "100M", "--", "true")
        expect_equal(r.status, 125, r)
        expect(b"256M" in r.stderr, r)
        r = run("--memory", "32M", "--", "true")
        expect_equal(r.status, 0, r)
        end(taken)
        r = run("--memory", "300M", "--wait", "60s", "--", "true")
        expect_equal(r.status, 125, "would wait for ever", r)


def test_identities_of_one_account():
    """A uid that /etc/subuid lends to an account is no caller of its own, with limits of its own."""
    line = "agent:100000:65536"
    expect(line in pathlib.Path("/etc/subuid").read_text().split(), "the account has such uids")
    for command in (["run", "--", "true"], ["ps"]):
        p = subprocess.run(["harpe-gov", *command], user=100001, group=100001, cwd="/", check=False,
                           extra_groups=[grp.getgrnam("harpe-gov").gr_gid], capture_output=True)
        expect(b"uid 100001 is one of those that /etc/subuid lends" in p.stderr, p)
        expect(p.returncode != 0 and p.stderr.count(b"\n") == 1, p)


def test_connections():
    """One connection too many: refused at once, and the sentence says by what."""
    with configured("[access]\nmax-connections = 1\n"):
        taken = sleepers(1)
        wait_until(lambda: any(g["state"] == "running" for g in root_ps()), 30, "it runs")
        begin = time.monotonic()
        r = run("--", "true")
        expect_equal(r.status, 125, r)
        expect(b"1 connection already, the most that max-connections allows" in r.stderr, r)
        expect(time.monotonic() - begin < 5, "not by a timeout")
    end(taken)


def test_pool_exhausted():
    """All uids in use: another answer than the quota's; with --wait a place comes."""
    with configured("[pool]\ncount = 2\n", "restart"):
        taken = sleepers(2)
        wait_running("s0"), wait_running("s1")
        r = run("--", "true")
        expect_equal(r.status, 125, r)
        expect(b"no uid of the pool's 2" in r.stderr, r)
        waiting = start_run("--name", "waits", "--wait", "60s", "--", "echo", "came", cwd="/")
        wait_until(lambda: any(g["state"] == "waiting" for g in ps()), 20, "it waits")
        sh("harpe-gov kill s0")
        r = Result(waiting)
        expect_equal((r.status, r.stdout), (0, b"came\n"), r)
        end(taken)


def test_wait_ends():
    """Waiting ends when its time is over, when it is killed, and when the caller goes."""
    with configured("[access]\nmax-guests = 1\n"):
        taken = sleepers(1)
        wait_running("s0")
        begin = time.monotonic()
        r = run("--wait", "2s", "--", "true")
        expect_equal(r.status, 125, r)
        expect(b"no place within 2s" in r.stderr, r)
        expect(time.monotonic() - begin >= 2)
        p = start_run("--name", "w", "--wait", "600s", "--", "true", cwd="/")
        wait_until(lambda: any(g["name"] == "w" for g in ps()), 20, "it waits")
        sh("harpe-gov kill w")
        r = Result(p)
        expect_equal(r.status, -9, r)
        p = start_run("--name", "w", "--wait", "600s", "--", "true", cwd="/")
        wait_until(lambda: any(g["name"] == "w" for g in ps()), 20, "it waits")
        p.kill()
        p.communicate()
        wait_until(lambda: all(g["name"] != "w" for g in ps()), 5, "it is forgotten")
        end(taken)


def test_access_sections():
    """[access NAME] by user and by group: no access, own ceilings."""
    with configured("[access none]\nusers = agent\nmax-guests = 0\n"):
        r = run("--", "true")
        expect_equal(r.status, 125, r)
        expect(b"may run no guests" in r.stderr, r)
    with configured("[access agents]\ngroups = harpe-gov\nmemory = 600M\n"):
        r = run("--memory", "700M", "--", "true")
        expect_equal(r.status, 125, r)
        expect(b"600M" in r.stderr, r)
        expect_equal(run("--memory", "600M", "--", "true").status, 0)


def test_bad_configuration():
    """A bad file: `config check` names file and line, a reload keeps the old one."""
    DROP_IN.parent.mkdir(exist_ok=True)
    DROP_IN.write_text("[access]\nmax-guest = 1\n")
    try:
        p = subprocess.run(["harpe-gov", "config", "check"], capture_output=True, check=False)
        expect_equal(p.returncode, 1)
        expect(b"50-test.conf:2" in p.stderr and b"max-guest" in p.stderr, p.stderr)
        subprocess.run(["systemctl", "reload", "harpe-gov.service"], check=False,
                       capture_output=True)
        r = run("--", "true")
        expect_equal(r.status, 0, r)
    finally:
        DROP_IN.unlink()
    shown = sh("harpe-gov config show")
    expect("max-guests = 64" in shown and "built in" in shown, shown)
    sh("systemctl reload harpe-gov.service")


def test_foreign_uids():
    """A pool that belongs to somebody else: the daemon does not start, and says to whom."""
    for line, words in (("first-uid = 524000", "systemd-nspawn"), ("first-uid = 100000", "subuid")):
        DROP_IN.parent.mkdir(exist_ok=True)
        DROP_IN.write_text(f"[pool]\n{line}\ncount = 1000\n")
        old = pathlib.Path("/etc/subuid").read_text() if pathlib.Path("/etc/subuid").exists() else ""
        pathlib.Path("/etc/subuid").write_text("agent:100500:65536\n")
        try:
            p = subprocess.run(["harpe-gov", "config", "check"], capture_output=True, check=False)
            expect_equal(p.returncode, 1, p)
            expect(words.encode() in p.stderr, p.stderr)
        finally:
            DROP_IN.unlink()
            pathlib.Path("/etc/subuid").write_text(old)


def test_quarantine():
    """A uid that a stray process has is not handed out, and the journal names it."""
    stray = subprocess.Popen(["setpriv", "--reuid=90001", "--clear-groups", "sleep", "600"])
    try:
        with configured("[pool]\ncount = 2\n", "restart"):
            for _ in range(3):
                r = run("--", "id", "-u")
                expect_equal((r.status, r.stdout), (0, b"90000\n"), r)
            expect("uid 90001" in sh("journalctl -b -u harpe-gov.service --no-pager"))
            stray.kill()
            stray.wait()
            wait_until(lambda: run("--", "id", "-u").stdout == b"90001\n", 30,
                       "the uid is clean again")
    finally:
        stray.kill()
        stray.wait()
    expect_equal(scopes(), [])
