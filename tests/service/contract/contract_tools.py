"""The tools of the contract suite. Where the service is remote, they run in the server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from haft import Context, tool


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(readonly=True)
def fails() -> None:
    """Fail."""
    raise ValueError("this tool never works")


@tool(readonly=True)
async def waits() -> None:
    """Never ends."""
    await asyncio.Event().wait()


@tool(readonly=True)
async def speaks(words: list[str], context: Context, first: str | None = None, last: str | None = None) -> str:
    """Write words, one at a time: the first one when the file `first` exists, the last one when `last` does."""
    await _exists(first)
    for word in words[:-1]:
        context.output("stdout", f"{word}\n".encode())
        context.progress(word)
        await asyncio.sleep(0)
    await _exists(last)
    context.output("stderr", words[-1].encode())
    return ""


async def _exists(path: str | None) -> None:
    while path is not None and not Path(path).exists():
        await asyncio.sleep(0.005)


@tool(readonly=True)
def repeats(text: str, times: int) -> str:
    """A text, many times."""
    return text * times


@tool(readonly=True)
def nests(levels: int) -> dict[str, Any]:
    """A value inside of values."""
    value: dict[str, Any] = {"text": "ü", "number": 1.5, "nothing": None}
    for _ in range(levels):
        value = {"inner": value}
    return value


@tool(readonly=True)
async def calls(names: list[str], context: Context) -> list[str]:
    """Write files with calls of `write_file`."""
    return [(await context.call("write_file", {"path": each, "content": f"{each}\n"})).run_id for each in names]


@tool()
def risky(text: str) -> str:
    """Needs approval in this suite."""
    return text.upper()


TOOLS = (add, calls, fails, nests, repeats, risky, speaks, waits)
