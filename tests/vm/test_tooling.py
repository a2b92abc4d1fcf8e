# SPDX-License-Identifier: GPL-2.0-or-later
"""What Python programs use works behind the filter and in the view."""
import shutil

from lib import GUESTS, Result, agent_directory, configured, expect_equal, start_run

# What needs system calls that not every program makes, and what is made of these.
BASIC = ["tempfile", "spawn", "fork", "forkserver", "shared_memory", "threads", "asyncio", "subprocess"]
LARGE = ["numpy", "sqlite", "pip", "compile_c"]


def use_tools(tools, *options):
    with agent_directory() as directory:
        shutil.copy(GUESTS / "tooling.py", directory)
        r = Result(start_run(*options, "--time", "10min", "--", "python3", "tooling.py",
                             *tools, cwd=directory), timeout=600)
    expect_equal(r.stdout.decode().split("\n")[:-1], [f"{tool} ok" for tool in tools], r)
    expect_equal(r.status, 0, r)


def test_python_and_c():
    """Temporary files, processes and threads, shared memory, event loops, numpy, databases, pip, cc."""
    use_tools(BASIC + LARGE)


def test_python_and_c_in_the_other_filter():
    """The basic ones with the filter of a profile that allows user namespaces and ICMP."""
    with configured("[access]\nprofiles = isolated nested\n"
                    "[profile nested]\nallow = icmp 192.0.2.1\nuser-namespaces = yes\n"):
        use_tools(BASIC, "--net", "nested")
