"""A tool that says what its script says, and a reader of event streams. The script goes on when a file exists, so that
a test decides what happens first."""

import asyncio
import json
import os
from dataclasses import dataclass

from haft import Context
from haft.sources.python import tool


@tool(readonly=True)
async def talk(steps: list[str], context: Context) -> None:
    """Follow a script."""
    for step in steps:
        word, _, rest = step.partition(" ")
        match word:
            case "out":
                context.output("stdout", rest.encode())
            case "err":
                context.output("stderr", rest.encode())
            case "bytes":
                context.output("stdout", bytes.fromhex(rest))
            case "flood":
                for number in range(int(rest)):
                    context.output("stdout", b"%d " % number + b"x" * 1000 + b"\n")
            case "progress":
                context.progress(rest)
            case "wait":
                while not os.path.exists(rest):
                    await asyncio.sleep(0.002)
            case "pause":
                await asyncio.sleep(float(rest))


@dataclass
class Heard:
    """One event as a client got it."""

    id: str | None
    kind: str
    data: dict


def events_in(lines):
    """The events in the lines of a stream; comments and `retry` are left out."""
    name, kind, data = None, None, None
    for line in lines:
        field, _, value = line.partition(": ")
        if line == "":
            if data is not None:
                yield Heard(name, kind or "message", json.loads(data))
            name, kind, data = None, None, None
        elif field == "id":
            name = value
        elif field == "event":
            kind = value
        elif field == "data":
            data = value
