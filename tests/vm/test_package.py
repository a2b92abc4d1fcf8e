# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian package, on a host that has harpe-gov from a checkout already."""
import contextlib
import pathlib
import re
import subprocess

from lib import (SRC, Result, Skip, agent_directory, daemon_pid, expect, expect_equal, pool_processes,
                 run, sh, start_run, wait_ready, wait_running)

UNITS = "harpe-gov-firewall.service harpe-gov.socket harpe-gov.service"
OURS = "'harpe-gov*' 'harpe*.slice' 'harpe-*.scope'"  # not the machine's own harpe-vm-*
SAVED = "/var/tmp/harpe-gov-before.tar"


def package():
    found = list((SRC / "build/deb").glob("harpe-gov_*.deb"))
    if not found:
        raise Skip("there is no package: scripts/package builds it")
    return found[0]


def changed_files():
    """What is not as the package has it; dpkg may have been told to leave documentation out."""
    lines = sh("dpkg --verify harpe-gov").splitlines()
    return [line for line in lines if not re.search("/usr/share/(doc|man)(/|$)", line)]


def tables():
    return [line for line in sh("nft list tables").splitlines() if "harpe" in line]


@contextlib.contextmanager
def saved(deb):
    """What the package replaces is there again afterwards."""
    names = sh(f"dpkg-deb --fsys-tarfile {deb} | tar -t").splitlines()
    mine = [n for n in names if pathlib.Path("/", n).is_file()]
    expect("./usr/sbin/harpe-govd" in mine, mine)
    subprocess.run(["tar", "-C", "/", "-cf", SAVED, *mine], check=True)
    try:
        yield
    finally:
        subprocess.run(["dpkg", "--purge", "harpe-gov"], check=False, capture_output=True)
        sh(f"tar -C / -xpf {SAVED} && rm {SAVED}")
        sh(f"systemctl daemon-reload && systemd-tmpfiles --create harpe-gov.conf && systemctl enable --now {UNITS}")
        wait_ready()


def test_life():
    """Installed it serves; a new one in its place ends the guests, who are told, and serves again;
    purged it leaves no guest, no unit, no process and no table."""
    deb = package()
    with saved(deb), agent_directory() as d:
        sh(f"dpkg -i {deb}")
        wait_ready()
        expect_equal(changed_files(), [])
        expect_equal(sh(f"systemctl is-enabled {UNITS}").split(), ["enabled"] * 3)
        expect_equal(run("--", "echo", "fine").stdout, b"fine\n")
        p = start_run("--name", "victim", "--report", d + "/r.json", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        before = daemon_pid()
        sh(f"dpkg -i {deb}")
        r = Result(p, d + "/r.json")
        wait_ready()
        expect_equal((r.status, r.report["ended"]), (125, "governor-stopped"), r)
        expect(daemon_pid() != before)
        expect_equal(run("--", "echo", "fine").stdout, b"fine\n")
        expect_equal(len(tables()), 1, tables())
        p = start_run("--name", "victim", "--", "sleep", "600", cwd=d)
        wait_running("victim")
        sh("dpkg --purge harpe-gov")
        expect_equal(p.wait(), 125)
        expect_equal(pool_processes(), [])
        expect_equal(sh(f"systemctl list-unit-files --no-legend {OURS} || true"), "")
        expect_equal(sh(f"systemctl list-units --no-legend --state=active {OURS}"), "")
        expect_equal(sh("pgrep -c harpe-gov || true").strip(), "0")
        expect_equal(tables(), [])
        for directory in "/run/harpe-gov", "/etc/harpe-gov":
            expect(not pathlib.Path(directory).exists(), sh(f"find {directory} || true"))
