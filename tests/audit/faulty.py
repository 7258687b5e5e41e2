"""A short session in which the n-th write to disk fails, stays failing, or is the last thing the process does.

A program: for every way of failing and every n it forks a host with a state home of its own below `sys.argv[1]`, and
says in lines of JSON, unbuffered, what that host acknowledged.
"""

import asyncio
import errno
import json
import os
import sys

from haft.contracts import HaftError
from haft.service import ToolService
from haft.sources.python import tool

really_write = os.write


def say(*words) -> None:
    really_write(1, json.dumps(words).encode() + b"\n")


@tool(readonly=True)
async def quick(n: int) -> int:
    """Answers at once."""
    return n


@tool
async def effect(n: int) -> int:
    """Says that it changes something."""
    return n


@tool(readonly=True)
async def wordy(n: int) -> str:
    """Has output to keep."""
    return "x" * 100_000


async def yes(_request) -> bool:
    return True


async def session(directory: str) -> None:
    os.makedirs(f"{directory}/workspace", exist_ok=True)
    home = f"{directory}/home"
    options = {"tools": [quick, effect, wordy], "approver": yes, "home": home, "installed": False}
    async with ToolService.open(f"{directory}/workspace", **options) as service:
        calls = [("quick", {"n": 1}), ("effect", {"n": 2}), ("wordy", {"n": 3}), ("no_such", {}), ("quick", {"n": 4}),
                 ("write_file", {"path": "x", "content": "x"}), ("effect", {"n": 5})]  # fmt: skip
        for name, arguments in calls:
            outcome = await asyncio.wait_for(_awaited(service.call(name, arguments)), 30)
            say("ack", outcome.run_id, outcome.status, outcome.error and outcome.error.code)
            await asyncio.sleep(0.03)  # Gives the scribe its turn between some of the calls.


async def _awaited(run):
    return await run


class Fault:
    """Counts writes, and makes the n-th what it should be."""

    def __init__(self, kind: str, n: int) -> None:
        self.kind, self.n, self.count = kind, n, 0
        for name in ("write", "pwrite", "writev"):
            setattr(os, name, self.instead_of(getattr(os, name)))

    def instead_of(self, function):
        def call(descriptor, data, *where):
            self.count += 1
            if self.count == self.n or (self.kind == "stays-full" and self.count > self.n):
                if self.kind == "torn":
                    data = data if isinstance(data, bytes) else b"".join(data)
                    half = data[: len(data) // 2]
                    os.lseek(descriptor, where[0], os.SEEK_SET) if where else None
                    really_write(descriptor, half)
                if self.kind in ("torn", "die"):
                    os._exit(9)
                raise OSError(errno.EIO if self.kind == "broken" else errno.ENOSPC, "the test says so")
            return function(descriptor, data, *where)

        return call


def host(kind: str, n: int, directory: str) -> None:
    fault = Fault(kind, n)
    try:
        asyncio.run(session(directory))
    except HaftError as error:
        say("refused", error.code)
    except TimeoutError:
        say("hang", kind, n)
    say("count", fault.count)
    os._exit(0)


if __name__ == "__main__":
    for kind in sys.argv[2:]:
        n = count = 1
        while n <= count:
            directory = f"{sys.argv[1]}/{kind}-{n}"
            say("begin", kind, n, directory)
            pid = os.fork()
            if pid == 0:
                host(kind, n, directory)
            os.waitpid(pid, 0)
            n += 1
            if n == 2:
                # How many there are when nothing fails.
                pid = os.fork()
                if pid == 0:
                    fault = Fault("none", 0)
                    asyncio.run(session(f"{sys.argv[1]}/{kind}-none"))
                    os._exit(min(fault.count, 255))
                count = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) + 5
    say("begin", "over", 0, "")
