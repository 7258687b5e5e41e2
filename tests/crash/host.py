"""Hosts to be killed: each makes a mix of calls for ever and says which outcomes it was handed.

A program: for every line `[workspace, home, seed]` on its input it forks a host, ready at once because everything is
imported by then, and says its pid; then it waits for its death. Everything is said in lines of JSON, unbuffered.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time

from haft.contracts import ApprovalRequest
from haft.service import ToolService
from haft.sources.python import tool


@tool(readonly=True)
async def quick(n: int) -> int:
    """Answers at once."""
    return n


@tool(readonly=True)
async def slow(n: int) -> int:
    """Takes a moment."""
    await asyncio.sleep(0.08)
    return n


@tool(readonly=True)
def blocking(n: int) -> int:
    """Takes a moment, in a thread."""
    time.sleep(0.005)
    return n


@tool
async def effect(n: int, ballast: str) -> int:
    """Says that it changes something, and has large arguments."""
    await asyncio.sleep(0)
    return n


async def yes(_request: ApprovalRequest) -> bool:
    return True


async def main(workspace: str, home: str, seed: int) -> None:
    chance = random.Random(seed)
    tools = [quick, slow, blocking, effect]
    async with ToolService.open(workspace, tools=tools, approver=yes, home=home, installed=False) as service:

        async def caller(name: int) -> None:
            n = 0
            while True:
                n += 1
                path = f"{seed}-{name}-{n}.txt"
                kind = chance.choice(["quick"] * 6 + ["slow", "blocking", "effect", "effect", "write", "shell", "no"])
                if kind == "write":
                    run = service.call("write_file", {"path": path, "content": f"{path}\n" * 100})
                elif kind == "shell":
                    run = service.call("shell", {"command": f"echo {path}; echo {path} > {path}"})
                elif kind == "effect":
                    run = service.call("effect", {"n": n, "ballast": "x" * chance.choice([10, 10_000, 100_000])})
                elif kind == "no":
                    run = service.call("no_such_tool", {"n": n})
                else:
                    run = service.call(kind, {"n": n})
                outcome = await run
                say([outcome.run_id, outcome.status, path if kind in ("write", "shell") else None])

        await asyncio.gather(*(caller(name) for name in range(4)))


def say(words) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


async def warm_up() -> None:
    """Import whatever is imported late."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f"{directory}/workspace")
        home = f"{directory}/home"
        async with ToolService.open(f"{directory}/workspace", tools=[quick], approver=yes, home=home) as service:
            await service.call("quick", {"n": 1})
            await service.call("no_such_tool")
            await service.call("write_file", {"path": "x", "content": "x"})
            service.runs()


if __name__ == "__main__":
    asyncio.run(warm_up())
    for line in sys.stdin:
        workspace, home, seed = json.loads(line)
        host = os.fork()
        if host == 0:
            asyncio.run(main(workspace, home, seed))
        say(["pid", host])
        os.waitpid(host, 0)
        say(["gone", host])
