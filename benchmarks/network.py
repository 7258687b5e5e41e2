"""Network by host: what a grant adds to the start of a call, and connections through the egress process against direct
ones.

It is a program of its own that needs only Python's library and haft, so that it can also run as another user. It prints
one JSON object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence

from haft.contracts import Command, EndedChild, Grants, Limits, Stream
from haft.files import Root
from haft.sandbox import Sandbox

TIMES, ROUNDS = 10, 15
BYTES = 256_000_000
CONNECTIONS = 1000

CLIENT = """
import json, socket, sys, time
port, size = int(sys.argv[1]), int(sys.argv[2])
def connect(kind):
    end = socket.create_connection(("127.0.0.1", port))
    end.sendall(kind)
    return end
laps = []
for _ in range(300):
    begin = time.perf_counter()
    with connect(b"1") as end:
        end.recv(1)
    laps.append(time.perf_counter() - begin)
with connect(b"s") as end:
    begin, got = time.perf_counter(), 0
    buffer = bytearray(1 << 18)
    while got < size:
        got += end.recv_into(buffer)
    seconds = time.perf_counter() - begin
print(json.dumps({"connect": sorted(laps)[150], "transfer": seconds}))
"""

CROWD = """
import socket, sys
ends = []
for _ in range(int(sys.argv[2])):
    end = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    end.sendall(b"e")
    ends.append(end)
for end in ends:
    end.recv(1)
print("open", flush=True)
sys.stdin.read(1)
"""


class Kept:
    def __init__(self) -> None:
        self.text = b""
        self.came = asyncio.Event()

    def output(self, stream: Stream, data: bytes) -> None:
        self.text += data
        self.came.set()

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


def serve(listener: socket.socket) -> None:
    """Answer one byte, send without end, or echo, as the first byte says."""

    def talk(end: socket.socket) -> None:
        with contextlib.suppress(OSError), end:
            kind = end.recv(1)
            end.sendall(b"x")
            block = b"x" * (1 << 18)
            while kind == b"s":
                end.sendall(block)
            while kind == b"e" and end.recv(1):
                pass

    while True:
        end, _ = listener.accept()
        threading.Thread(target=talk, args=(end,), daemon=True).start()


def own_kilobytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        _size, resident, shared = map(int, file.read().split()[:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") // 1000


async def measure() -> dict[str, object]:
    threading.stack_size(1 << 18)
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listener.getsockname()[1]
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    with tempfile.TemporaryDirectory() as workspace, tempfile.TemporaryDirectory() as home:
        sandbox = Sandbox(workspace, home, os.environ, Root(workspace).open_directory, Limits(max_open_files=4096))
        try:
            without = sandbox.launcher("workspace")
            by_host = sandbox.launcher("workspace", Grants(network=(f"localhost:{port}",)))
            whole = sandbox.launcher("workspace", Grants(network=True))
            command = Command(["/bin/true"])
            starts: tuple[list[float], list[float]] = [], []
            for launcher in (without, by_host):
                for _ in range(5):
                    await launcher.run(command, Kept())
            for _ in range(ROUNDS):
                for place, launcher in zip(starts, (without, by_host), strict=True):
                    # The first call after one of another kind builds its sandbox anew.
                    await launcher.run(command, Kept())
                    begin = time.perf_counter()
                    for _ in range(TIMES):
                        await launcher.run(command, Kept())
                    place.append((time.perf_counter() - begin) / TIMES)
            client = Command([sys.executable, "-c", CLIENT, str(port), str(BYTES)])
            found = {}
            for name, launcher in (("direct", whole), ("by_host", by_host)):
                sink = Kept()
                await launcher.run(client, sink)
                found[name] = json.loads(sink.text)
            memory = await crowd(sandbox, by_host, port)
        finally:
            sandbox.close()
    return {
        "start": {"without": statistics.median(starts[0]), "by_host": statistics.median(starts[1])},
        **found,
        "bytes": BYTES,
        **memory,
    }


async def crowd(sandbox: Sandbox, launcher: object, port: int) -> dict[str, object]:
    """The private memory of the egress process, and how much 1,000 open connections add."""
    assert sandbox.hosts.egress_pid is not None
    before = own_kilobytes(sandbox.hosts.egress_pid)
    sink, more = Kept(), asyncio.get_running_loop().create_future()
    command = Command(
        [sys.executable, "-c", CROWD, str(port), str(CONNECTIONS)], on_start=lambda send: more.set_result(send)
    )
    running = asyncio.ensure_future(launcher.run(command, sink))  # type: ignore[attr-defined]
    while b"open" not in sink.text and not running.done():
        sink.came.clear()
        await asyncio.wait((running, asyncio.ensure_future(sink.came.wait())), return_when=asyncio.FIRST_COMPLETED)
    during = own_kilobytes(sandbox.hosts.egress_pid)
    await (await more)(b"x")
    await running
    return {"own_kilobytes": before, "kilobytes_per_connection": (during - before) / CONNECTIONS}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
