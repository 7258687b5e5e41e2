"""`haft serve http` with many streams, and its calls against fastmcp's HTTP server doing the same work.

`python -m benchmarks.server` prints ratios of figures of one run, and promises nothing: the client takes the same
processors as the servers. haft decides, confines and records each call; the peer only runs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haft.service import Role

IDLE, STALLED, WATCHING = 1000, 10, 200
OF_ONE = 90
"""How many streams one token has: the server bounds them."""
CALLS = 400
CONNECTIONS = 4
SECONDS = 4.0
W = "/api/v1/workspaces/default"

HAFT = """
import asyncio, os, sys
from haft import Context, tool
from haft.surfaces.http.options import HttpOptions
from haft.surfaces.http.serve import serve
from haft.surfaces.mcp.over_http.part import HttpPart

@tool(readonly=True)
async def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@tool(readonly=True)
async def talk(seconds: float, often: float, context: Context) -> None:
    "Say something again and again."
    for number in range(int(seconds / often)):
        context.output("stdout", b"%d\\n" % number)
        await asyncio.sleep(often)

class Part(HttpPart):
    @property
    def service_options(self):
        return {**super().service_options, "tools": [add, talk], "installed": False}

serve(HttpOptions(sys.argv[1], listen="127.0.0.1:0", quiet=True), Part)
"""
PEER = """
import sys
from fastmcp import FastMCP

server = FastMCP("peer")

@server.tool
async def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="error",
           stateless_http=True, json_response=True)
"""
ADD = {"tool": "add", "args": {"a": 1, "b": 2}}
ADD_MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


class Client:
    """One connection that stays open."""

    def __init__(self, port: int, token: str = "") -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")

    async def open(self, *, limit: int = 1 << 16) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port, limit=limit)
        return self

    def send(self, method: str, path: str, body: object = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        accept = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{accept}Content-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)

    async def post(self, path: str, body: object = None) -> bytes:
        self.send("POST", path, body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return await self.reader.readexactly(length)


async def streaming(port: int, token: str, path: str) -> Client:
    """A client that reads a stream, of which it has the headers."""
    client = await Client(port, token).open()
    client.send("GET", path)
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return client


def p99(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def memory_of(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def cpu_of(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def timed_calls(client: Client) -> list[float]:
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        await client.post(f"{W}/calls", ADD)
        times.append(time.perf_counter() - start)
    return times


async def per_second(clients: Sequence[Client], path: str, body: object) -> float:
    """How many calls a second several clients get together."""
    until, count = time.monotonic() + SECONDS, 0

    async def work(client: Client) -> None:
        nonlocal count
        while time.monotonic() < until:
            answer = await client.post(path, body)
            assert b"3" in answer
            count += 1

    await asyncio.gather(*map(work, clients))
    return count / SECONDS


async def measure(port: int, pid: int, tokens: Sequence[str], readers: Sequence[str], peer: int) -> None:
    caller = await Client(port, readers[-1]).open()
    await timed_calls(caller)
    before = await timed_calls(caller)

    memory = memory_of(pid)
    idle = [await streaming(port, tokens[n // OF_ONE], f"{W}/events") for n in range(IDLE)]
    caller = await Client(port, readers[-1]).open()  # The server has ended the first connection, which was idle.
    run = json.loads(
        await caller.post(f"{W}/calls", {"tool": "talk", "args": {"seconds": 600, "often": 0.001}, "wait": 0})
    )
    grown = memory_of(pid) - memory
    print(f"{IDLE} idle streams: {grown / IDLE / 1024:.1f} kB a stream")
    stalled = [await Client(port, readers[-1]).open(limit=1024) for _ in range(STALLED)]
    for client in stalled:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send("GET", f"{W}/runs/{run['run']}/events")
    during = await timed_calls(caller)
    print(
        f"p99 of a call: {p99(before) * 1e3:.2f} ms without streams, {p99(during) * 1e3:.2f} ms with {IDLE} idle ones "
        f"and {STALLED} that never read: {p99(during) / p99(before):.2f} times"
    )
    print(f"in all, {(memory_of(pid) - memory) / (IDLE + STALLED) / 1024:.1f} kB a stream")
    for client in (*idle, *stalled):
        client.writer.transport.abort()
    await caller.post(f"{W}/runs/{run['run']}/cancel")
    await asyncio.sleep(1)
    caller = await Client(port, readers[-1]).open()

    said = {"tool": "talk", "args": {"seconds": 60, "often": 0.002}, "wait": 0}
    run = json.loads(await caller.post(f"{W}/calls", said))
    events = f"{W}/runs/{run['run']}/events"
    watching = [await streaming(port, readers[n // OF_ONE], events) for n in range(WATCHING)]
    await asyncio.sleep(0.5)
    start, cpu, got = time.monotonic(), cpu_of(pid), 0

    async def drain(client: Client) -> None:
        nonlocal got
        while time.monotonic() - start < SECONDS:
            got += (await client.reader.read(1 << 16)).count(b"event: stdout")

    await asyncio.gather(*map(drain, watching))
    seconds = time.monotonic() - start
    print(
        f"{WATCHING} subscribers on one run: {got / seconds:,.0f} events a second leave, at "
        f"{(cpu_of(pid) - cpu) / seconds:.0%} of one core"
    )
    for client in watching:
        client.writer.transport.abort()
    caller = await Client(port, readers[-1]).open()
    await caller.post(f"{W}/runs/{run['run']}/cancel")

    async def clients(port: int, token: str = "") -> list[Client]:
        return [await Client(port, token).open() for _ in range(CONNECTIONS)]

    ours, theirs = await clients(port, readers[0]), await clients(peer)
    rounds = [(await per_second(ours, f"{W}/calls", ADD), await per_second(theirs, "/mcp", ADD_MCP)) for _ in range(3)]
    haft, fastmcp = sorted(rounds)[1]
    print(
        f"calls a second: {haft:,.0f} through the API of haft, {fastmcp:,.0f} through fastmcp's HTTP server: "
        f"{haft / fastmcp:.2f} times"
    )


def main() -> None:
    from haft import Principal
    from haft.service import StateHome, Tokens

    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        home = os.path.join(place, "home")
        os.mkdir(workspace := os.path.join(place, "workspace"))
        environment = {**os.environ, "HAFT_HOME": home, "XDG_CONFIG_HOME": place}
        kept = Tokens(StateHome(home))

        def token(name: str, *roles: Role) -> str:
            return kept.add(name, Principal("bench"), kind="person", roles=roles)[1]

        # Callers do not see the runs of others, so that nothing happens on their streams. Readers see all runs.
        idle = [token(f"idle{n}", "caller") for n in range(IDLE // OF_ONE + 1)]
        reading = [token(f"reader{n}", "caller", "reader") for n in range(WATCHING // OF_ONE + 1)]
        words = [sys.executable, "-c", HAFT, workspace]
        with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True, cwd=workspace) as server:
            try:
                assert server.stderr is not None
                port = int(server.stderr.readline().rpartition(":")[2])
                peer_port = port + 1 if port < 65000 else port - 1
                with subprocess.Popen([sys.executable, "-c", PEER, str(peer_port)], cwd=workspace) as peer:
                    try:
                        wait_for(peer_port)
                        asyncio.run(measure(port, server.pid, idle, reading, peer_port))
                    finally:
                        peer.terminate()
            finally:
                server.terminate()


def wait_for(port: int) -> None:
    import socket

    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


if __name__ == "__main__":
    main()
