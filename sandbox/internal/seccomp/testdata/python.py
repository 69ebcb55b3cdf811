"""What Python programs do: threads, children, event loops, worker processes with locks, temporary files, a database."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import sqlite3
import socket
import subprocess
import sys
import tempfile


def count(lock, total):
    for _ in range(100):
        with lock:
            total.value += 1


def workers(method):
    context = multiprocessing.get_context(method)
    lock, total = context.Lock(), context.Value("i", 0, lock=False)
    children = [context.Process(target=count, args=(lock, total)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert total.value == 200


async def echo():
    async def answer(reader, writer):
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        child = await asyncio.create_subprocess_exec("true")
        assert await child.wait() == 0


def main():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: n * n, range(8))) == [n * n for n in range(8)]
    done = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
    assert done.stdout == "42\n"
    subprocess.run("exit 0", shell=True, start_new_session=True, check=True)
    asyncio.run(echo())
    workers("fork")
    workers("spawn")
    assert socket.getaddrinfo("127.0.0.1", 80)
    assert os.sched_getaffinity(0)
    a, b = socket.socketpair()
    a.close()
    b.close()
    with tempfile.TemporaryDirectory() as folder:
        # The strict filter refuses file locks; then a database needs to be told.
        options = "?nolock=1" if sys.argv[1] == "strict" else ""
        with sqlite3.connect(f"file:{folder}/db{options}", uri=True) as database:
            database.execute("CREATE TABLE t (n)")
            database.execute("INSERT INTO t VALUES (1)")
        assert database.execute("SELECT n FROM t").fetchall() == [(1,)]
        database.close()
    print("ok")


if __name__ == "__main__":
    main()
