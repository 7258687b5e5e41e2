"""Servers to be ended: `haft serve http` with tools of the tests.

A program: for every line `[workspace, home, port]` on its input it forks a server, ready at once because everything is
imported by then, and says its pid; and how it ended, when it has. Everything is said in lines of JSON.
"""

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

import haft.surfaces.http.console.routes
import haft.surfaces.http.console.written  # noqa: F401  before the fork
from haft import Context
from haft.sources.python import tool
from haft.surfaces.http.options import HttpOptions
from haft.surfaces.http.serve import serve
from haft.surfaces.mcp.over_http.part import HttpPart

LINES = 20


async def act(path: str, seconds: float, context: Context) -> None:
    with Path(path).open("a") as file:  # Each call has a file of its own, so that every time it runs is counted.
        file.write("ran\n")
    for number in range(LINES):
        context.output("stdout", b"%d\n" % number)
        await asyncio.sleep(seconds / LINES)


@tool(readonly=True)
async def look(path: str, seconds: float, context: Context) -> None:
    """Declares that it only reads, so that it runs at once."""
    await act(path, seconds, context)


@tool
async def effect(path: str, seconds: float, context: Context) -> None:
    """Needs approval."""
    await act(path, seconds, context)


class Part(HttpPart):
    """With the tools of the tests."""

    @property
    def service_options(self):
        return {**super().service_options, "tools": [look, effect], "installed": False}


def main() -> None:
    gc.freeze()
    for line in sys.stdin:
        workspace, home, port = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.environ["HAFT_HOME"] = home
            serve(HttpOptions(workspace, listen=f"127.0.0.1:{port}", quiet=True), Part)
            os._exit(0)
        print(json.dumps(["pid", pid]), flush=True)
        _, status = os.waitpid(pid, 0)
        print(json.dumps(["ended", os.waitstatus_to_exitcode(status)]), flush=True)


if __name__ == "__main__":
    main()
