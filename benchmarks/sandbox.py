"""One fully confined `/bin/true`, through the launcher, compared with a bare `subprocess.run`.

It is a program of its own that needs only Python's library and haft, so that it can also run as another user. It prints
one JSON object. An argument fills so many megabytes of heap first: starting a process must not cost more in a large
host.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from haft.contracts import Command, EndedChild, Limits, Stream
from haft.files import Root
from haft.sandbox import Sandbox

TIMES, ROUNDS = 10, 15


class Silent:
    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


async def measure() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as workspace, tempfile.TemporaryDirectory() as home:
        limits = Limits()
        sandbox = Sandbox(workspace, home, os.environ, Root(workspace).open_directory, limits)
        try:
            layers = (await sandbox.ready()).layers
            launcher = sandbox.launcher("workspace")
            command, sink = Command(["/bin/true"]), Silent()
            for _ in range(5):
                await launcher.run(command, sink)
            confined, bare = [], []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                for _ in range(TIMES):
                    await launcher.run(command, sink)
                middle = time.perf_counter()
                for _ in range(TIMES):
                    subprocess.run(["/bin/true"], check=True)
                confined.append((middle - begin) / TIMES)
                bare.append((time.perf_counter() - middle) / TIMES)
        finally:
            sandbox.close()
    return {"confined": statistics.median(confined), "bare": statistics.median(bare), "layers": layers}


if __name__ == "__main__":
    ballast = os.urandom(1 << 20) * int(sys.argv[1]) if len(sys.argv) > 1 else b""
    print(json.dumps(asyncio.run(measure())))
