"""A short session in which the n-th write to disk fails, stays failing, or is the last thing the process does.

A program: for every n it forks a host with a state home of its own below `sys.argv[1]`, and says in lines of JSON,
unbuffered, what that host acknowledged. `sys.argv[2]` is the way of failing, then come the first n and how many to go
on from one to the next.
"""

import asyncio
import errno
import json
import os
import sys

from haft.contracts import HaftError
from haft.service import ToolService
from haft.sources.python import tool

AT_ONCE = 6
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
        calls = [("quick", {"n": 1}), ("effect", {"n": 2}), ("wordy", {"n": 3}), ("no_such", {}),
                 ("write_file", {"path": "x", "content": "x"})]  # fmt: skip
        for name, arguments in calls:
            outcome = await asyncio.wait_for(_awaited(service.call(name, arguments)), 30)
            say(directory, "ack", outcome.run_id, outcome.status, outcome.error and outcome.error.code)
            if name in ("quick", "wordy"):
                await asyncio.sleep(0.06)  # The run_writer has its turn, too, before the session closes.


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
                if self.kind == "torn" and not where:
                    data = data if isinstance(data, bytes) else b"".join(data)
                    really_write(descriptor, data[: len(data) * 3 // 4])
                if self.kind in ("torn", "die"):
                    os._exit(9)
                raise OSError(errno.EIO if self.kind == "broken" else errno.ENOSPC, "the test says so")
            return function(descriptor, data, *where)

        return call


def host(kind: str, n: int, directory: str) -> None:
    """One session, in a process of its own. Its exit status is the number of writes."""
    fault = Fault(kind, n)
    try:
        asyncio.run(session(directory))
    except HaftError as error:
        say(directory, "refused", error.code)
    except TimeoutError:
        say(directory, "hang")
    except BaseException as error:
        say(directory, "broken", repr(error))
    os._exit(min(fault.count, 255))


def forked(kind: str, n: int, directory: str) -> int:
    pid = os.fork()
    if pid == 0:
        host(kind, n, directory)
    return pid


if __name__ == "__main__":
    base, kind, *rest = sys.argv[1:]
    first, stride = map(int, rest)
    asyncio.run(session(f"{base}/warm"))  # Imports what is imported late.
    count = os.waitstatus_to_exitcode(os.waitpid(forked("none", 0, f"{base}/none"), 0)[1]) + 3
    chosen = [*range(first, count + 1, stride)]
    for several in (chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)):
        for pid in [forked(kind, n, f"{base}/{n}") for n in several]:
            os.waitpid(pid, 0)
