"""Calls with telemetry on, compared with telemetry off: spans that are sent to a collector, and counts for metrics.

The collector is a server in a process of its own that answers every request and reads nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from benchmarks.measure import Row, in_turns, print_table
from haft import ToolService, tool
from haft.service import RunCounts


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


def _serve(said: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    said.send(server.server_port)
    server.serve_forever()


@contextlib.contextmanager
def collector() -> Iterator[str]:
    """A context manager with the address of a collector."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()


async def rows(scratch: str) -> list[Row]:
    workspace = os.path.join(scratch, "workspace")
    os.makedirs(workspace)
    found = []

    def opened(name: str, settings: dict[str, object], counts: tuple[RunCounts, ...] = ()) -> ToolService:
        home = os.path.join(scratch, name)
        return ToolService.open(workspace, home=home, tools=[add], settings=settings, watchers=counts, environ={})

    with collector() as endpoint:
        async with (
            opened("off", {}) as off,
            opened("traces", {"telemetry.endpoint": endpoint}) as traces,
            opened("counts", {}, (RunCounts(),)) as counts,
        ):

            async def call(service: ToolService) -> None:
                outcome = await service.call("add", {"a": 1, "b": 2})
                assert outcome.ok, outcome

            for what, service in (("traces on, a call", traces), ("metrics on, a call", counts)):
                ours, theirs = await in_turns(lambda each=service: call(each), lambda: call(off), times=200)
                found.append(Row(what, ours, "telemetry off", theirs))
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print_table(asyncio.run(rows(place)))
