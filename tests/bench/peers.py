# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared: each row is one way to run /bin/true, all of them with the limits that a guest
of harpe-gov has by default, where they can set any."""
import grp
import json
import os
import pathlib
import shutil
import subprocess
import time

COMMAND = "/bin/true"
UID = 61000  # of nobody's
MEMORY = 512 << 20
TASKS = 128


class Missing(Exception):
    """Why a row is left out."""


class Row:
    def __init__(self, name, argv, user="root"):
        self.name, self.argv, self.user = name, list(map(str, argv)), user

    def line(self):
        path = shutil.which(self.argv[0])
        if not path:
            raise Missing(f"{self.argv[0]} is not installed")
        return "\t".join([self.name, self.user, path, *self.argv[1:]]) + "\n"


def groups_of(user):
    return [g.gr_gid for g in grp.getgrall() if user in g.gr_mem]


def quiet(*argv, timeout=300, **options):
    r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=timeout,
                       check=False, **options)
    if r.returncode != 0:
        lines = (r.stderr or r.stdout).strip().splitlines() or [f"status {r.returncode}"]
        raise Missing(f"{argv[0]}: {lines[-1][:200]}")
    return r.stdout


# ---- harpe-gov ----

WARM = pathlib.Path("/etc/harpe-gov/harpe-gov.conf.d/50-bench.conf")


def keep_warm(n, recycle="no"):
    WARM.parent.mkdir(parents=True, exist_ok=True)
    WARM.write_text(f"[pool]\nwarm = {n}\nrecycle = {recycle}\n")
    quiet("systemctl", "restart", "harpe-gov.service")
    time.sleep(5)


def guest(name, *options):
    return Row(name, ["harpe-gov", "run", *options, "--", COMMAND], "agent")


def harpe_gov(_):
    return guest("harpe-gov")


def cold(_):
    """Asks for more than a warm slot has, and so gets a scope of its own."""
    return guest("harpe-gov-cold", "--memory", "513M")


def other_limits(_):
    return guest("harpe-gov-limits", "--memory", "300M", "--cpu", "50%", "--pids", "50")


def read_write(work):
    directory = work / "rw"
    directory.mkdir()
    shutil.chown(directory, "agent", "agent")
    options = subprocess.run(["harpe-gov", "run", "--help"], capture_output=True, text=True,
                             check=False).stdout
    if "--rw" not in options:
        raise Missing("this harpe-gov has no --rw yet")
    return guest("harpe-gov-rw", "--rw", directory)


# ---- without isolation ----


def nothing(_):
    return Row("true", [COMMAND])


def floor(work):
    return Row("floor", [work / "floor", UID, COMMAND])


# ---- systemd ----

SYSTEMD_LIMITS = [word for limit in (f"MemoryMax={MEMORY}", "MemorySwapMax=0", "CPUQuota=100%",
                                     f"TasksMax={TASKS}") for word in ("-p", limit)]


def scope(_):
    return Row("systemd-run-scope", ["systemd-run", "--scope", "--quiet", *SYSTEMD_LIMITS, COMMAND])


def service(_):
    return Row("systemd-run-service",
               ["systemd-run", "--wait", "--quiet", "-p", "DynamicUser=yes", "-p",
                "IPAddressDeny=any", *SYSTEMD_LIMITS, COMMAND])


# ---- sandboxes ----


def bubblewrap(_):
    return Row("bwrap", ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
                         "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
                         "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
                         "--tmpfs", "/tmp", COMMAND], "agent")


# ---- containers ----


def root_of_host(path):
    """A root whose programs are the host's, once /usr is mounted in it."""
    for name in ("usr", "proc", "dev", "sys", "run", "tmp", "etc"):
        (path / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (path / name).symlink_to(f"usr/{name}")


def bundle(path, systemd):
    """What crun needs: its own example, with our command, limits and root."""
    root_of_host(path / "rootfs")
    quiet("crun", "spec", cwd=path)
    config = json.loads((path / "config.json").read_text())
    config["process"].update(terminal=False, args=[COMMAND], user={"uid": UID, "gid": UID})
    config["root"] = {"path": "rootfs", "readonly": True}
    config["mounts"].append({"destination": "/usr", "source": "/usr", "type": "bind",
                             "options": ["bind", "ro"]})
    config["linux"]["cgroupsPath"] = "system.slice:bench:true" if systemd else "/bench-crun"
    config["linux"]["resources"] = {
        "memory": {"limit": MEMORY, "swap": MEMORY}, "pids": {"limit": TASKS},
        "cpu": {"quota": 100000, "period": 100000}}
    (path / "config.json").write_text(json.dumps(config))


def crun(work, name="crun", options=()):
    path = work / name
    path.mkdir()
    if not shutil.which("crun"):
        raise Missing("crun is not installed")
    bundle(path, bool(options))
    return Row(name, ["crun", *options, "run", "--bundle", path, name])


def crun_systemd(work):
    return crun(work, "crun-systemd", ["--systemd-cgroup"])


CONTAINER_LIMITS = ["--memory", MEMORY, "--memory-swap", MEMORY, "--cpus", "1", "--pids-limit",
                    TASKS, "--network", "none", "--volume", "/usr:/usr:ro"]


def podman(work):
    root = work / "podman"
    root_of_host(root)
    if not shutil.which("podman"):
        raise Missing("podman is not installed")
    return Row("podman", ["podman", "run", "--rm", *CONTAINER_LIMITS, "--rootfs", root, COMMAND])


def docker(work):
    """With a daemon of its own, which stop_docker() ends."""
    if not shutil.which("dockerd"):
        raise Missing("docker is not installed")
    root = work / "docker"
    root_of_host(root / "root")
    with open("/out/dockerd.txt", "w") as log:
        docker.daemon = subprocess.Popen(
            ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root",
             root / "data"], stdout=log, stderr=log)
    for _ in range(120):
        time.sleep(1)
        if docker.daemon.poll() is not None:
            raise Missing("dockerd does not start, see dockerd.txt")
        if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
            break
    quiet("sh", "-c", f"tar -C {root}/root -c . | docker import - bench")
    return Row("docker", ["docker", "run", "--rm", "--security-opt", "apparmor=unconfined",
                          *CONTAINER_LIMITS, "bench", COMMAND])


docker.daemon = None


def stop_docker():
    if docker.daemon:
        docker.daemon.terminate()
        docker.daemon.wait()


FAST = [nothing, floor, harpe_gov, cold, other_limits, read_write, scope, service, bubblewrap, crun,
        crun_systemd]
SLOW = [podman, docker]  # with daemons and with ten times the time: for themselves, fewer rounds


def make_rows(makers, work, say):
    """Those that work here: each was tried once."""
    rows = []
    for maker in makers:
        try:
            row = maker(work)
            row.line()
            quiet(*row.argv, user=row.user, extra_groups=groups_of(row.user))
            rows.append(row)
        except Missing as why:
            say(f"left out: {why}")
    return rows


def work_directory():
    """Of root's, with one in it that is the agent's, where everything runs."""
    path = pathlib.Path("/srv/bench")
    (path / "cwd").mkdir(parents=True)
    shutil.chown(path / "cwd", "agent", "agent")
    os.chdir(path / "cwd")
    return path
