# SPDX-License-Identifier: GPL-2.0-or-later
"""Called as Harpe calls sandbox/run.sh: our driver, and the shared one where it is there."""
import json
import os
import subprocess

from leaks.far import FAR4, cable
from lib import (GUESTS, RUN_SH, SHARED, SRC, Result, as_agent, expect, expect_equal,
                 assert_nothing_left)


def drivers():
    """(driver, folder of guests), the shared pair too where there is one."""
    yield SRC / "tests/vm/harpe_driver.py", GUESTS
    if (SHARED / "harpe/harpe_driver.py").exists():
        yield SHARED / "harpe/harpe_driver.py", SHARED / "harpe/guests"


def drive(guest, *options):
    """Runs a guest through every driver; yields one list of results each."""
    for driver, guests in drivers():
        p = as_agent(["python3", str(driver), RUN_SH, str(guests / guest), *options], cwd="/")
        r = Result(p, timeout=300)
        expect_equal(r.status, 0, r)
        results = [json.loads(line) for line in r.stdout.decode().splitlines()]
        expect(results, driver, r)
        for result in results:
            expect_equal(result["left_behind"], [], driver)
        yield results


def test_calculate():
    """The seed's step 1: a normal calculation."""
    for (r,) in drive("calculate.py"):
        expect_equal((r["returncode"], r["stdout"], r["stderr"]), (0, "332833500\n", ""), r)


def test_loop():
    """Step 2: the caller's time-out ends a loop, and the slot is free at once."""
    for (r,) in drive("loop.py", "--timeout", "6"):
        expect(r["timed_out"], r)
        expect(r["reap_seconds"] < 1, r)
        assert_nothing_left(3)


def test_daemonise():
    """A daemonised grandchild that holds the output neither survives nor blocks."""
    for (r,) in drive("daemonise.py"):
        expect_equal((r["returncode"], r["stdout"]), (0, "parent done\n"), r)
        expect(not r["timed_out"], r)
        assert_nothing_left(3)


def test_memory():
    """The memory limit is said on stderr, which is what the model sees."""
    for (r,) in drive("memory.py", "--timeout", "120"):
        expect_equal(r["returncode"], 124, r)
        expect("memory limit" in r["stderr"], r)


def test_forkbomb():
    """Forks are refused at the limit; nothing is left."""
    for (r,) in drive("forkbomb.py", "--timeout", "120"):
        expect_equal(r["returncode"], 0, r)
        expect("refused after" in r["stdout"], r)
        assert_nothing_left(3)


def test_connect_out():
    """Step 4: what the guest sends does not arrive; the same program run by itself gets through."""
    with cable() as far:
        far.listen(19996)
        far.take_datagrams(19996)
        subprocess.run(["python3", GUESTS / "connect_out.py", FAR4, "19996", "CONTROL"],
                       user="other", group="other", check=True, capture_output=True)
        expect_equal(arrivals(far, b"CONTROL", 10), 2, "the control")
        (r,), = drive_ours("connect_out.py", "--env", f"TARGET={FAR4} 19996 OUT")
        expect_equal((r["returncode"], r["timed_out"]), (0, False), r)
        expect("sent" not in r["stdout"], r)
        expect_equal(arrivals(far, b"OUT", 1), 0, r)


def arrivals(far, word, seconds):
    """How many packets with the word arrive in that time; two are all there are."""
    frames = []

    def count():
        return sum(word in f.data for f in frames)

    far.wait(frames, lambda: count() == 2, seconds)
    return count()


def test_environment():
    """Steps 3 and 5: the environment is what Harpe gave; other files stay closed."""
    for (r,) in drive("environment.py", "--env", "TOKEN=x"):
        expect_equal(r["returncode"], 0, r)
        seen = json.loads(r["stdout"])
        expected = {"PATH", "HARPE_AUDIT_LOG", "HARPE_BROKER_SOCKET", "TOKEN"}
        # The shell that runs run.sh exports these two by itself.
        expect_equal(set(seen["env"]) - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}, expected, seen)
        expect_equal(len(set(seen["uid"])), 1, seen)
        expect(90000 <= seen["uid"][0] < 90256, seen)
        expect_equal(seen["groups"], [], seen)
        expect_equal(seen["fds"], [0, 1, 2], seen)
        expect_equal(seen["nnp"], ["1"], seen)
        expect_equal(set(seen["cap"]), {"0000000000000000"}, seen)
        for path in ("/etc/shadow", "/root", "/home/agent/.env", "/run/dbus/system_bus_socket"):
            if path in seen:
                expect(seen[path] != "readable", path, seen)


def test_bytes():
    """Output arrives byte for byte: 1 MiB of every value (not text, so Harpe times out: its defect)."""
    p = as_agent(["sh", "-c", f'd=$(mktemp -d); chmod 755 $d;'
                              f' cd $d; cp {GUESTS}/bytes.py out.py; exec {RUN_SH} $d/out.py'])
    r = Result(p)
    expect_equal(r.status, 0, r.stderr)
    expect_equal(r.stdout, bytes(range(256)) * 4096)


def test_four_at_once():
    """Harpe's own bound: four runs at once, each with a uid of its own."""
    for results in drive("environment.py", "--concurrent", "4"):
        uids = {json.loads(r["stdout"])["uid"][0] for r in results}
        expect_equal(len(uids), 4, results)


def test_approve():
    """The broker's socket answers, and the guest works in its run directory as in its own."""
    for (r,) in drive("approve.py"):
        expect_equal((r["returncode"], r["stdout"], r["stderr"]), (0, "approved\n", ""), r)
        expect_equal(r["approvals"], 1, r)
        expect_equal([json.loads(line)["decision"] for line in r["audit"]], ["approved"], r)


def test_audit_log():
    """Step 6: what the guest appends to the audit log arrives."""
    for results in drive_ours("audit.py"):
        expect_equal(results[0]["audit"], ['{"category": "guest.test"}'], results)


def drive_ours(guest, *options):
    p = as_agent(["python3", str(SRC / "tests/vm/harpe_driver.py"), RUN_SH, str(GUESTS / guest),
                  *options], cwd="/")
    r = Result(p)
    yield [json.loads(line) for line in r.stdout.decode().splitlines()]


def test_working_directory_is_the_run_directory():
    """The guest works in Harpe's run directory at its own path, and sees nothing else of /tmp."""
    os.makedirs("/tmp/neighbour", exist_ok=True)
    for results in drive_ours("look_around.py"):
        seen = json.loads(results[0]["stdout"])
        expect(seen["cwd"].startswith("/tmp/run-"), seen)
        expect("out.py" in seen["files"], seen)
        expect_equal(seen["tmp"], [os.path.basename(seen["cwd"])], seen)
        expect_equal(seen["run"], [], seen)
    os.rmdir("/tmp/neighbour")
