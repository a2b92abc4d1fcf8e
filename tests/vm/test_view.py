# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest sees of the file systems, looked at from outside through /proc/PID, and what its caller
hands over."""
import contextlib
import os
import pathlib
import shutil
import stat
import subprocess

from lib import (AGENT, DROP_IN, GUESTS, Result, agent_directory, configured, expect, expect_equal, ps,
                 run, sh, start_run, wait_ready, wait_running, wait_until)

BASE = {"bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "tmp", "usr", "var"}


@contextlib.contextmanager
def living(*options, command=("sleep", "60"), **more):
    """A guest that lives; its root directory and its mounts, as the host sees them."""
    process = start_run("--name", "living", *options, "--", *command, **more)
    try:
        pid = wait_running("living")["main_pid"]
        yield pathlib.Path(f"/proc/{pid}/root"), mounts_of(pid)
    finally:
        process.kill()
        process.wait()


def mounts_of(pid):
    """Mount point: options."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        fields = line.split()
        found[fields[4]] = set(fields[5].split(","))
    return found


def private(mode=0o700):
    return agent_directory(mode)


def put(path, text, mode=0o600):
    path.write_text(text)
    os.chown(path, AGENT.pw_uid, AGENT.pw_gid)
    path.chmod(mode)


def refused(r, *words):
    expect_equal(r.status, 125, r)
    expect_equal(r.stdout, b"", r)
    lines = r.stderr.decode().splitlines()
    expect_equal(len(lines), 1, r)
    for word in words:
        expect(word in lines[0], word, lines)


def test_is_an_allow_list():
    """The guest's root has what is listed and nothing else; nothing of /home, /root, /var and /run."""
    with agent_directory() as d, living(cwd=d) as (root, mounts):
        expect_equal({e for e in os.listdir(root) if not e.startswith(".")}, BASE)
        for empty in "home", "root", "run", "var/tmp", "dev/shm":
            expect_equal(os.listdir(root / empty), [], empty)
        expect_equal(os.listdir(root / "var"), ["tmp"])
        expect_equal(os.listdir(root / "tmp"), [os.path.basename(d)])
        expect_equal(set(os.listdir(root / "dev")),
                     {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm",
                      "mqueue", "fd", "stdin", "stdout", "stderr"})


def test_mounts_are_closed():
    """nosuid everywhere, nodev but for the devices; read-only what is the host's."""
    with agent_directory() as d, living(cwd=d) as (_, mounts):
        for path, options in mounts.items():
            expect("nosuid" in options, path, options)
            expect("nodev" in options or path in ("/", "/dev/pts") or path.startswith("/etc/"),
                   path, options)
        for path in "/", "/usr", "/etc":
            expect("ro" in mounts[path], path, mounts[path])
        expect(not any(p.startswith(("/sys", "/boot", "/home")) for p in mounts), mounts)


def test_processes_of_others_are_not_there():
    """/proc has the guest's own processes alone; the host's are not even named."""
    with living(cwd="/") as (root, _):
        # Root sees all, so it looks at the mount's own option, and asks as the guest's uid.
        options = [line.split(" - ")[1] for line in
                   pathlib.Path(root.parent / "mountinfo").read_text().splitlines()
                   if line.split()[4] == "/proc"]
        expect(all("hidepid=invisible" in o for o in options) and options, options)
    r = run("--", "python3", "-c", "import os; print([p for p in os.listdir('/proc') if p.isdigit()]"
                                   " == [str(os.getpid())], os.path.exists('/proc/1'))")
    expect_equal(r.stdout, b"True False\n", r)


def test_users():
    """The guest's uid has a name in the view, and other users of the host have none."""
    r = run("--", "python3", "-c", "import os, pwd, grp; print(pwd.getpwuid(os.getuid()).pw_name,"
            " grp.getgrgid(os.getgid()).gr_name, [p.pw_name for p in pwd.getpwall()])")
    expect_equal(r.stdout, b"guest guest ['root', 'nobody', 'guest']\n", r)


def test_private_directory():
    """0600 below 0700, umask 077: the guest works in it as its own, on disk all is the caller's."""
    with private() as d:
        top = pathlib.Path(d)
        put(top / "guest.py", "import os\nopen('made', 'w').write(open('given').read())\n"
                              "os.makedirs('a/b')\nos.chmod('made', 0o640)\n"
                              "print(os.stat('given').st_uid == os.getuid())\n")
        put(top / "given", "secret")
        before = {p: (p.stat().st_ctime_ns, p.stat().st_mode) for p in top.iterdir()}
        p = start_run("--rw", d, "--", "python3", "guest.py", cwd=d)
        r = Result(p)
        expect_equal((r.status, r.stdout), (0, b"True\n"), r)
        expect_equal({p: (p.stat().st_ctime_ns, p.stat().st_mode) for p in before}, before)
        expect_equal(stat.S_IMODE(top.stat().st_mode), 0o700)
        for name, text in (("made", "secret"), ("a", None), ("a/b", None)):
            st = (top / name).stat()
            expect_equal((st.st_uid, st.st_gid), (AGENT.pw_uid, AGENT.pw_gid), name)
            expect(text is None or (top / name).read_text() == text, name)
        subprocess.run(["rm", "-r", *(str(top / n) for n in ("made", "a"))], user=AGENT.pw_uid,
                       check=True)


def test_private_directory_of_a_group():
    """What the guest makes in a directory of a group of the caller's belongs to that group."""
    with private(0o2770) as d:
        group = int(sh("getent group harpe-gov").split(":")[2])
        os.chown(d, AGENT.pw_uid, group)
        os.chmod(d, 0o2770)
        r = Result(start_run("--rw", d, "--", "touch", "made", cwd=d))
        expect_equal(r.status, 0, r)
        st = os.stat(d + "/made")
        expect_equal((st.st_uid, st.st_gid), (AGENT.pw_uid, group))


def test_strangers_files_in_it():
    """A file of another user's in the directory is as closed as it is for others."""
    with private() as d:
        for name, mode in (("closed", 0o600), ("open", 0o666)):
            path = pathlib.Path(d, name)
            path.write_text("root's")
            path.chmod(mode)
        r = Result(start_run("--rw", d, "--", "python3", "-c",
                             "for f in 'closed', 'open':\n  for m in 'r', 'a':\n    try: open(f, m); print(f, m)\n"
                             "    except OSError: pass", cwd=d))
        expect_equal(r.stdout, b"open r\n", r)


def test_what_cannot_be_given():
    """Another's directory, a file, root's call, something mounted below, a file system that cannot."""
    with private() as d, private() as other:
        os.chown(other, 1001, 1001)
        os.chmod(other, 0o777)
        refused(run("--rw", other, "--", "true"), "belongs to uid 1001, not to you (uid 1000)")
        pathlib.Path(d, "file").touch()
        refused(run("--rw", f"{d}/file", "--", "true"), "is no directory")
        refused(run("--rw", f"{d}/nothing", "--", "true"), f"--rw: {d}/nothing: No such file")
        r = Result(subprocess.Popen(["harpe-gov", "run", "--rw", d, "--", "true"], cwd="/",
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE))
        refused(r, "--rw: not for root")
        os.makedirs(f"{d}/a b/c")
        with mounted(f"{d}/a b/c"):
            refused(run("--rw", d, "--", "true"), f"something is mounted on {d}/a b/c")
        with mounted(f"{d}/a b", kind="ramfs"):  # which no kernel can idmap so far
            os.chown(f"{d}/a b", AGENT.pw_uid, AGENT.pw_gid)
            refused(run("--rw", f"{d}/a b", "--", "true"), "idmapped")
        os.mkdir(f"{d}/own")
        os.chown(f"{d}/own", AGENT.pw_uid, AGENT.pw_gid)
        refused(run("--rw", f"{d}/own", "--rw", d, "--", "true"), f"--rw: {d}/own lies in {d}")
        for own in "/tmp", "/proc", "/dev", "/", "/run":
            refused(run("--ro", own, "--", "true"), f"every guest has a {own} of its own")


@contextlib.contextmanager
def mounted(path, options="mode=755", kind="tmpfs"):
    sh(["mount", "-t", kind, "-o", options, kind, path])
    try:
        yield
    finally:
        sh(["umount", path])


def test_cannot_be_usurped():
    """What is pinned stays the same file, no set-user-ID bit is left, the directory stays."""
    with private() as d:
        top = pathlib.Path(d)
        shutil.copy(GUESTS / "usurp.py", top / "out.py")
        put(top / "out.py", (GUESTS / "usurp.py").read_text())
        put(top / "audit.jsonl", "")
        inodes = {n: (top / n).stat().st_ino for n in ("out.py", "audit.jsonl")}
        r = Result(start_run("--rw", d, "--pin", "out.py:ro", "--pin", "audit.jsonl", "--",
                             "python3", "out.py", "out.py", "audit.jsonl", cwd=d))
        expect_equal((r.status, r.stdout), (0, b""), r)
        for name, inode in inodes.items():
            st = (top / name).lstat()
            expect_equal((st.st_ino, stat.S_IFMT(st.st_mode)), (inode, stat.S_IFREG), name)
        expect_equal((top / "out.py").read_text(), (GUESTS / "usurp.py").read_text())
        for path in top.rglob("*"):
            expect_equal(path.lstat().st_mode & 0o6000, 0, path)


def test_unpinned_can_be_usurped():
    """The counter-check: the same program, without the pins, replaces them."""
    with private() as d:
        put(pathlib.Path(d, "audit.jsonl"), "")
        r = Result(start_run("--rw", d, "--", "python3", GUESTS / "usurp.py", "audit.jsonl", cwd=d))
        expect(b"worked" in r.stdout, r)


def test_pin_is_read_only():
    """A pin with :ro cannot be written to, not even by who owns it; one without can."""
    with private() as d:
        for name in "a", "b":
            put(pathlib.Path(d, name), name)
        r = Result(start_run("--rw", d, "--pin", "a:ro", "--pin", "b", "--", "sh", "-c",
                             "chmod 666 a; echo x >>a; echo y >>b", cwd=d))
        expect_equal(pathlib.Path(d, "a").read_text(), "a", r)
        expect_equal(stat.S_IMODE(os.stat(d + "/a").st_mode), 0o600)
        expect_equal(pathlib.Path(d, "b").read_text(), "by\n", r)


def test_pin_uncovers_nothing():
    """What is read-only or hidden below a pinned directory stays so, whatever the order."""
    with private() as d:
        for name in "shown", "secret":
            os.makedirs(f"{d}/kept/{name}")
            put(pathlib.Path(d, "kept", name, "text"), name, 0o644)
        sh(["chown", "-R", "agent:agent", d + "/kept"])
        options = ["--ro", d + "/kept/shown", "--hide", d + "/kept/secret", "--rw", d, "--pin", "kept"]
        for order in options, options[4:] + options[:4]:
            r = Result(start_run(*order, "--", "sh", "-c",
                                 "cat kept/shown/text; echo x >kept/shown/text; cat kept/secret/text",
                                 cwd=d))
            expect_equal((r.status, r.stdout), (1, b"shown"), r)
        expect_equal(pathlib.Path(d, "kept/shown/text").read_text(), "shown")


def test_pins_that_cannot_be():
    """A symbolic link, what is not there, a path."""
    with private() as d:
        os.symlink("/etc/shadow", d + "/link")
        refused(run("--rw", d, "--pin", "link", "--", "true"), "--pin: link is a symbolic link")
        refused(run("--rw", d, "--pin", "none", "--", "true"), "--pin: none: No such file")
        refused(run("--rw", d, "--pin", "a/b", "--", "true"), '--pin: "a/b" is no name')
        refused(run("--pin", "a", "--", "true"), "needs --rw DIR in front of it")


def test_pins_need_a_guest_without_user_namespaces():
    """A guest that makes them could take the mount away: refused, and nothing was run."""
    with private() as d, configured("[profile nested]\nuser-namespaces = yes\n"
                                    "[access]\nprofiles = isolated nested\n"):
        put(pathlib.Path(d, "log"), "")
        os.makedirs(d + "/data")
        for options in ("--pin", "log"), ("--hide", "/etc/hostname"), ("--ro", d + "/data"):
            r = Result(start_run("--net", "nested", "--rw", d, *options, "--", "touch", "made", cwd=d))
            refused(r, options[0], "would not hold with profile nested")
        expect(not os.path.exists(d + "/made"))
        r = Result(start_run("--net", "nested", "--rw", d, "--", "unshare", "-U", "touch", "made", cwd=d))
        expect_equal(r.status, 0, r)


def test_report_stays_out():
    """A report in the guest's own directory is refused, also by a way round."""
    with private() as d, private() as other:
        os.symlink(d, other + "/way")
        for path in f"{d}/r.json", f"{other}/way/r.json", f"{other}/../{os.path.basename(d)}/r.json":
            r = Result(start_run("--rw", d, "--report", path, "--", "true", cwd=d))
            refused(r, "--report", "lies in the directory of --rw")
        expect_equal(os.listdir(d), [])


def test_read_only():
    """--ro shows a tree with its mounts; it cannot be written to, modes hold."""
    with private(0o755) as d, private(0o755) as work:
        os.makedirs(d + "/sub")
        with mounted(d + "/sub", "mode=777"):
            put(pathlib.Path(d, "sub/deep"), "deep", 0o666)
            put(pathlib.Path(d, "closed"), "closed", 0o600)
            with living("--ro", d, cwd=work) as (root, mounts):
                expect("ro" in mounts[d] and "ro" in mounts[d + "/sub"], mounts)
                expect_equal((root / d[1:] / "sub/deep").read_text(), "deep")
            r = Result(start_run("--ro", d, "--", "sh", "-c",
                                 f"cat {d}/sub/deep; cat {d}/closed; echo x >{d}/sub/deep", cwd=work))
            expect_equal(r.stdout, b"deep", r)
            expect_equal(pathlib.Path(d, "sub/deep").read_text(), "deep")


def test_virtual_environment():
    """A virtual environment in a home that nobody may enter, by --ro."""
    with private() as work:
        venv = "/home/agent/venv"
        subprocess.run(["python3", "-m", "venv", "--without-pip", venv], user=AGENT.pw_uid,
                       group=AGENT.pw_gid, check=True, cwd="/")
        try:
            put(pathlib.Path(work, "out.py"), "import sys; print(sys.prefix)")
            r = Result(start_run("--ro", venv, "--rw", work, "--", venv + "/bin/python3", "out.py",
                                 cwd=work))
            expect_equal(r.stdout.decode().strip(), venv, r)
        finally:
            shutil.rmtree(venv)


def test_words_of_the_caller():
    """A path through a symbolic link is there under the caller's words as well."""
    with private() as d, private() as work:
        os.mkdir(d + "/real")
        os.chown(d + "/real", AGENT.pw_uid, AGENT.pw_gid)
        os.symlink(d + "/real", d + "/link")
        r = Result(start_run("--rw", f"{d}/link", "--", "sh", "-c", f"cd {d}/link && touch x && pwd -P",
                             cwd=d + "/real"))
        expect_equal(r.stdout.decode().strip(), d + "/real", r)
        expect(os.path.exists(d + "/real/x"))
        r = Result(start_run("--rw", "real", "--", "touch", "real/y", cwd=d))
        expect(os.path.exists(d + "/real/y") or r.status == 125, r)


def test_hide():
    """--hide and [view] hide: what is there cannot be opened; [view] ro: more is there."""
    os.makedirs("/opt/more", exist_ok=True)
    pathlib.Path("/opt/more/text").write_text("more")
    with configured("[view]\nro = /opt/more\nhide = /usr/include /nothing\n"):
        with living("--hide", "/etc/hostname", cwd="/") as (root, mounts):
            expect_equal((root / "opt/more/text").read_text(), "more")
            expect("ro" in mounts["/opt/more"], mounts)
            expect_equal(os.listdir(root / "usr/include"), [])
            expect_equal((root / "etc/hostname").stat().st_size, 0)
        r = run("--hide", "/etc/hostname", "--", "cat", "/etc/hostname", "/usr/include/stdio.h")
        expect_equal((r.stdout, r.status), (b"", 1), r)
        refused(run("--hide", "/etc/nothing", "--", "true"), "--hide: /etc/nothing")
    r = run("--", "cat", "/opt/more/text")
    expect_equal((r.stdout, r.status), (b"", 1), r)
    shutil.rmtree("/opt/more")


def test_hide_tells_nothing():
    """What lies where neither the caller nor the guest may look is not told by a refusal."""
    with private() as d:
        os.chown(d, 0, 0)
        put(pathlib.Path(d, "there"), "secret")
        for name in "there", "nothing", "there/deeper":
            refused(run("--ro", d, "--hide", f"{d}/{name}", "--", "true"), f"{name}: Permission denied")


def test_change_while_waiting():
    """A run that waits is not started with the view of before a reload, and says so."""
    limit = "[access]\nmax-guests = 1\n"
    with configured(limit):
        taken = start_run("--name", "taken", "--", "sleep", "60", cwd="/")
        wait_running("taken")
        p = start_run("--name", "waits", "--wait", "600s", "--", "cat", "/etc/hostname", cwd="/")
        wait_until(lambda: any(g["name"] == "waits" for g in ps()), 20, "it waits")
        DROP_IN.write_text(limit + "[view]\nhide = /etc/hostname\n")
        sh("systemctl reload harpe-gov.service")
        wait_ready()
        sh("harpe-gov kill taken")
        refused(Result(p), "was changed while this run waited")
        taken.communicate()


def test_tmp_size():
    """--tmp-size bounds each private directory."""
    r = run("--tmp-size", "64K", "--", "sh", "-c",
            "for d in /tmp /var/tmp /dev/shm; do head -c 1M /dev/zero >$d/x; stat -c %s $d/x; done")
    expect_equal(r.stdout.split(), [b"65536"] * 3, r)
    refused(run("--tmp-size", "1K", "--", "true"), '--tmp-size: "1K" is not')


def test_working_directory():
    """The root is the guest's own; with what is mounted below; what is below /etc needs no place."""
    with private(0o755) as d:
        os.mkdir(d + "/m")
        with mounted(d + "/m", "mode=777"):
            pathlib.Path(d, "m/text").write_text("mounted")
            r = Result(start_run("--", "cat", "m/text", cwd=d))
            expect_equal(r.stdout, b"mounted", r)
    for cwd in "/", "/etc/default", "/usr":
        r = Result(start_run("--", "pwd", cwd=cwd))
        expect_equal(r.stdout.decode().strip(), cwd, r)
    for cwd in "/tmp", "/dev", "/proc":
        refused(Result(start_run("--", "true", cwd=cwd)), f"every guest has a {cwd} of its own")


def test_resolver():
    """/etc/resolv.conf leads somewhere only with a profile that allows name servers."""
    os.makedirs("/run/resolver", exist_ok=True)
    pathlib.Path("/run/resolver/conf").write_text("nameserver 192.0.2.53\n")
    had_one = os.path.lexists("/etc/resolv.conf")
    if had_one:
        os.rename("/etc/resolv.conf", "/etc/resolv.kept")
    os.symlink("/run/resolver/conf", "/etc/resolv.conf")
    try:
        with configured("[profile dns]\nallow = udp 192.0.2.53:53\n[profile web]\n"
                        "allow = tcp 192.0.2.10:443\n[access]\nprofiles = isolated dns web\n"):
            r = run("--net", "dns", "--", "cat", "/etc/resolv.conf")
            expect_equal(r.stdout, b"nameserver 192.0.2.53\n", r)
            r = run("--net", "web", "--", "cat", "/etc/resolv.conf")
            expect_equal((r.stdout, r.status), (b"", 1), r)
    finally:
        os.unlink("/etc/resolv.conf")
        if had_one:
            os.rename("/etc/resolv.kept", "/etc/resolv.conf")
        shutil.rmtree("/run/resolver")


def test_pseudo_terminals():
    """The guest's are of its own instance, bounded, and the host still has some."""
    r = run("--pids", "8", "--", "python3", "-c",
            "import os\nn = 0\ntry:\n  while n < 1000: os.open('/dev/ptmx', os.O_RDWR); n += 1\n"
            "except OSError: pass\nprint(n)")
    expect_equal(r.stdout, b"64\n", r)
    os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))


def test_ro_by_a_link():
    """[view] ro through a symbolic link is refused, with the path to write."""
    pathlib.Path("/opt/real").mkdir()
    os.symlink("real", "/opt/link")
    DROP_IN.write_text("[view]\nro = /opt/link\n")
    try:
        r = subprocess.run(["systemctl", "restart", "harpe-gov.service"], check=False, capture_output=True)
        expect(r.returncode != 0, "the daemon starts")
        r = Result(start_run("--", "true", cwd="/"))
        expect_equal(r.status, 125, r)
        expect(b"/opt/link leads over a symbolic link: write /opt/real" in r.stderr, r)
    finally:
        DROP_IN.unlink()
        os.unlink("/opt/link")
        os.rmdir("/opt/real")
        sh("systemctl reset-failed harpe-gov.service; systemctl restart harpe-gov.service")
        wait_ready()


# One process, which leaves nothing running that makes a name while the directory is removed.
SWAP = """
import os
while True:
    os.symlink("/root/secret", "run/link")
    os.replace("run/link", "run/entry")
    os.unlink("run/entry")
    open("run/entry", "w").close()
    os.rename("run/in", "run/out")
    os.symlink("/root", "run/in")
    os.unlink("run/in")
    os.rename("run/out", "run/in")
"""


def test_race_of_the_caller():
    """The caller swaps entry and directory while runs start: nothing of others' is ever reached."""
    with private() as d:
        secret = pathlib.Path("/root/secret")
        secret.write_text("SECRET")
        secret.chmod(0o644)  # only the path keeps the guest from it
        os.makedirs(d + "/run/in")
        sh(["chown", "-R", "agent:agent", d])
        swapper = subprocess.Popen(["python3", "-c", SWAP], cwd=d, user="agent")
        try:
            for _ in range(8):
                r = Result(start_run("--rw", f"{d}/run", "--pin", "entry", "--ro", f"{d}/run/in", "--",
                                     "cat", f"{d}/run/entry", f"{d}/run/in/secret", cwd="/"))
                expect(b"SECRET" not in r.stdout + r.stderr, r)
            expect(swapper.poll() is None, "nothing was swapped any more")
        finally:
            swapper.kill()
            swapper.wait()
            secret.unlink()
