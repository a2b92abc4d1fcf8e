# SPDX-License-Identifier: GPL-2.0-or-later
"""Who a guest is: nothing of its caller, nobody else, and no way to become somebody."""
import contextlib
import grp
import os
import pathlib
import subprocess
import time

from leaks.far import FAR4, cable
from lib import (POOL, Result, configured, expect, expect_equal, pool_processes, run,
                 start_run)

HELPER = pathlib.Path("/usr/local/bin/setuid-helper")
PORT, WORD = 19997, b"SAID-BY-THE-HELPER"

# Sends a word as whoever it may be. Real, effective and saved uid on standard output.
HELPER_SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	uid_t r, e, s;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 4)
		return 2;
	to.sin_port = htons(atoi(argv[2]));
	inet_aton(argv[1], &to.sin_addr);
	sendto(fd, argv[3], strlen(argv[3]), 0, (struct sockaddr *)&to, sizeof(to));
	getresuid(&r, &e, &s);
	printf("%u %u %u\n", r, e, s);
	return 0;
}
"""


@contextlib.contextmanager
def helper():
    """A setuid program of root's that makes a socket; a guest sees it in /usr."""
    try:
        subprocess.run(["gcc", "-x", "c", "-o", HELPER, "-"], input=HELPER_SOURCE, text=True,
                       check=True)
        HELPER.chmod(0o4755)
        yield [str(HELPER), FAR4, str(PORT), WORD.decode()]
    finally:
        HELPER.unlink(missing_ok=True)


def words_at(far, seconds):
    frames = []
    far.wait(frames, lambda: any(WORD in f.data for f in frames), seconds)
    return sum(WORD in f.data for f in frames)


def test_setuid_helper():
    """A setuid program makes nobody of a guest, and its packet goes nowhere."""
    with helper() as command, cable() as far:
        far.take_datagrams(PORT)
        said = subprocess.run(command, user="other", group="other", capture_output=True, check=True)
        expect_equal(said.stdout.split()[1:], [b"0", b"0"], "the helper is able")
        expect_equal(words_at(far, 10), 1, "the control")
        for net, drops in (("isolated", 0), ("drop", 1)):  # by the guest's own uid
            r = run("--net", net, "--", *command)
            expect_equal(r.stdout, b"%d %d %d\n" % ((r.report["uid"],) * 3), r)
            expect_equal(words_at(far, 1), 0, r)
            expect_equal(r.report["drops"]["uid"], drops, r)


def test_root_with_groups():
    """A caller who is root, and in groups that are as good as root, hands nothing of it down."""
    groups = [grp.getgrnam(name).gr_gid for name in ("disk", "shadow", "harpe-gov")]
    p = subprocess.Popen(["harpe-gov", "run", "--", "cat", "/proc/self/status"], cwd="/",
                         stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, extra_groups=groups)
    r = Result(p)
    expect_equal(r.status, 0, r)
    status = dict(line.split(":", 1) for line in r.stdout.decode().splitlines())
    for name in ("Uid", "Gid"):
        ids = {int(number) for number in status[name].split()}
        expect(len(ids) == 1 and ids <= set(POOL), name, status[name])
    expect_equal(status["Groups"].split(), [])
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        expect_equal(int(status[name], 16), 0, name)
    expect_equal((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))


def uids_of_sleepers():
    """The uid of every `sleep` of a guest's."""
    found = []
    for pid in pool_processes():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                found.append(os.stat(f"/proc/{pid}").st_uid)
    return found


def test_small_pool():
    """12 runs, 4 uids: never two with the same, nobody fails, and all 4 come back."""
    seen = set()
    with configured("[pool]\ncount = 4\n", "restart"):
        for count, options in ((12, ("--wait", "120s")), (4, ("--wait", "10s"))):
            runs = [start_run(*options, "--", "sleep", "1", cwd="/") for _ in range(count)]
            while any(p.poll() is None for p in runs):
                uids = uids_of_sleepers()
                expect_equal(len(uids), len(set(uids)), uids)
                seen.update(uids)
                time.sleep(0.05)
            results = [Result(p) for p in runs]
            expect_equal([r for r in results if r.status != 0], [])
    expect_equal(seen, set(POOL[:4]))
