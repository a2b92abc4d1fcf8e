# SPDX-License-Identifier: GPL-2.0-or-later
"""tooling.py NAME NAME...: uses what Python programs use, each tool in a process of its own; prints
"NAME ok" for what works."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile


def tempfile_():
    with tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile() as g:
        f.write(b"x" * 1000000)
        g.write(b"y")
    with tempfile.TemporaryDirectory() as path:
        pathlib.Path(path, "a").write_text("b")
        os.rename(f"{path}/a", f"{path}/c")


def square(n):
    return n * n


def pool(method):
    import multiprocessing

    context = multiprocessing.get_context(method)
    queue = context.Queue()
    with context.Pool(2) as workers:
        assert workers.map(square, range(10)) == [n * n for n in range(10)]
    queue.put("through a pipe and a semaphore")
    assert queue.get(timeout=30)


def spawn():
    pool("spawn")


def fork():
    pool("fork")


def forkserver():
    pool("forkserver")


def grow(name):
    from multiprocessing import shared_memory

    block = shared_memory.SharedMemory(name)
    block.buf[0] = 7
    block.close()


def shared_memory_():
    import multiprocessing
    from multiprocessing import shared_memory

    block = shared_memory.SharedMemory(create=True, size=1000)
    child = multiprocessing.get_context("spawn").Process(target=grow, args=(block.name,))
    child.start()
    child.join()
    assert block.buf[0] == 7
    block.close()
    block.unlink()


def threads():
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(16) as workers:
        assert sum(workers.map(square, range(100))) == 328350


async def talk():
    import asyncio

    async def echo(reader, writer):
        writer.write(await reader.readline())
        writer.close()

    with tempfile.TemporaryDirectory() as path:
        server = await asyncio.start_unix_server(echo, f"{path}/socket")
        reader, writer = await asyncio.open_unix_connection(f"{path}/socket")
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        server.close()
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    assert (await process.communicate(b"x"))[0] == b"x"
    assert await asyncio.to_thread(square, 3) == 9


def asyncio_():
    import asyncio

    asyncio.run(talk())


def subprocess_():
    assert subprocess.run("echo a | tr a b", shell=True, capture_output=True).stdout == b"b\n"
    assert subprocess.run(["id", "-u"], capture_output=True, start_new_session=True,
                          close_fds=True).stdout == b"%d\n" % os.getuid()
    with subprocess.Popen(["sleep", "100"]) as process:
        process.terminate()


def numpy():
    import numpy

    a = numpy.random.default_rng(1).random((200, 200))
    assert numpy.allclose(a @ numpy.linalg.inv(a), numpy.eye(200))
    with tempfile.NamedTemporaryFile() as f:
        b = numpy.memmap(f.name, dtype="float64", mode="w+", shape=(100, 100))
        b[:] = a[:100, :100]
        b.flush()


def sqlite():
    import sqlite3

    with tempfile.TemporaryDirectory() as path:
        db = sqlite3.connect(f"{path}/db")
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (n)")
        db.executemany("insert into t values (?)", [(n,) for n in range(100)])
        db.commit()
        assert db.execute("select sum(n) from t").fetchone() == (4950,)
        db.close()


def make_wheel(path):
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(f"{path}/tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "answer = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                       "Root-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def pip():
    with tempfile.TemporaryDirectory() as path:
        make_wheel(path)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                        "--find-links", path, "--target", f"{path}/to", "tiny"], check=True)
        subprocess.run([sys.executable, "-c", "import tiny; assert tiny.answer == 42"],
                       env={"PYTHONPATH": f"{path}/to"}, check=True)


def compile_c():
    with tempfile.TemporaryDirectory() as path:
        source = "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n"
        pathlib.Path(path, "a.c").write_text(source)
        subprocess.run(["gcc", "-O2", "-o", f"{path}/a", f"{path}/a.c"], check=True)
        assert subprocess.run([f"{path}/a"], capture_output=True).stdout == b"hello\n"


TOOLS = {f.__name__.strip("_"): f
         for f in (tempfile_, spawn, fork, forkserver, shared_memory_, threads, asyncio_, subprocess_,
                   numpy, sqlite, pip, compile_c)}

if __name__ == "__main__" and len(sys.argv) == 2:
    TOOLS[sys.argv[1]]()
elif __name__ == "__main__":
    for tool in sys.argv[1:]:
        if subprocess.run([sys.executable, __file__, tool]).returncode == 0:
            print(tool, "ok", flush=True)
